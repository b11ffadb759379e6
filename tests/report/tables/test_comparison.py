import math

import pytest

from dpbench.errors import UserError
from dpbench.report.frames.frame import trial_frame
from dpbench.report.frames.settings import placed, settings_of
from dpbench.report.tables.comparison import comparison_table

from ..made_up import make_score, make_trial

LABELS = {
    f"{mechanism}/{model}": label
    for mechanism, label in {"exact": "OLS", "binagg": "BinAgg", "aim": "AIM"}.items()
    for model in ("xgboost", "svr")
}
SPEC = {"name": "t", "kind": "comparison_table", "title": "T", "metric": "rel_mse", "panels": {"b": "B", "a": "A"}}
PUBLISHED = {
    "where": "Table 9",
    "repetitions": 4,
    "digit": 0.01,
    "rows": {"a": {"BinAgg": 0.30, "GAN": 0.9}, "z": {"BinAgg": 0.7}},
}
THETA = "release.mechanism.parameters.theta"


def trial(mechanism="binagg", model="xgboost", value=0.3, repetition=0, **changes):
    scores = [make_score("rel_mse", value, "lower")]
    return make_trial(mechanism, model, repetition=repetition, metrics=["rel_mse"], scores=scores, **changes)


def table(trials, published=None, **changes):
    spec = SPEC | changes
    frame = placed(trial_frame(trials, settings_of(spec)), spec)
    return comparison_table(frame, LABELS, spec, published or {})


def cell(made, row, column):
    return next(line for line in made.rows if line[0] == row)[made.header.index(column)]


def test_a_row_a_data_set_in_the_order_of_titles_and_a_column_a_method():
    trials = [trial(name, dataset=data, value=v, epsilon=math.inf if name == "exact" else 1.0)
              for name, v in (("exact", 0.1), ("binagg", 0.2)) for data in "ab"]  # fmt: skip
    made = table(trials)
    assert made.header == ["", "OLS", "BinAgg"] and [line[0] for line in made.rows] == ["B", "A"]
    assert cell(made, "A", "BinAgg") == "0.2000 (1)"


def test_data_sets_with_budgets_of_their_own_stand_in_one_column():
    trials = [trial(dataset=data, delta=delta, epsilon=e) for data, delta, e in (("a", 1e-3, 2.0), ("b", 1e-4, 3.0))]
    made = table(trials)
    assert len(made.rows) == 2 and made.header == ["", "BinAgg"] and "not run" not in str(made.rows)


def test_models_of_one_label_are_averaged_within_a_repetition():
    values = {"xgboost": (0.2, 0.4), "svr": (0.6, 0.4)}
    trials = [
        trial(model=model, value=v, repetition=k, dataset="a") for model in values for k, v in enumerate(values[model])
    ]
    (row,) = table(trials).tidy.to_dict("records")
    assert row["mean"] == pytest.approx(0.4) and row["se"] == pytest.approx(0) and row["count"] == 2


def test_a_failed_model_loses_the_repetition_and_one_without_an_estimate_is_left_out_of_the_mean():
    how = {("svr", 1): "failed", ("svr", 2): "no_estimate", ("svr", 3): "no_estimate", ("xgboost", 3): "no_estimate"}
    trials = [trial(model=model, value=0.5, repetition=k, dataset="a", status=how.get((model, k), "done"))
              for model in ("xgboost", "svr") for k in range(4)]  # fmt: skip
    made = table(trials)
    (row,) = made.tidy.to_dict("records")
    assert (row["count"], row["failed"], row["no_estimate"]) == (2, 1, 1)
    assert cell(made, "A", "BinAgg") == "0.5000 ± 0 (2; 1 no estimate; 1 failed)"


def test_what_is_unconverged_is_not_called_failed():
    how = {1: "unconverged", 2: "failed"}
    made = table([trial(value=0.5, repetition=k, dataset="a", status=how.get(k, "done")) for k in range(4)])
    assert cell(made, "A", "BinAgg") == "0.5000 ± 0 (2; 1 unconverged; 1 failed)"


def test_published_numbers_are_shown_with_a_verdict_and_those_not_run_are_said():
    trials = [trial(value=v, repetition=k, dataset="a") for k, v in enumerate((0.40, 0.42, 0.41, 0.43))]
    made = table(trials, PUBLISHED)
    assert cell(made, "A", "BinAgg") == "0.4150 ± 0.0065 (4), paper 0.3: higher"
    assert cell(made, "A", "GAN") == "not run, paper 0.9"
    assert cell(made, "z", "BinAgg") == "not run, paper 0.7", "a data set that only the paper has"
    assert "Of 3 comparisons with published numbers: higher 1, not run 2" in made.footnotes
    assert any(sentence.startswith("Verdicts: ") and "Student's" in sentence for sentence in made.footnotes)


