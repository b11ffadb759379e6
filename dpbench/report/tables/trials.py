"""The trials behind each number of a table."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from pathlib import Path

import pandas as pd

Trials = Mapping[tuple[int, int], Sequence[str]]  # row and column of a number -> ids of its trials
Keep = Callable[[Sequence[Trials], Path, str], list[Path]]  # writes those of some tables into a folder, under a name


def trials_at(
    found: pd.DataFrame,
    by: Sequence[str],
    column: str,
    rows: Sequence[tuple[Hashable, ...]],
    columns: Sequence[Hashable],
) -> dict[tuple[int, int], list[str]]:
    """The ids (`trial`) of the trials `found`, by the row and the column of their number.

    A trial's row is that of its values of `by` among `rows`, its column that of its value of `column` among `columns`;
    both are in the table's order, and a column of names has None. Others have no number.

    >>> found = pd.DataFrame({"data": ["b", "b", "c"], "x": [1, 1, 1], "trial": ["t1", "t2", "t3"]})
    >>> trials_at(found, ["data"], "x", [("a",), ("b",)], [None, 1])
    {(1, 1): ['t1', 't2']}
    """
    row_of, column_of = {key: place for place, key in enumerate(rows)}, {key: at for at, key in enumerate(columns)}
    numbers: dict[tuple[int, int], dict[str, None]] = {}
    for *row, at, trial in found[[*by, column, "trial"]].itertuples(index=False, name=None):
        if tuple(row) in row_of and at in column_of:
            numbers.setdefault((row_of[tuple(row)], column_of[at]), {})[trial] = None
    return {place: list(trials) for place, trials in numbers.items()}
