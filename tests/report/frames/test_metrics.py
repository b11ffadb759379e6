"""Rows of a metric, and metrics as multiples of a reference's."""

import math

import pytest

from dpbench.report.frames.frame import trial_frame
from dpbench.report.frames.settings import as_gains, as_multiples, metric_rows

from ..made_up import make_trial

EXACT, UNIFORM = "exact/linear_statistics", "uniform/linear_statistics"


@pytest.fixture
def frame():
    """On Adult AdaSSP and two references, of which the better one has a mean of 0.05; on Fire AdaSSP alone."""
    references = [
        make_trial("exact", epsilon=math.inf, repetition=place, mse=mse) for place, mse in enumerate((0.04, 0.06))
    ]
    uniform = [make_trial("uniform", epsilon=math.inf, repetition=place, mse=0.4) for place in range(3)]
    private = [make_trial("adassp", dataset=dataset, mse=0.1) for dataset in ("adult", "fire")]
    return trial_frame([*references, *uniform, *private])


def test_a_multiple_is_of_the_best_reference_on_the_data_set_in_the_same_repetition(frame):
    found = as_multiples(frame, {"mse": [EXACT, UNIFORM]})
    rows = found[found["metric"] == "mse"]
    assert {name: own["value"].tolist() for name, own in rows.groupby("mechanism")} == {
        "exact": pytest.approx([1, 1]),
        "uniform": pytest.approx([10, 0.4 / 0.06]),  # the better reference has no third repetition
        "adassp": pytest.approx([2.5]),
    }
    assert set(rows["unit"]) == {""}, "a multiple has none"
    assert set(rows["dataset"]) == {"adult"}, "Fire has no reference"
    others = found[found["metric"] == "r2"]
    assert others["value"].tolist() == frame.loc[frame["metric"] == "r2", "value"].tolist()


def test_of_a_score_that_should_be_high_the_best_is_the_highest(frame):
    found = as_multiples(frame, {"r2": [EXACT, UNIFORM]})  # 1 - mse
    value = found.loc[(found["metric"] == "r2") & (found["mechanism"] == "adassp"), "value"]
    assert value.tolist() == pytest.approx([0.9 / 0.96])


@pytest.mark.parametrize("references", [[], [make_trial("exact", epsilon=math.inf, mse=math.nan)]])
def test_nothing_is_a_multiple_where_no_reference_has_a_value(references):
    found = as_multiples(trial_frame([make_trial("adassp", mse=0.1), *references]), {"mse": [EXACT]})
    assert set(found["metric"]) == {"r2"}


def test_a_gain_is_the_part_of_what_the_exact_answer_has_over_the_trivial_one_on_the_same_split(frame):
    found = as_gains(frame, "mse", [UNIFORM], [EXACT])  # 0.4 against 0.04 and 0.06
    rows = found[found["metric"] == "mse"]
    assert {name: own["value"].tolist() for name, own in rows.groupby("mechanism")} == {
        "exact": pytest.approx([1, 1]),
        "uniform": pytest.approx([0, 0]),
        "adassp": pytest.approx([0.3 / 0.36]),
    }
    assert set(rows["direction"]) == {"higher"} and set(rows["unit"]) == {""}
    assert found.loc[found["metric"] == "r2", "direction"].tolist() == ["higher"] * 7, "other metrics are as they were"
    higher = as_gains(frame, "r2", [UNIFORM], [EXACT])
    adassp = higher.loc[(higher["metric"] == "r2") & (higher["mechanism"] == "adassp"), "value"]
    assert adassp.tolist() == pytest.approx([0.3 / 0.36]), "r2 is 1 - mse here"


def test_without_an_exact_answer_its_error_is_0_and_where_it_gains_nothing_there_is_no_gain(frame):
    rows = as_gains(frame, "mse", [UNIFORM]).query("metric == 'mse' and mechanism == 'adassp'")
    assert rows["value"].tolist() == pytest.approx([0.75])
    rows = as_gains(frame, "mse", [EXACT], [UNIFORM]).query("metric == 'mse'")
    assert len(rows) and rows["value"].isna().all()


def test_every_trial_has_seconds_and_memory_once_and_a_failed_one_neither(frame):
    stored = [make_trial(), make_trial(repetition=1, status="failed")]
    for metric, value, unit in (("seconds", 1.21, "s"), ("peak_mb", 210.0, "MB")):
        rows = metric_rows(trial_frame(stored), metric).sort_values("repetition")
        assert rows["value"].tolist() == pytest.approx([value, math.nan], nan_ok=True) and set(rows["unit"]) == {unit}
