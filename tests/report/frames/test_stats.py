import math

import numpy as np
import pytest

from dpbench.report.frames.frame import has_value, summarise, trial_frame

from ..made_up import make_trial


def test_mean_and_standard_error_are_of_the_finite_values_and_all_trials_are_counted():
    values = [0.1, 0.2, 0.6]
    trials = [make_trial(mse=value, repetition=i) for i, value in enumerate(values)]
    trials += [make_trial(mse=None, repetition=3), make_trial(status="failed", repetition=4)]
    cells = summarise(trial_frame(trials))
    (cell,) = cells[cells["metric"] == "mse"].to_dict("records")
    assert cell["mean"] == pytest.approx(0.3)
    assert cell["se"] == pytest.approx(np.std(values, ddof=1) / math.sqrt(3))
    assert (cell["count"], cell["nonfinite"], cell["failed"]) == (3, 1, 1)


def test_a_value_is_that_of_a_trial_that_is_done_and_finite():
    trials = [make_trial(mse=value, repetition=i) for i, value in enumerate([0.1, None, math.inf])]
    frame = trial_frame([*trials, make_trial(status="failed", repetition=3)])
    kept = frame[(frame["metric"] == "mse") & has_value(frame)]
    assert list(kept["repetition"]) == [0]
    assert not has_value(frame.assign(status="unconverged", value=1.0)).any()


def test_one_value_has_no_standard_error():
    cells = summarise(trial_frame([make_trial()]))
    assert cells["se"].isna().all()


def test_metrics_are_not_mixed():
    with pytest.raises(ValueError, match="would mix metrics"):
        summarise(trial_frame([make_trial()]), by=["mechanism"])
