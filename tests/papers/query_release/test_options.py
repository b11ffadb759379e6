"""What options are worth: differences from the declared setting, worked out by hand, and the declared study itself."""

import pytest
from report.made_up import make_score, make_trial

from dpbench.config import compose, paper_of
from dpbench.grid.seeds import canonical
from dpbench.papers.query_release import option_of, options_table
from dpbench.report.frames.frame import trial_frame
from dpbench.report.frames.series import Series
from dpbench.report.frames.settings import placed, settings_of

LABELS = {"pep/released_answers": "PEP", "mwem/released_answers": "MWEM"}
SPEC = {
    "name": "options",
    "kind": "options_table",
    "title": "Options",
    "metric": "query_error_max",
    "x": "release.budget.epsilon",
    "panels": {"b": "B", "a": "A"},
}
DECLARED = {"gamma": 0, "repeated": "mean"}  # PEP's config has gamma alone, its function has both


def trials(values, mechanism="pep", dataset="a", epsilon=1.0, **parameters):
    """One trial per repetition; None is no number."""
    settings = {**(DECLARED if mechanism == "pep" else {"rate": 1.0}), **parameters}
    return [
        make_trial(mechanism, "released_answers", epsilon, place, metrics=["query_error_max"], dataset=dataset,
                   parameters=settings, scores=[make_score("query_error_max", value, "lower")])
        for place, value in enumerate(values)
    ]  # fmt: skip


def table(given, **changes):
    spec = SPEC | changes
    return options_table(placed(trial_frame(given, settings_of(spec)), spec), LABELS, spec, {})


def test_an_option_has_the_paired_difference_from_the_declared_setting():
    """0.1 and 0.3 between pairs; 12.7 standard errors of 0.1 are half of Student's interval. The third has no pair."""
    made = table([*trials([0.2, 0.6]), *trials([0.3, 0.9, 5.0], gamma=0.5)])
    assert made.header == ["", "", "option", "1"]
    assert made.rows == [
        ["A", "PEP", "declared", "0.40 ± 0.20 (2)"],
        ["A", "PEP", "gamma=0.5", "+0.2 ± 1.3 (2)"],
    ]
    option = made.tidy[made.tidy["option"] == "gamma=0.5"].to_dict("records")[0]
    assert (option["mean"], option["se"], option["count"]) == (pytest.approx(0.2), pytest.approx(0.1), 2)
    assert option["half"] == pytest.approx(12.706 * 0.1, rel=1e-4)


def test_an_option_is_named_by_what_is_not_declared_in_config_or_function():
    rows = table([*trials([0.2]), *trials([0.1], repeated="all"), *trials([0.1], gamma=1.0, repeated="all")]).rows
    assert [row[2] for row in rows] == ["declared", "gamma=1.0, repeated=all", "repeated=all"]
    assert rows[2][3] == "-0.1000 (1)"  # one pair has no interval


def test_a_parameter_that_the_config_leaves_out_is_declared_by_the_function():
    """PEP's `increase`, which is None."""
    rows = table([*trials([0.2]), *trials([0.1], increase=2), *trials([0.3], gamma=0.5)]).rows
    assert [row[2] for row in rows] == ["declared", "gamma=0.5", "increase=2"]
    assert [row[3] for row in rows] == ["0.2000 (1)", "+0.1000 (1)", "-0.1000 (1)"]


def test_options_stand_in_the_order_in_which_it_is_said_whose_they_are():
    given = [*trials([0.2]), *trials([0.1], gamma=0.5), *trials([0.1], gamma=1.0), *trials([0.1], repeated="all")]
    made = table(given, whose={"pep": {"repeated=all": "the authors' code", "gamma=1.0": "ours"}})
    assert [row[2:4] for row in made.rows] == [
        ["declared", ""], ["repeated=all", "the authors' code"], ["gamma=1.0", "ours"], ["gamma=0.5", ""],
    ]  # fmt: skip
    assert made.header[3] == "whose"


def test_methods_data_sets_and_budgets_have_cells_of_their_own():
    given = [*trials([0.2]), *trials([0.1], gamma=0.5), *trials([0.3], gamma=0.5, epsilon=2.0)]
    given += [*trials([0.2], "mwem", "b"), *trials([0.5], "mwem", "b", rate=0.5), *trials([0.1], "mwem")]
    made = table(given)
    assert made.rows == [
        ["B", "MWEM", "declared", "0.2000 (1)", "not run"],
        ["B", "MWEM", "rate=0.5", "+0.3000 (1)", "not run"],
        ["A", "PEP", "declared", "0.2000 (1)", "not run"],
        ["A", "PEP", "gamma=0.5", "-0.1000 (1)", "no pair"],
    ], "MWEM on A has one setting, and nothing to tell"
    ids = {trial.id for trial in given if trial.key.release.mechanism.name == "mwem"} - {given[-1].id}
    assert set(made.trials[1, 3]) == ids and len(made.trials[0, 3]) == 1


def test_intervals_that_leave_out_zero_are_counted():
    sure = [*trials([0.20, 0.21, 0.22]), *trials([0.10, 0.111, 0.12], gamma=0.5), *trials([0.5, 0.51, 0.52], gamma=1.0)]
    reported = table([*sure, *trials([0.1, 0.2, 0.4], repeated="all")]).footnotes
    assert reported[1].startswith("Of 3 differences the interval lies below 0 in 1, above 0 in 1; lower is better")
    assert reported[2] == "By option: PEP gamma=0.5 1 below, 0 above, of 1; PEP gamma=1.0 0 below, 1 above, of 1"


def test_an_option_that_failed_everywhere_is_not_left_out():
    made = table([*trials([0.2]), *trials([float("nan")], gamma=0.5)])
    assert made.rows[1] == ["A", "PEP", "gamma=0.5", "no pair"]
    assert any("No value (failed, no estimate or not finite): PEP 1 of 2" in text for text in made.footnotes)


def test_nothing_is_shown_of_methods_without_options():
    assert table(trials([0.2])).rows == []


def test_the_study_has_every_option_that_the_paper_s_table_names_and_the_declared_settings():
    """One option at a time is changed, so that a difference is that option's, or all of a code or a text at once."""
    spec = next(one for one in paper_of("query_release").report["figures"] if one["name"] == "options_max")
    found: dict[str, set[str]] = {}
    for name in spec["experiments"]:
        grids = compose([f"experiment={name}"]).grids
        assert {grid.dataset["name"] for grid in grids} == {"dutch_queries", "law_queries"}
        for grid in grids:
            for part in grid.mechanisms:
                variant = ", ".join(
                    f"{key}={value if isinstance(value, str) else canonical(value)}"
                    for key, value in sorted(part.parameters.items())
                    if key not in ("workload", "max_model_mb", "hidden")
                )
                series = Series(part.name, "tight", variant, "released_answers", "", "", 0)
                found.setdefault(part.name, set()).add(option_of(series))
    assert found == {name: {"declared", *options} for name, options in spec["whose"].items()}
