"""On how many data sets a method is better than the trivial answer."""

import math

from dpbench.report.frames.frame import trial_frame
from dpbench.report.frames.settings import placed
from dpbench.report.tables.better import better_table

from ..made_up import LABELS, make_trial

SPEC = {"name": "better", "kind": "better_table", "metric": "mse", "level": 0.2, "title": "T"}


def trials(values, mechanism="ssp", **settings):
    """One trial per value, of consecutive repetitions; None: it has no estimate."""
    model = "linear_statistics"
    return [
        make_trial(mechanism, model, mse=value, status="done" if value else "no_estimate", repetition=place, **settings)
        for place, value in enumerate(values)
    ]


def test_a_data_set_counts_where_the_interval_of_the_mean_leaves_the_level_out():
    stored = [
        *trials([0.30, 0.31, 0.32], dataset="adult"),
        *trials([0.10, 0.11, 0.12], dataset="fire"),
        *trials([0.10, 0.31, 0.32], dataset="taxi"),  # on average worse, within its interval
        *trials([0.30, 0.31, 0.32], mechanism="adassp", dataset="adult"),
        *trials([0.30, 0.31, 0.32], mechanism="adassp", dataset="fire"),
        *trials([0.30, 0.31, 0.32], mechanism="adassp", dataset="fire", epsilon=2.0),
    ]
    made = better_table(trial_frame(stored), LABELS, SPEC, {})
    assert made.header == ["", "ε = 0.1", "ε = 2"]
    assert made.rows == [
        ["SSP", "1 better, 1 worse, of 3", "not run"],
        ["AdaSSP", "0 better, 2 worse, of 2", "0 better, 1 worse, of 1"],
    ]
    assert len(made.trials[0, 1]) == 9, "those of SSP on three data sets"


def test_a_run_without_a_value_counts_as_the_trivial_answer_and_is_counted():
    stored = [*trials([0.30, 0.31, 0.32], dataset="adult"), *trials([0.30, None, None], dataset="fire")]
    made = better_table(trial_frame(stored), LABELS, SPEC, {})
    assert made.rows == [["SSP", "0 better, 1 worse, of 2"]]
    (row,) = made.tidy.to_dict("records")
    assert (row["worse"], row["without_value"], row["runs"]) == (1, 2, 6)
    worse = better_table(trial_frame(trials([0.1, 0.11, None, None], dataset="fire")), LABELS, SPEC, {})
    assert worse.rows == [["SSP", "0 better, 0 worse, of 1"]], "half of the runs are as good as the trivial answer"


def test_a_lower_error_is_better_also_as_a_multiple_of_the_trivial_answers_on_the_same_split():
    mean = [
        make_trial("exact", "linear_statistics", mse=value, epsilon=math.inf, repetition=place)
        for place, value in enumerate([1.0, 2.0, 3.0])
    ]
    stored = [*mean, *trials([0.9, 1.8, 2.8]), *trials([1.1, 2.1, 3.2], mechanism="adassp")]
    spec = {**SPEC, "level": 1.0, "relative": {"mse": ["exact/linear_statistics"]}}
    made = better_table(placed(trial_frame(stored), spec), LABELS, spec, {})
    assert made.rows == [["SSP", "1 better, 0 worse, of 1"], ["AdaSSP", "0 better, 1 worse, of 1"]]
