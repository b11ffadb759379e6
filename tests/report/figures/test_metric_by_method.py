"""A metric of each method on many data sets."""

import math

from dpbench.report.figures.metric_by_method import metric_by_method
from dpbench.report.frames.frame import trial_frame
from tests.report.made_up import LABELS, drawing, footnote, make_trial

SPEC = {"name": "by_method", "metric": "mse", "title": "Errors", "panels": {"adult": "Adult"}}


def drawn(stored, **spec):
    return drawing(metric_by_method(trial_frame(stored), LABELS, {**SPEC, **spec}))


def trials(epsilon=0.1):
    errors = {("ssp", "adult"): 0.3, ("ssp", "fire"): 0.5, ("adassp", "adult"): 0.2, ("adassp", "fire"): 0.4}
    return [
        make_trial(method, mse=error + place / 100, dataset=dataset, repetition=place, epsilon=epsilon)
        for (method, dataset), error in errors.items()
        for place in (0, 2)
    ]


def test_each_method_has_a_row_with_a_point_for_each_data_set():
    figure, points = drawn([*trials(), *trials(1.0), make_trial("exact", epsilon=math.inf)])
    assert [axes.get_title() for axes in figure.axes] == ["ε = 0.1", "ε = 1"]
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == ["SSP", "AdaSSP"]
    first = points[points["epsilon"] == 0.1]
    assert list(first["dataset"]) == ["Adult", "fire"] * 2 and first["mean"].round(6).tolist() == [
        0.31,
        0.51,
        0.21,
        0.41,
    ]
    assert (first["count"] == 2).all() and (first["trials"] == 2).all()


def test_a_point_needs_a_value_in_half_of_the_repetitions():
    lost = [make_trial("jlt", dataset="adult", repetition=place, status="failed") for place in range(2)]
    figure, points = drawn([*trials(), *lost, make_trial("jlt", dataset="adult", repetition=2)], lines=[{"aim": 0.1}])
    label = "jlt / linear_statistics"
    assert points.set_index("series").loc[label, ["count", "trials"]].tolist() == [1, 3]
    shown = [line for line in figure.axes[0].lines if line.get_label() == label]
    assert not any(len(line.get_xdata()) for line in shown)
    assert "none where fewer than half have one" in footnote(figure)


def test_points_beyond_the_axis_are_at_its_edge_which_is_said():
    figure, _ = drawn(trials(), xlim=[0.25, 0.45])
    places = {place for line in figure.axes[0].lines for place in line.get_xdata()}
    assert {0.25, 0.45} <= places and "Points beyond the axis are at its edge" in footnote(figure)
    assert "beyond" not in footnote(drawn(trials(), xlim=[0, 1])[0])
