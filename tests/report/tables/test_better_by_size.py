"""How often each method is better than the trivial answer, by rows and epsilon for each coefficient."""

import pytest

from dpbench.errors import UserError
from dpbench.report.frames.frame import trial_frame
from dpbench.report.tables.better_by_size import better_by_size_table

from ..made_up import LABELS, make_trial

SPEC = {"name": "better", "kind": "better_by_size_table", "metric": "mse", "level": 0.2, "title": "T"}


def trials(values, mechanism="ssp", **settings):
    return [
        make_trial(mechanism, mse=value, status="done" if value else "no_estimate", repetition=place, **settings)
        for place, value in enumerate(values)
    ]


def test_a_row_a_method_and_a_column_a_power_of_ten_of_rows_and_epsilon_a_coefficient():
    """Concrete has 1,030 rows and kin8nm 8,192, each for 9 coefficients."""
    stored = [
        *trials([0.10, 0.11, 0.12], dataset="concrete", epsilon=0.1),
        *trials([0.30, 0.31, 0.32], dataset="kin8nm", epsilon=0.1),
        *trials([0.10, 0.11, None], dataset="concrete", epsilon=2.0),
        *trials([0.10, 0.11, 0.12], mechanism="adassp", dataset="kin8nm", epsilon=0.1),
        *trials([0.10, 0.11, 0.12], dataset="mine", epsilon=2.0),
    ]
    made = better_by_size_table(trial_frame(stored), LABELS, SPEC, {})
    assert made.header == ["", "10 to 100", "100 to 1,000"]
    assert made.rows == [
        ["SSP", "1 better, 1 worse, of 2", "0 better, 0 worse, of 1"],
        ["AdaSSP", "1 better, 0 worse, of 1", "not run"],
    ]
    assert made.tidy[["most", "series", "cases", "without_value", "runs"]].to_numpy().tolist() == [
        [100, "SSP", 2, 0, 6],
        [1000, "SSP", 1, 1, 3],
        [100, "AdaSSP", 1, 0, 3],
    ]
    assert len(made.trials[0, 1]) == 6, "a table of one's own declares no rows"


def test_without_a_regression_the_data_are_for_each_column():
    """Mushroom has 8,124 rows of 23 columns, and 105 coefficients."""
    spec = {**SPEC, "each": "column"}
    stored = trials([0.10, 0.11, 0.12], dataset="mushroom", epsilon=0.5)
    both = [better_by_size_table(trial_frame(stored), LABELS, one, {}) for one in (SPEC, spec)]
    assert [made.header[1] for made in both] == ["10 to 100", "100 to 1,000"]
    assert "times ε for each column." in both[1].footnotes[0] and "for each coefficient." in both[0].footnotes[0]
    with pytest.raises(UserError, match="each"):
        better_by_size_table(trial_frame(stored), LABELS, {**SPEC, "each": "cell"}, {})
