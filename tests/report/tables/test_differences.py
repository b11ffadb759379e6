import pytest

from dpbench.errors import UserError
from dpbench.report.frames.frame import trial_frame
from dpbench.report.frames.settings import placed, settings_of
from dpbench.report.tables.differences import difference_table, method_difference_table

from ..made_up import make_score, make_trial

LABELS = {"aim/xgboost": "AIM", "exact/xgboost": "real"}
SPEC = {
    "name": "leak",
    "kind": "difference_table",
    "title": "What the leak is worth",
    "metric": "auc",
    "x": "release.budget.epsilon",
    "setting": "release.split.protocol",
    "values": ["authors", "split"],
    "panels": {"b": "B", "a": "A"},
}


def trials(values, epsilon=1.0, **changes):
    """One trial for each protocol and repetition; nan fails."""
    return [
        make_trial("aim", "xgboost", epsilon, k, metrics=["auc"], protocol=protocol,
                   scores=[make_score("auc", v, "higher")], **changes)
        for protocol, found in values.items() for k, v in enumerate(found)
    ]  # fmt: skip


def table(given, **changes):
    spec = SPEC | changes
    return difference_table(placed(trial_frame(given, settings_of(spec)), spec), LABELS, spec, {})


def test_differences_are_of_the_same_repetition():
    """0.1 and 0.3 between pairs, whose values themselves differ by much more; the third has no partner."""
    given = trials({"split": [0.2, 0.6, 0.9], "authors": [0.3, 0.9]}, dataset="a")
    made = table(given)
    (cell,) = made.tidy.to_dict("records")
    assert (cell["mean"], cell["se"], cell["count"]) == (pytest.approx(0.2), pytest.approx(0.1), 2)
    assert made.header == ["", "", "1"] and made.rows == [["A", "AIM", "0.20 ± 0.10 (2)"]]
    assert made.footnotes[0].startswith("Cells: auc at release.split.protocol = authors minus that at split")


def test_the_interval_of_three_pairs_is_students_with_two_degrees_of_freedom():
    """4.30 standard errors: means of 3.3 and of 5.2 of them."""
    for values, above in (([0.60, 0.65, 0.78], 0), ([0.60, 0.65, 0.70], 1)):
        made = table(trials({"split": [0.5] * 3, "authors": values}, dataset="a"))
        assert any(f"lies above 0 in {above}, below 0 in 0" in text for text in made.footnotes)


def test_data_sets_and_budgets_have_cells_of_their_own_and_a_gap_is_said():
    given = [
        *trials({"split": [0.5, 0.6], "authors": [0.7, 0.8001]}, dataset="a"),
        *trials({"split": [0.5, 0.6], "authors": [0.4, 0.6]}, dataset="b"),
        *trials({"split": [0.5], "authors": [0.5]}, epsilon=2.0, dataset="b"),
        make_trial("exact", "xgboost", float("inf"), metrics=["auc"], scores=[make_score("auc", 0.9, "higher")]),
    ]
    made = table(given)
    assert made.header == ["", "", "1", "2"]
    assert [line[0] for line in made.rows] == ["B", "A"] and made.rows[1][3] == "not run"
    assert (
        "Mean of all 3 cells: 0.05; their Student's interval of 95 % lies above 0 in 1, below 0 in 0" in made.footnotes
    )


def test_without_pairs_it_says_so():
    made = table(trials({"split": [0.5]}))
    assert made.rows == [] and "No repetition has both values" in made.footnotes


def less(method, **changes):
    """The table of differences from a method, in place of those from a setting."""
    spec = {key: value for key, value in SPEC.items() if key not in ("setting", "values")}
    return spec | {"less": method} | changes


def scored(mechanism, model, epsilon, values, **changes):
    return [
        make_trial(mechanism, model, epsilon, k, metrics=["auc"], scores=[make_score("auc", v, "higher")], **changes)
        for k, v in enumerate(values)
    ]


LABELLED = {"aim/xgboost": "AIM", "aim/mlp": "AIM, network", "exact/xgboost": "real", "exact/mlp": "real, network"}


def drawn(given, spec):
    return method_difference_table(placed(trial_frame(given, settings_of(spec)), spec), LABELLED, spec, {})


def test_a_mechanism_is_compared_with_each_budget_with_the_same_model():
    given = [
        *scored("exact", "xgboost", float("inf"), [0.9, 0.8]),
        *scored("exact", "mlp", float("inf"), [0.5, 0.5]),
        *scored("aim", "xgboost", 1.0, [0.8, 0.6]),
        *scored("aim", "xgboost", 2.0, [0.9, 0.8]),
        *scored("aim", "mlp", 1.0, [0.6, 0.8]),
    ]
    made = drawn(given, less("exact"))
    assert [row[1:] for row in made.rows] == [
        ["AIM", "-0.150 ± 0.050 (2)", "0.000 ± 0 (2)"], ["AIM, network", "0.20 ± 0.10 (2)", "not run"]
    ]  # fmt: skip
    assert "auc minus that of the same model on exact, mean ± standard error" in made.footnotes[0]


def test_a_method_is_compared_with_another_at_the_same_budget_and_calibration():
    given = [
        *scored("aim", "xgboost", 1.0, [0.8, 0.6], calibration="tight"),
        *scored("aim", "xgboost", 1.0, [0.7, 0.6], calibration="paper"),
        *scored("aim", "mlp", 1.0, [0.9, 0.8], calibration="tight"),
        *scored("aim", "mlp", 2.0, [0.9, 0.8], calibration="tight"),
        *scored("exact", "mlp", float("inf"), [0.5, 0.5]),
    ]
    made = drawn(given, less("AIM", statistic="mean_95"))
    assert made.rows == [["adult", "AIM, network (tight)", "0.15 ± 0.64 (2)"]]
    assert made.tidy["half"].item() == pytest.approx(12.706 * 0.05, rel=1e-4)


def test_a_method_is_compared_with_another_under_one_calibration():
    given = [
        *scored("aim", "xgboost", 1.0, [0.75, 0.5], calibration="tight"),
        *scored("aim", "xgboost", 1.0, [0.625, 0.5], calibration="paper"),
        *scored("aim", "mlp", 1.0, [1.25, 1.0], calibration="authors"),
        *scored("exact", "mlp", 1.0, [0.5, 0.5]),
    ]
    made = drawn(given, less("AIM (tight)"))
    assert [row[1:] for row in made.rows] == [
        ["AIM (paper)", "-0.062 ± 0.062 (2)"],
        ["AIM, network (authors)", "0.5000 ± 0 (2)"],
        ["real, network", "-0.12 ± 0.12 (2)"],
    ]


def test_what_each_method_comes_to_is_said_where_one_has_several_cells():
    one = [
        *scored("exact", "xgboost", float("inf"), [0.5, 0.25]),
        *scored("exact", "mlp", float("inf"), [0.5, 0.25]),
        *scored("aim", "xgboost", 1.0, [0.75, 0.5]),
        *scored("aim", "mlp", 1.0, [1.5, 0.25]),
    ]
    assert not any("By method" in text for text in drawn(one, less("exact")).footnotes)
    made = drawn([*one, *scored("aim", "xgboost", 2.0, [0.75, 0.5])], less("exact"))
    assert "By method: AIM 2 above, 0 below, of 2; AIM, network 0 above, 0 below, of 1" in made.footnotes


def test_what_differences_are_from_is_a_method_or_a_mechanism():
    with pytest.raises(UserError, match="unknown method or mechanism 'AIN'; did you mean 'AIM'"):
        drawn(scored("aim", "mlp", 1.0, [0.5]), less("AIN"))
