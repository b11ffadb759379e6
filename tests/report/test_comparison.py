import math

import pytest
from made_up import make_score, make_trial

from dpbench.report.comparison import comparison_table
from dpbench.report.frame import trial_frame
from dpbench.report.metric_by_setting import settings_of
from dpbench.report.printed import verdict
from dpbench.report.table_kinds import write_table

LABELS = {
    f"{mechanism}/{model}": label
    for mechanism, label in {"exact": "OLS", "binagg": "BinAgg", "aim": "AIM"}.items()
    for model in ("xgboost", "svr")
}
SPEC = {"name": "t", "kind": "comparison_table", "title": "T", "metric": "rel_mse", "panels": {"b": "B", "a": "A"}}
PRINTED = {
    "where": "Table 9",
    "repetitions": 4,
    "digit": 0.01,
    "rows": {"a": {"BinAgg": 0.30, "GAN": 0.9}, "z": {"BinAgg": 0.7}},
}
THETA = "release.mechanism.parameters.theta"


def trial(mechanism="binagg", model="xgboost", value=0.3, repetition=0, **changes):
    scores = [make_score("rel_mse", value, "lower")]
    return make_trial(mechanism, model, repetition=repetition, metrics=["rel_mse"], scores=scores, **changes)


def table(trials, printed=None, **changes):
    spec = SPEC | changes
    frame = trial_frame(trials, settings_of(spec))
    return comparison_table(frame, LABELS, spec, printed or {})


def cell(made, row, column):
    return next(line for line in made.rows if line[0] == row)[made.header.index(column)]


@pytest.mark.parametrize(
    "mean, se, count, expected",
    [
        (0.3049, 0.0, 100, "within"),  # half a unit of the last digit
        (0.3051, 0.0, 100, "higher"),
        (0.2949, 0.0, 100, "lower"),
        (0.3050 + 1.95 * 0.01 * math.sqrt(2), 0.01, 100, "within"),  # as many repetitions: twice the variance
        (0.3050 + 1.97 * 0.01 * math.sqrt(2), 0.01, 100, "higher"),
        (0.2950 - 1.97 * 0.01 * math.sqrt(1.1), 0.01, 10, "lower"),  # ours has a tenth of the repetitions
        (0.2950 - 1.95 * 0.01 * math.sqrt(1.1), 0.01, 10, "within"),
        (0.3, math.nan, 1, "cannot tell"),
        (math.nan, math.nan, 0, "cannot tell"),
    ],
)
def test_the_verdict_allows_for_both_errors_and_for_rounding(mean, se, count, expected):
    assert verdict(mean, se, count, printed=0.30, repetitions=100, digit=0.01) == expected


def test_a_row_a_data_set_in_the_order_of_titles_and_a_column_a_method():
    trials = [trial(name, dataset=data, value=v, epsilon="inf" if name == "exact" else 1.0)
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


def test_printed_numbers_stand_beside_with_a_verdict_and_those_not_run_are_said():
    trials = [trial(value=v, repetition=k, dataset="a") for k, v in enumerate((0.40, 0.42, 0.41, 0.43))]
    made = table(trials, PRINTED)
    assert cell(made, "A", "BinAgg") == "0.4150 ± 0.0065 (4), paper 0.3: higher"
    assert cell(made, "A", "GAN") == "not run, paper 0.9"
    assert cell(made, "z", "BinAgg") == "not run, paper 0.7", "a data set that only the paper has"
    assert "Of 3 comparisons with the print: higher 1, not run 2" in made.told
    assert any(sentence.startswith("Verdicts: ") and "1.96" in sentence for sentence in made.told)


def test_calibrations_are_columns_and_both_stand_beside_the_print():
    trials = [trial(value=v, repetition=k, dataset="a", calibration=c)
              for c, v in (("tight", 0.5), ("paper", 0.3)) for k in range(2)]  # fmt: skip
    made = table(trials, PRINTED)
    assert cell(made, "A", "BinAgg (paper)").endswith("paper 0.3: within")
    assert cell(made, "A", "BinAgg (tight)").endswith("paper 0.3: higher")


def test_a_method_may_stand_beside_a_printed_number_of_another_name():
    trials = [trial("aim", value=0.3, repetition=k, dataset="a") for k in range(2)]
    assert cell(table(trials, PRINTED, beside={"AIM": "BinAgg"}), "A", "AIM").endswith("paper 0.3: within")


def test_settings_are_columns_and_the_print_speaks_of_its_method_only():
    trials = [trial(name, value=0.3, repetition=k, dataset="a", parameters={"theta": theta})
              for name in ("binagg", "aim") for theta in (-70.0, 0.0) for k in range(2)]  # fmt: skip
    printed = PRINTED | {"method": "BinAgg", "rows": {"a": {0: 0.30, -70: 0.2, 50: 0.1}}}
    made = table(trials, printed, x=THETA)
    assert made.header == ["", "", "-70", "0", "50"] and [line[:2] for line in made.rows] == [
        ["A", "BinAgg"],
        ["A", "AIM"],
    ]
    assert made.rows[0][2:] == [
        "0.3000 ± 0 (2), paper 0.2: higher", "0.3000 ± 0 (2), paper 0.3: within", "not run, paper 0.1"
    ]  # fmt: skip
    assert made.rows[1][2:] == ["0.3000 ± 0 (2)", "0.3000 ± 0 (2)", "not run"]


def test_seconds_are_those_of_the_release_and_of_the_model_without_a_verdict():
    trials = [trial(dataset="a", release_seconds=0.5, model_seconds=0.25, repetition=k) for k in range(2)]
    trials += [trial("aim", dataset="a", release_seconds=149.0, model_seconds=1.0, repetition=k) for k in range(2)]
    printed = {"where": "Table 5", "rows": {"a": {"BinAgg": 0.1, "AIM": 40.0}}}
    made = table(trials, printed, metric="seconds", ratios=[["AIM", "BinAgg"]])
    assert cell(made, "A", "BinAgg") == "0.7500 ± 0 (2), paper 0.1"
    assert "AIM / BinAgg, means of 1 data sets: 200" in made.told
    assert "AIM / BinAgg in print, means of 1 data sets: 400" in made.told


def test_on_how_many_data_sets_a_method_is_best_here_and_in_print():
    ours = {"a": (0.2, 0.3), "b": (0.5, 0.4)}
    trials = [trial(name, dataset=data, value=v)
              for data, values in ours.items() for name, v in zip(("binagg", "aim"), values, strict=True)]  # fmt: skip
    printed = {"where": "T", "rows": {name: {"BinAgg": 0.1, "AIM": 0.2} for name in "abc"}}
    told = table(trials, printed, ranks=[{"method": "BinAgg", "among": ["BinAgg", "AIM"]}]).told
    assert "BinAgg: lowest mean on 1 and second lowest on 1 of 2 data sets, among BinAgg, AIM" in told
    assert "BinAgg in print: lowest mean on 3 and second lowest on 0 of 3 data sets, among BinAgg, AIM" in told


def test_files_of_a_table_and_none_without_trials(tmp_path):
    paths = write_table([trial(dataset="a")], LABELS, SPEC, PRINTED, tmp_path, ["limits: smoke"])
    assert [path.name for path in paths] == ["t.csv", "t.md", "t.tex"]
    assert "limits: smoke." in (tmp_path / "t.md").read_text()
    assert r"\toprule" in (tmp_path / "t.tex").read_text()
    assert write_table([], LABELS, SPEC, PRINTED, tmp_path / "none") == []
    assert write_table([trial(dataset="a")], LABELS, SPEC | {"show": ["AIM"]}, {}, tmp_path / "none") == []
