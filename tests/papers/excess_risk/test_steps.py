import pytest
from report.made_up import drawing, footnote, make_score, make_trial

from dpbench.report.frames.frame import trial_frame
from dpbench.report.kinds import draw_figure

LABELS = {"aim/logistic_rows": "AIM-Synth"}
SPEC = {"name": "bounds", "kind": "steps", "metric": "risk_bound_logistic", "title": "Bounds", "epsilon": 1.0}


def bounded(theorem, measured, repetition=0, **changes):
    """A trial with a bound and what it bounds."""
    steps = [["theorem", theorem], ["risks", 0.2], ["measured", measured]]
    score = make_score("risk_bound_logistic", theorem, "none", steps=steps)
    given = {"epsilon": 1.0, "metrics": ["risk_bound_logistic"], "scores": [score]} | changes
    return make_trial("aim", "logistic_rows", repetition=repetition, **given)


def draw(trials, **changes):
    return drawing(draw_figure(trial_frame(trials), LABELS, SPEC | changes))


def test_every_step_is_drawn_with_its_mean_and_its_extremes_in_the_order_of_the_detail():
    figure, drawn = draw([bounded(1e6, 0.02), bounded(3e6, 0.04, 1), bounded(9e9, 0.5, epsilon=0.1)])
    assert list(drawn["step"]) == ["theorem", "risks", "measured"]
    assert list(drawn["mean"]) == [2e6, 0.2, pytest.approx(0.03)]
    assert list(drawn["least"]) == [1e6, 0.2, 0.02] and list(drawn["most"]) == [3e6, 0.2, 0.04]
    (axes,) = figure.axes
    assert axes.get_yscale() == "log"
    assert [label.get_text() for label in axes.get_xticklabels()] == ["theorem", "risks", "measured"]


def test_what_is_not_above_zero_is_left_out_of_the_line_and_kept_in_the_numbers():
    figure, drawn = draw([bounded(1e6, -0.01)])
    assert drawn["mean"].iloc[-1] == -0.01
    assert len(figure.axes[0].lines[0].get_ydata()) == 2
    assert "0 or less are left out" in footnote(figure)


def test_a_panel_per_data_set_and_nothing_at_another_epsilon():
    trials = [bounded(1e6, 0.02, dataset=name) for name in "ab"]
    figure, _ = draw(trials, panels={"b": "Second", "a": "First"})
    assert [axes.get_title() for axes in figure.axes] == ["Second", "First"]
    assert not len(draw(trials, epsilon=2.0)[1])


def test_a_bound_that_has_one_step_more_stands_before_the_others():
    more = bounded(1e6, 0.02)
    first = [["promise", 1e8], *more.scores[0].detail["steps"]]
    more = bounded(1e6, 0.02, scores=[make_score("risk_bound_logistic", 1e6, "none", steps=first)], calibration="tight")
    figure, _ = draw([bounded(1e6, 0.02, calibration="paper"), more])
    (axes,) = figure.axes
    assert [label.get_text() for label in axes.get_xticklabels()] == ["promise", "theorem", "risks", "measured"]
    assert {tuple(line.get_xdata()) for line in axes.lines if len(line.get_xdata()) > 2} == {
        (-3, -2, -1),
        (-4, -3, -2, -1),
    }