def test_where_the_paper_has_no_number_that_stands_next_to_ours():
    trials = [trial(dataset="a", repetition=k, status="failed") for k in range(2)]
    made = table(trials, {"where": "Table 9", "rows": {"a": {"BinAgg": "N/A"}, "z": {"BinAgg": "N/A"}}})
    assert cell(made, "A", "BinAgg").endswith("(0; 2 failed), paper N/A")
    assert len(made.rows) == 1, "a data set of which nobody has anything"


def test_what_the_paper_has_of_methods_that_the_table_does_not_show_is_left_out():
    trials = [trial(value=0.3, repetition=k, dataset="a") for k in range(2)]
    made = table(trials, PUBLISHED, show=["BinAgg", "AIM"], beside={"AIM": "GAN"})
    assert made.header == ["", "BinAgg", "GAN"], "a method that is to be shown and was not run stands there"
    made = table(trials, PUBLISHED, show=["BinAgg"])
    assert made.header == ["", "BinAgg"] and "GAN" not in set(made.tidy["series"])
    assert [line[0] for line in made.rows] == ["A", "z"], "a data set that only the paper has"


def test_the_csv_has_the_columns_that_say_something():
    trials = [trial(value=0.3, repetition=k, dataset="a", calibration=c) for c in ("tight", "paper") for k in range(2)]
    known, both = {"method", "published", "verdict"}, table(trials, PUBLISHED).tidy
    assert {*table(trials[:1]).tidy}.isdisjoint(known), "a method has the name of its series, and nothing is published"
    assert known <= {*both} and set(both["method"]) == {"BinAgg", "GAN"}


def test_calibrations_are_columns_and_both_are_shown_with_the_paper():
    trials = [trial(value=v, repetition=k, dataset="a", calibration=c)
              for c, v in (("tight", 0.5), ("paper", 0.3)) for k in range(2)]  # fmt: skip
    made = table(trials, PUBLISHED)
    assert cell(made, "A", "BinAgg (paper)").endswith("paper 0.3: within")
    assert cell(made, "A", "BinAgg (tight)").endswith("paper 0.3: higher")


def test_a_method_may_be_compared_with_a_published_number_of_another_name():
    trials = [trial("aim", value=0.3, repetition=k, dataset="a") for k in range(2)]
    assert cell(table(trials, PUBLISHED, beside={"AIM": "BinAgg"}), "A", "AIM").endswith("paper 0.3: within")


def test_a_median_stands_with_its_quartiles_and_the_number_that_it_is_of():
    values = (0.1, 0.2, 0.3, 0.4, 5000.0)
    trials = [trial(value=v, repetition=k, dataset="a") for k, v in enumerate(values)]
    trials.append(trial(repetition=5, dataset="a", status="no_estimate"))
    made = table(trials, statistic="median")
    assert cell(made, "A", "BinAgg") == "0.3, 0.2 to 0.4 (5; 1 no estimate)"
    assert made.footnotes[0].startswith("Cells: median and quartiles")
    assert "median" not in table(trials).tidy
    with pytest.raises(UserError, match="unknown statistic 'mode'"):
        table(trials, statistic="mode")


def test_a_run_without_a_value_counts_as_the_trivial_answer_where_a_method_has_one():
    how = {1: "no_estimate", 2: "failed"}
    trials = [trial(value=0.6, repetition=k, dataset="a", status=how.get(k, "done")) for k in range(3)]
    trials += [trial("aim", value=0.5, repetition=k, dataset="a") for k in range(3)]
    trials += [trial("aim", dataset="b", status="no_estimate"), trial(dataset="b", repetition=1, value=0.5)]
    trials += [trial(method, value=math.nan, repetition=3, dataset="a") for method in ("aim", "binagg")]
    made = table(trials, level=0.0)
    assert cell(made, "A", "BinAgg").startswith("0.20 ± 0.20 (1; 1 no estimate; 1 failed)")
    assert cell(made, "A", "AIM") == "0.5000 ± 0 (3)", "in the last repetition there is nothing to compare with"
    assert not any("trivial" in sentence for sentence in table(trials).footnotes)
    median = table(trials[:3] + trials[3:6], level=0.0, statistic="median")
    assert cell(median, "A", "BinAgg") == "0, 0 to 0.3 (1; 1 no estimate; 1 failed)"
    none = table([trial(status="no_estimate", dataset="a"), trial("aim", dataset="a")], level=0.0, statistic="median")
    assert cell(none, "A", "BinAgg") == "0, 0 (0; 1 no estimate)"


def test_numbers_of_another_source_than_the_paper_are_called_by_its_name():
    made = table([trial(dataset="a")], {"source": "package", "where": "its commit", "rows": {"a": {"BinAgg": 0.31}}})
    assert cell(made, "A", "BinAgg") == "0.3000 (1), package 0.31" and "Package: its commit" in made.footnotes


