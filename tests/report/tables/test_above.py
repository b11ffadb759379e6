"""On how many data sets a method is better than the trivial answer."""

from dpbench.report.frames.frame import trial_frame
from dpbench.report.tables.above import above_table

from ..made_up import LABELS, make_trial

SPEC = {"name": "above", "kind": "above_table", "metric": "mse", "level": 0.2, "title": "T"}


def trials(values, mechanism="ssp", **settings):
    """A trial a value, of consecutive repetitions; None: it has no estimate."""
    model = "linear_statistics"
    return [
        make_trial(mechanism, model, mse=value, status="done" if value else "no_estimate", repetition=place, **settings)
        for place, value in enumerate(values)
    ]


def test_a_data_set_counts_where_the_interval_of_the_mean_leaves_the_level_out():
    stored = [
        *trials([0.30, 0.31, 0.32], dataset="adult"),
        *trials([0.10, 0.11, 0.12], dataset="fire"),
        *trials([0.10, 0.31, 0.32], dataset="taxi"),  # on average above, within its interval
        *trials([0.30, 0.31, 0.32], mechanism="adassp", dataset="adult"),
        *trials([0.30, 0.31, 0.32], mechanism="adassp", dataset="fire"),
        *trials([0.30, 0.31, 0.32], mechanism="adassp", dataset="fire", epsilon=2.0),
    ]
    made = above_table(trial_frame(stored), LABELS, SPEC, {})
    assert made.header == ["", "ε = 0.1", "ε = 2"]
    assert made.rows == [
        ["AdaSSP", "2 above, 0 below, of 2", "1 above, 0 below, of 1"],
        ["SSP", "1 above, 1 below, of 3", "not run"],
    ]
    assert len(made.trials[1, 1]) == 9, "those of SSP on three data sets"


def test_a_run_without_a_value_counts_as_the_trivial_answer_and_is_counted():
    stored = [*trials([0.30, 0.31, 0.32], dataset="adult"), *trials([0.30, None, None], dataset="fire")]
    made = above_table(trial_frame(stored), LABELS, SPEC, {})
    assert made.rows == [["SSP", "1 above, 0 below, of 2"]]
    (row,) = made.tidy.to_dict("records")
    assert (row["above"], row["without_value"], row["runs"]) == (1, 2, 6)
    worse = above_table(trial_frame(trials([0.1, 0.11, None, None], dataset="fire")), LABELS, SPEC, {})
    assert worse.rows == [["SSP", "0 above, 0 below, of 1"]], "half of the runs are as good as the trivial answer"
