"""How often a method is better than the trivial answer, by rows and epsilon for each coefficient."""

import pytest

from dpbench.report.figures.better_by_size import better_by_size
from dpbench.report.frames.frame import trial_frame

from ..made_up import LABELS, make_trial

SPEC = {"name": "better", "kind": "better_by_size", "metric": "mse", "level": 0.2, "title": "T"}


def trials(values, **settings):
    return [make_trial(mse=value, repetition=place, **settings) for place, value in enumerate(values)]


def test_data_sets_and_epsilons_are_counted_together_where_a_coefficient_has_as_much():
    """Concrete has 1,030 rows and kin8nm 8,192, each for 9 coefficients: at 0.1 both are between 10 and 100, at 2
    concrete is above; nothing declares a table of one's own."""
    stored = [
        *trials([0.10, 0.11, 0.12], dataset="concrete", epsilon=0.1),
        *trials([0.30, 0.31, 0.32], dataset="kin8nm", epsilon=0.1),
        *trials([0.10, 0.11, 0.12], dataset="concrete", epsilon=2.0),
        *trials([0.10, 0.11, 0.12], dataset="mine", epsilon=2.0),
    ]
    found = better_by_size(trial_frame(stored), LABELS, SPEC).drawn.set_index("x")
    assert list(found.index) == pytest.approx([100, 1000])
    assert list(found["mean"]) == [0.5, 1.0]
    assert list(found["count"]) == [2, 1]
