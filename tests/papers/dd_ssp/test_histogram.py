import numpy as np
import pytest
from report.made_up import drawing, footnote, make_score, make_trial

from dpbench.errors import UserError
from dpbench.report.frames.frame import trial_frame
from dpbench.report.kinds import draw_figure

LABELS = {"objpert/released_coefficients": "ObjPert"}
SPEC = {
    "name": "margins", "kind": "histogram", "metric": "margins_inside", "title": "Margins", "epsilon": 1.0,
    "bounds": [-6, 6], "inside": "part within [-6, 6]", "xlabel": "margin",
}  # fmt: skip


def margins(counts, repetition=0, edges=(-8.0, 0.0, 8.0), **changes):
    """A trial whose histogram has these counts; the part inside is the one of the middle bins."""
    inside = sum(counts[1:-1]) / sum(counts)
    score = make_score("margins_inside", inside, "none", edges=list(edges), counts=counts)
    given = {"epsilon": 1.0, "metrics": ["margins_inside"], "scores": [score]} | changes
    return make_trial("objpert", "released_coefficients", repetition=repetition, **given)


def draw(trials, **changes):
    return drawing(draw_figure(trial_frame(trials), LABELS, SPEC | changes))


def test_counts_are_means_over_the_repetitions_with_what_lies_beyond_the_edges():
    figure, drawn = draw([margins([0, 30, 70, 0]), margins([0, 50, 40, 10], 1), margins([90, 5, 5, 0], epsilon=0.1)])
    assert list(drawn["count_mean"]) == [0, 40, 55, 5]
    assert list(drawn["count_se"]) == [0, 10, 15, 5]
    assert list(drawn["low_edge"]) == [-np.inf, -8, 0, 8] and list(drawn["high_edge"]) == [-8, 0, 8, np.inf]
    (text,) = [text.get_text() for text in figure.axes[0].texts]
    assert text == "part within [-6, 6]\nObjPert: 0.950 ± 0.050, 5 rows beyond the axis"
    outline, *bounds = figure.axes[0].lines
    assert outline.get_xydata().tolist() == [[-8, 0], [-8, 40], [0, 55], [8, 0]]
    assert outline.get_drawstyle() == "steps-post"
    assert [line.get_xdata()[0] for line in bounds] == [-6, 6]


def test_a_panel_per_data_set_and_an_outline_per_calibration():
    trials = [margins([0, 1, 2, 0], dataset=name, calibration=cal) for name in "ab" for cal in ("tight", "paper")]
    figure, drawn = draw(trials, panels={"b": "Second", "a": "First"})
    assert [axes.get_title() for axes in figure.axes] == ["Second", "First"]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["ObjPert (tight)", "ObjPert (paper)"]
    drawn_on = [(len(axes.lines), len(axes.collections)) for axes in figure.axes]
    assert drawn_on == [(4, 1), (4, 1)], "two outlines, one of them filled, and the bounds"
    assert len(drawn) == 16


def test_failed_trials_are_left_out_and_reported():
    figure, drawn = draw([margins([0, 1, 1, 0]), margins([0, 1, 1, 0], 1, status="failed")])
    assert set(drawn["repetitions"]) == {1}
    assert "ObjPert 1 of 2 at ε = 1" in footnote(figure)


def test_nothing_at_that_epsilon_is_said():
    figure, drawn = draw([margins([0, 1, 1, 0], epsilon=0.1)])
    assert not len(drawn)
    assert [text.get_text() for text in figure.axes[0].texts] == ["no trial has a score"]


def test_repetitions_with_different_edges_are_not_averaged():
    with pytest.raises(UserError, match="different edges"):
        draw([margins([0, 1, 1, 0]), margins([0, 1, 1, 0], 1, edges=(-9.0, 0.0, 9.0))])