def test_settings_are_columns_and_the_paper_speaks_of_its_method_only():
    trials = [trial(name, value=0.3, repetition=k, dataset="a", parameters={"theta": theta})
              for name in ("binagg", "aim") for theta in (-70.0, 0.0) for k in range(2)]  # fmt: skip
    published = PUBLISHED | {"method": "BinAgg", "rows": {"a": {0: 0.30, -70: 0.2, 50: 0.1}}}
    made = table(trials, published, x=THETA)
    assert made.header == ["", "", "-70", "0", "50"] and [line[:2] for line in made.rows] == [
        ["A", "BinAgg"],
        ["A", "AIM"],
    ]
    assert made.rows[0][2:] == [
        "0.3000 ± 0 (2), paper 0.2: higher", "0.3000 ± 0 (2), paper 0.3: within", "not run, paper 0.1"
    ]  # fmt: skip
    assert made.rows[1][2:] == ["0.3000 ± 0 (2)", "0.3000 ± 0 (2)", "not run"]


def test_a_method_without_the_parameter_of_the_columns_has_one_of_its_own():
    trials = [trial("exact", dataset="a"), *(trial(dataset="a", parameters={"theta": theta}) for theta in (0.0, 5.0))]
    trials += [trial("aim", dataset="a", parameters={"theta": 0.0})]
    made = table(trials, x=THETA)
    assert made.header == ["", "", "none", "0", "5"]
    reported = {line[1]: [bool(text) for text in line[2:]] for line in made.rows}
    assert reported["OLS"] == [True, False, False]
    assert reported["BinAgg"] == [False, True, True]
    assert next(line[2:] for line in made.rows if line[1] == "AIM") == ["", "0.3000 (1)", "not run"]


def test_epsilon_is_the_column_and_the_reference_has_its_own():
    values = {("exact", math.inf): 0.1, ("aim", 0.25): 0.4, ("aim", 1.0): 0.2}
    trials = [trial(name, value=v, repetition=k, dataset="a", epsilon=e)
              for (name, e), v in values.items() for k in range(2)]  # fmt: skip
    published = PUBLISHED | {"rows": {"a": {"AIM": {0.25: 0.4, 0.5: 0.3, 1: 0.3}, "real": {"inf": 0.1}}}}
    made = table(trials, published, x="release.budget.epsilon", beside={"OLS": "real"})
    assert made.header == ["", "", "0.25", "0.5", "1", "inf"]
    assert made.rows == [
        ["A", "OLS", "", "", "", "0.1000 ± 0 (2), paper 0.1: within"],
        ["A", "AIM", "0.4000 ± 0 (2), paper 0.4: within", "not run, paper 0.3", "0.2000 ± 0 (2), paper 0.3: lower", ""],
    ]


def test_seconds_are_those_of_the_release_and_of_the_model_without_a_verdict():
    trials = [trial(dataset="a", release_seconds=0.5, model_seconds=0.25, repetition=k) for k in range(2)]
    trials += [trial("aim", dataset="a", release_seconds=149.0, model_seconds=1.0, repetition=k) for k in range(2)]
    published = {"where": "Table 5", "rows": {"a": {"BinAgg": 0.1, "AIM": 40.0}}}
    made = table(trials, published, metric="seconds", ratios=[["AIM", "BinAgg"]])
    assert cell(made, "A", "BinAgg") == "0.7500 ± 0 (2), paper 0.1"
    assert "AIM / BinAgg, means of 1 data sets: 200" in made.footnotes
    assert "AIM / BinAgg, published, means of 1 data sets: 400" in made.footnotes


def test_what_was_spent_is_that_of_the_ledgers_and_a_reference_spends_nothing():
    trials = [trial(dataset="a", spent=0.65, repetition=k) for k in range(2)]
    trials += [trial("exact", dataset="a", epsilon=math.inf)]
    made = table(trials, metric="spent_epsilon")
    assert made.header == ["", "BinAgg"]
    assert cell(made, "A", "BinAgg") == "0.6500 ± 0 (2)"


@pytest.mark.parametrize("x", [None, "release.budget.delta"])
def test_the_best_private_methods_of_a_data_set_are_marked_and_no_others(x):
    values = {"exact": (0.1, 0.1), "binagg": (0.2, 0.22), "aim": (0.3, 0.32)}
    trials = [trial(name, dataset=data, value=v if data == "a" else -v, repetition=k,
                    epsilon=math.inf if name == "exact" else 1.0)
              for name, some in values.items() for k, v in enumerate(some) for data in "ab"]  # fmt: skip
    made = table(trials, **({"x": x} if x else {}))
    marked = {(made.rows[row][0], made.rows[row][1] if x else made.header[column]) for row, column in made.best}
    assert marked == {("A", "BinAgg"), ("B", "AIM")}
    assert all("±" in made.rows[row][column] for row, column in made.best)
    assert not table(trials, statistic="median").best
