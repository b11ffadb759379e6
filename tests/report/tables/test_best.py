"""What is bold: the best of a group, and what does not differ from it significantly."""

import math

import pandas as pd
import pytest

from dpbench.report.tables.cells import is_best


def bold(rows, direction="lower"):
    cells = pd.DataFrame(rows, columns=["place", "mean", "se"]).assign(direction=direction)
    return is_best(cells, ["place"]).tolist()


@pytest.mark.parametrize(
    ("rows", "direction", "best"),
    [
        ([("a", 1.0, 0.1), ("a", 2.0, 0.1)], "lower", [True, False]),
        ([("a", 1.0, 0.1), ("a", 2.0, 0.1)], "higher", [False, True]),
        ([("a", 1.0, 0.1), ("a", 2.0, 0.1)], "none", [False, False]),
        ([("a", 1.0, 0.3), ("a", 2.0, 0.4)], "lower", [True, False]),  # 1.96 * 0.5 = 0.98
        ([("a", 1.0, 0.3), ("a", 1.97, 0.4)], "lower", [True, True]),
        ([("a", 1.0, 0.0), ("a", 1.0, 0.0), ("a", 1.1, 0.0)], "lower", [True, True, False]),
        ([("a", math.nan, math.nan), ("a", 3.0, math.nan), ("a", 2.0, math.nan)], "lower", [False, False, True]),
        ([("a", 1.0, 0.1), ("b", 9.0, 0.1), ("b", 5.0, 0.1)], "lower", [False, False, True]),
        ([("a", math.inf, 0.1), ("a", 2.0, 0.1)], "higher", [False, False]),
        ([], "lower", []),
    ],
)
def test_the_best_and_its_ties(rows, direction, best):
    assert bold(rows, direction) == best
