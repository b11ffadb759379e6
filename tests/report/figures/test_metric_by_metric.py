"""A metric against another: what a point stands for, and which methods have none."""

import math

import pytest

from ..made_up import draw, footnote, make_trial

MSE = {"adult": {"ssp": 0.4, "adassp": 0.1}, "fire": {"ssp": 1.6, "adassp": 0.9}}
SECONDS = {"ssp": 1.0, "adassp": 4.0}


def trials(mse=MSE, **settings):
    return [
        make_trial(method, mse=value, dataset=dataset, release_seconds=SECONDS[method], model_seconds=0.0, **settings)
        for dataset, values in mse.items()
        for method, value in values.items()
    ]


def drawn(stored, **spec):
    figure, points = draw(stored, kind="metric_by_metric", **{"against": "seconds", **spec})
    return figure, points.set_index(["panel", "series"])


def test_a_panel_is_a_data_set_at_an_epsilon_with_its_references():
    reference = make_trial("exact", epsilon=math.inf, mse=0.05, release_seconds=0.5, model_seconds=0.0)
    figure, points = drawn([*trials(), *trials(epsilon=1.0), reference], panels={"adult": "Adult"})
    titles = ["Adult, ε = 0.1", "Adult, ε = 1", "fire, ε = 0.1", "fire, ε = 1"]
    assert [axes.get_title() for axes in figure.axes] == titles
    assert points.loc["Adult, ε = 1", ["x", "y"]].to_numpy().tolist() == [[0.5, 0.05], [1.0, 0.4], [4.0, 0.1]]
    assert "public" not in points.loc["fire, ε = 1"].index


def test_budgets_of_two_deltas_are_not_averaged():
    figure, _ = drawn([*trials(), *trials(delta=1e-6)])
    titles = [axes.get_title() for axes in figure.axes]
    assert titles[:2] == ["adult, ε = 0.1, δ = 1e-06", "adult, ε = 0.1, δ = 1e-05"] and len(titles) == 4


def test_pooled_points_are_geometric_means_over_the_data_sets_that_every_method_ran_on():
    figure, points = drawn([*trials(), make_trial("ssp", dataset="taxi")], pooled=True)
    assert points.loc["ε = 0.1", "y"].to_dict() == pytest.approx({"SSP": 0.8, "AdaSSP": 0.3})
    assert points.loc["ε = 0.1", "x"].to_dict() == pytest.approx({"SSP": 1.0, "AdaSSP": 4.0})
    assert set(points["datasets"]) == {2} and "ε = 0.1: 2 data sets" in footnote(figure)


def test_a_pooled_panel_without_a_data_set_that_every_method_ran_on_says_so():
    apart = trials({"adult": {"ssp": 0.4}, "fire": {"adassp": 0.9}})
    figure, points = drawn(apart, pooled=True)
    assert points.empty and "ε = 0.1: 0 data sets" in footnote(figure)
    assert [text.get_text() for text in figure.axes[0].texts] == ["no data set has every method"]
    figure, points = drawn([*apart, *trials(epsilon=1.0)], pooled=True, xscale="log", yscale="log")
    assert set(points.index) == {("ε = 1", "SSP"), ("ε = 1", "AdaSSP")}
    assert points.loc["ε = 1", "y"].to_dict() == pytest.approx({"SSP": 0.8, "AdaSSP": 0.3})
    assert [len(axes.containers) for axes in figure.axes] == [0, 2]


def test_bars_are_standard_errors_and_what_lacks_a_value_is_counted():
    again = [*trials(), *trials({"adult": {"ssp": 0.6, "adassp": None}}, repetition=1)]
    figure, points = drawn(again)
    ssp, ada = (points.loc[("adult, ε = 0.1", name)] for name in ("SSP", "AdaSSP"))
    assert (ssp["y"], ssp["low"], ssp["high"]) == pytest.approx((0.5, 0.4, 0.6))
    assert (ada["count"], ada["trials"], ada["y"]) == (1, 2, 0.1)
    assert [text.get_text() for text in figure.axes[0].texts] == ["1"]


def test_a_point_beyond_the_axis_stands_at_its_edge_with_its_value():
    figure, points = drawn(trials(), xlim=[2.0, 10.0])
    assert points["x"].tolist() == [1.0, 4.0, 1.0, 4.0]
    assert [text.get_text() for text in figure.axes[0].texts] == ["at 1"]
    assert figure.axes[0].containers[0].lines[0].get_xdata() == [2.0]


def test_a_method_without_a_value_on_a_data_set_has_no_pooled_point():
    figure, points = drawn(trials(MSE | {"fire": {"ssp": 1.6, "adassp": None}}), pooled=True)
    assert math.isnan(points.loc[("ε = 0.1", "AdaSSP"), "y"]) and "AdaSSP 1 of 2" in footnote(figure)
    assert len(figure.axes[0].containers) == 1


def test_a_coverage_of_zero_stands_on_its_axis():
    _, points = drawn(trials({"adult": {"ssp": 0.0, "adassp": 0.5}}), yscale="linear", ylim=[0, 1], lines=[0.9])
    assert points["y"].tolist() == [0.0, 0.5]


def test_nothing_to_draw_is_an_empty_figure():
    assert drawn([])[1].empty
