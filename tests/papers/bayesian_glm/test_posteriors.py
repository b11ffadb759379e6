import pytest
from report.made_up import drawing, footnote, make_score, make_trial

from dpbench.report.frames.frame import trial_frame
from dpbench.report.kinds import draw_figure
from dpbench.report.picture.render_vega import chart_of

LABELS = {"aim/logistic_rows": "Private"}
SPEC = {"name": "fig", "kind": "posteriors", "metric": "ks_distance", "title": "Posteriors", "epsilon": 1.0}


def posterior(shift, repetition=0, columns=("a", "b"), **changes):
    """A trial whose posterior is the non-private one moved by `shift`."""
    exact = [[0.0, 1.0, 2.0] for _ in columns]
    detail = {"columns": list(columns), "levels": [0.0, 0.5, 1.0], "nonprivate": exact}
    detail["posterior"] = [[x + shift for x in one] for one in exact]
    score = make_score("ks_distance", 0.3, "lower", **detail)
    given = {"epsilon": 1.0, "metrics": ["ks_distance"], "scores": [score]} | changes
    return make_trial("aim", "logistic_rows", repetition=repetition, **given)


def draw(trials, **changes):
    return drawing(draw_figure(trial_frame(trials), LABELS, SPEC | changes))


def test_a_panel_a_coefficient_with_mean_quantiles_and_their_band():
    figure, drawn = draw([posterior(1.0), posterior(3.0, 1), posterior(99.0, epsilon=0.1)])
    assert [axes.get_title() for axes in figure.axes] == ["a", "b"]
    private = drawn[(drawn["series"] == "Private") & (drawn["column"] == "b")]
    assert list(private["mean"]) == [2.0, 3.0, 4.0]
    assert list(private["low"]) == pytest.approx([1.05, 2.05, 3.05])
    assert list(private["repetitions"]) == [2, 2, 2]
    reference = drawn[(drawn["series"] == "non-private") & (drawn["column"] == "a")]
    assert list(reference["mean"]) == [0.0, 1.0, 2.0]
    assert list(reference["level"]) == [0.0, 0.5, 1.0]
    reported = footnote(figure)
    assert "ε = 1" in reported and "middle 95 %" in reported
    assert len(figure.legends[0].get_lines()) == 2, "lines, not bands"


def test_each_epsilon_has_a_row_of_panels_on_common_axes_and_a_chart_with_its_own_rows():
    trials = [posterior(1.0), posterior(9.0, epsilon=0.1), posterior(99.0, epsilon=5.0)]
    made = draw_figure(trial_frame(trials), LABELS, SPEC | {"epsilon": [0.1, 1.0]})
    figure, _ = drawing(made)
    assert [axes.get_title() for axes in figure.axes] == ["a, ε = 0.1", "b, ε = 0.1", "a, ε = 1", "b, ε = 1"]
    assert len({axes.get_xlim() for axes in figure.axes}) == 1
    for axes, shift in zip(figure.axes, [9.0, 9.0, 1.0, 1.0], strict=True):
        low, high = axes.get_xlim()
        assert low <= 0 and high >= 11 and sum(low <= tick <= high for tick in axes.get_xticks()) <= 6
        assert [list(line.get_xdata()) for line in axes.lines] == [[0, 1, 2], [shift, shift + 1, shift + 2]]
    assert "ε" not in footnote(figure), "the panels say it"
    for panel, epsilon in zip(chart_of(made)["panels"], [0.1, 0.1, 1.0, 1.0], strict=True):
        for rows in panel["spec"]["datasets"].values():
            assert [(row["level"], row["epsilon"]) for row in rows] == [(u, epsilon) for u in (0, 0.5, 1)] * 2


def test_what_did_not_converge_is_reported_and_not_drawn():
    lost = make_trial("aim", "logistic_rows", repetition=1, epsilon=1.0, metrics=["ks_distance"], status="unconverged")
    figure, drawn = draw([posterior(1.0), lost])
    assert set(drawn["repetitions"]) == {1}
    assert "No value (failed, no estimate or not finite): Private 1 of 2" in footnote(figure)


def test_coefficients_of_several_data_sets_are_distinguished_and_no_trials_are_an_empty_panel():
    figure, _ = draw([posterior(1.0, dataset=name, columns=["a"]) for name in "uv"], panels={"u": "First"})
    assert [axes.get_title() for axes in figure.axes] == ["First: a", "v: a"]
    assert not len(draw([posterior(1.0)], epsilon=2.0)[1])
