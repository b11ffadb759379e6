import math
import random
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from dpbench.errors import UserError
from dpbench.report.frames.frame import COLUMNS, joined_frame, rows_of, summarise, trial_frame
from dpbench.report.frames.series import mark_series, series_of

from ..made_up import LABELS, make_grid, make_score, make_trial


def labels_of(trials):
    return [one.label for one in series_of(trial_frame(trials), LABELS)]


def test_one_row_per_trial_and_metric():
    frame = trial_frame([make_trial("adassp", calibration="tight", epsilon=0.5, repetition=3, mse=0.07)])
    assert list(frame.columns) == list(COLUMNS)
    assert list(frame["metric"]) == ["mse", "r2"]
    row = frame.iloc[0]
    assert (row["value"], row["unit"], row["direction"]) == (0.07, "scaled target^2", "lower")
    assert (row["calibration"], row["epsilon"], row["repetition"], row["spent_epsilon"]) == ("tight", 0.5, 3, 0.5)


def test_order_of_trials_does_not_matter():
    trials = make_grid()
    shuffled = random.Random(1).sample(trials, len(trials))
    pd.testing.assert_frame_equal(trial_frame(trials), trial_frame(shuffled))


def test_no_trials_give_an_empty_frame_with_all_columns():
    assert list(trial_frame([]).columns) == list(COLUMNS)


@pytest.mark.parametrize("status", ["failed", "timeout", "oom"])
def test_trials_that_are_not_done_never_vanish(status):
    frame = trial_frame([make_trial(repetition=0), make_trial(repetition=1, status=status)])
    lost = frame[frame["status"] == status]
    assert list(lost["metric"]) == ["mse", "r2"]
    assert lost["value"].isna().all()
    assert set(lost[lost["metric"] == "mse"]["unit"]) == {"scaled target^2"}


def test_a_failed_trial_stands_under_the_score_names_its_metric_gives():
    scores = [make_score(f"l1_{kind}", 0.1, "lower") for kind in ("max", "mean")]
    done = make_trial("aim", "linear_rows", metrics=["l1"], scores=scores)
    same = make_trial("aim", "linear_rows", metrics=["l1"], repetition=1, status="failed")
    other = make_trial("mst", "linear_rows", metrics=["l1"], status="failed")
    frame = trial_frame([done, same, other])
    assert list(frame[frame["trial"] == same.id]["metric"]) == ["l1_max", "l1_mean"]
    assert list(frame[frame["trial"] == other.id]["metric"]) == ["l1", "l1_max", "l1_mean"]


def test_a_metric_the_release_cannot_answer_is_no_row():
    rows = trial_frame([make_trial(metrics=["mse", "r2", "workload_error"])])
    assert "workload_error" not in set(rows["metric"])


def test_duplicates_are_dropped_and_contradictions_refused():
    trial = make_trial()
    slower = replace(trial, runtime=replace(trial.runtime, release_seconds=9.0))
    pd.testing.assert_frame_equal(trial_frame([trial, slower]), trial_frame([slower, trial]))
    assert len(trial_frame([trial, slower])) == 2
    other = replace(trial, scores=(replace(trial.scores[0], value=0.5),))
    with pytest.raises(UserError, match=f"{trial.id} is stored twice"):
        trial_frame([trial, other])


def test_a_trial_of_two_experiments_counts_once():
    trials = [make_trial(repetition=k, mse=0.1 * k) for k in range(4)]
    both = joined_frame([rows_of(trials[:3]), rows_of(trials[1:])])
    assert summarise(both)["count"].tolist() == summarise(trial_frame(trials))["count"].tolist() == [4, 4]


def test_reference_has_epsilon_inf():
    frame = trial_frame([make_trial("exact", epsilon=math.inf)])
    assert math.isinf(frame["epsilon"].iloc[0])
    assert math.isinf(frame["spent_epsilon"].iloc[0])


def test_settings_that_differ_within_a_cell_become_series():
    sweep = [make_trial("aim", "linear_rows", parameters={"max_model_mb": size}) for size in (40, 80)]
    assert labels_of(sweep) == ["AIM-Synth [max_model_mb=40]", "AIM-Synth [max_model_mb=80]"]
    tied = [make_trial("aim", "linear_rows", eps, parameters={"rounds": 10 * eps}) for eps in (1.0, 2.0)]
    assert labels_of(tied) == ["AIM-Synth"]


def test_labels_and_their_order():
    trials = make_grid(repetitions=1)
    assert labels_of(trials) == [
        "public",
        "SSP (tight)",
        "SSP (paper)",
        "AdaSSP (tight)",
        "AdaSSP (paper)",
        "DD-SSP",
        "AIM-Synth",
    ]
    assert labels_of([make_trial("ssp", calibration="tight")]) == ["SSP"]
    assert labels_of([make_trial("ssp", calibration="paper")]) == ["SSP (paper)"]
    assert labels_of([make_trial("new", "thing"), make_trial("ssp")]) == ["SSP", "new / thing"]


def test_standard_error_by_hand():
    frame = trial_frame([make_trial(repetition=k, mse=value) for k, value in enumerate((1.0, 2.0, 4.0))])
    cell = summarise(frame).set_index("metric").loc["mse"]
    assert cell["mean"] == pytest.approx(7 / 3)
    # deviations -4/3, -1/3, 5/3: their squares sum to 42/9, over 2 is 7/3, over 3 is 7/9
    assert cell["se"] == pytest.approx(math.sqrt(7 / 9))
    assert (cell["count"], cell["failed"], cell["nonfinite"]) == (3, 0, 0)


def test_one_value_has_no_standard_error():
    cell = summarise(trial_frame([make_trial()])).iloc[0]
    assert cell["count"] == 1
    assert np.isnan(cell["se"])


def test_failures_and_values_that_are_not_finite_are_counted():
    trials = [make_trial(repetition=0), make_trial(repetition=1, status="oom"), make_trial(repetition=2, mse=None)]
    cell = summarise(trial_frame(trials)).set_index("metric").loc["mse"]
    assert (cell["count"], cell["failed"], cell["nonfinite"]) == (1, 1, 1)
    assert cell["mean"] == 0.08


def test_cells_do_not_mix_metrics():
    frame = trial_frame([make_trial()])
    with pytest.raises(ValueError, match="mix metrics"):
        summarise(frame, by=("mechanism",))
    assert len(summarise(frame, by=("mechanism", "metric"))) == 2


def test_marked_rows_carry_the_label():
    frame = trial_frame(make_grid(repetitions=1))
    marked = mark_series(frame, series_of(frame, LABELS))
    assert set(marked.loc[marked["model"] == "linear_marginals", "series"]) == {"DD-SSP"}
