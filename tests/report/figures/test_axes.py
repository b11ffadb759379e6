"""Axes: ticks at the values that were run, log limits around what is shown, and marks for what is not."""

import math

import pandas as pd
import pytest

from dpbench.report.figures.axes import metric_axis, x_axis
from dpbench.report.picture.picture import Axis, Panel, Picture
from dpbench.report.picture.render_matplotlib import rendered

from ..made_up import draw, footnote, make_grid, make_trial


def drawn_on(cells, unit="", ylim=None, **spec):
    """The axes of these cells with a log metric axis, and the labels of its ticks."""
    y = metric_axis(cells, unit, ylim, {"metric": "mse", "yscale": "log", **spec})
    (axes,) = rendered(Picture("", [Panel("", Axis("", (0, 1)), y, [])], {}, "", pd.DataFrame())).axes
    axes.figure.draw_without_rendering()
    low, high = axes.get_ylim()
    ticks = zip(axes.get_yticks(), axes.get_yticklabels(), strict=True)
    return axes, [label.get_text() for tick, label in ticks if low <= tick <= high]


def cells_of(*numbers):
    """Cells of these means and standard errors."""
    return pd.DataFrame([{"value": mean, "low": mean - se, "high": mean + se} for mean, se in numbers])


def test_ticks_are_the_epsilons_of_the_trials_on_a_log_axis():
    figure, _ = draw(make_grid())
    axes = figure.axes[0]
    assert list(axes.get_xticks()) == [0.05, 0.1, 0.5, 1.0, 2.0]
    assert len(axes.xaxis.get_minorticklocs()) == 0
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    assert axes.get_xlim() == pytest.approx((0.05 / 1.35, 2.0 * 1.35))


def test_sizes_are_reported_in_thousands():
    axis = x_axis(pd.DataFrame({"x": [500.0, 10_000.0, 20_000.0]}), {"xlabel": "rows n"})
    assert list(axis.ticks.values()) == ["500", "10k", "20k"]
    assert axis.label == "rows n"


def test_evenly_spaced_settings_have_a_linear_axis():
    axis = x_axis(pd.DataFrame({"x": [0.1, 0.6, 1.1]}), {})
    assert (axis.log, list(axis.ticks)) == (False, [0.1, 0.6, 1.1])
    assert axis.limits == pytest.approx((0.05, 1.15))


def test_a_log_axis_holds_the_bars_with_five_per_cent_to_spare():
    axes, ticks = drawn_on(cells_of((1.0, 0.0), (10.0, 90.0)))
    # from 1 to 100: two decades, of which 5 per cent is a tenth of a decade
    assert axes.get_ylim() == pytest.approx((10**-0.1, 10**2.1))
    assert ticks == ["1", "2", "5", "10", "20", "50", "100"]


def test_a_bar_that_reaches_zero_counts_down_to_half_its_mean():
    axes, _ = drawn_on(cells_of((1.0, 3.0)))
    margin = 0.05 * math.log(4 / 0.5)
    assert axes.get_ylim() == pytest.approx((0.5 * math.exp(-margin), 4 * math.exp(margin)))


@pytest.mark.parametrize(
    ("ylim", "ticks"),
    [
        ((1, 1e5), ["1", "10", "100", "1000", "10000", "100000"]),
        ((0.08, 0.1), ["0.08", "0.084", "0.088"]),
        ((0.049, 0.48), ["0.05", "0.07", "0.1", "0.2", "0.3"]),
    ],
)
def test_ticks_are_powers_over_four_decades_more_of_them_within_one_and_even_within_half_a_one(ylim, ticks):
    axes, reported = drawn_on(cells_of((1.0, 0.0)), ylim=ylim)
    assert axes.get_ylim() == ylim and reported[: len(ticks)] == ticks


def test_the_axis_names_the_metric_with_its_unit_and_is_linear_without_a_positive_mean():
    axes, _ = drawn_on(cells_of((-1.0, 0.5)), unit="scaled target^2")
    assert (axes.get_ylabel(), axes.get_yscale()) == ("mse (scaled target²)", "linear")
    assert drawn_on(cells_of((1.0, 0.5)), unit="$^2", ylabel="MSE, in $^2")[0].get_ylabel() == "MSE, in $^2"


def test_means_outside_of_the_limits_are_marked_with_their_value():
    figure, drawn = draw([make_trial(mse=1234.5), make_trial("adassp", mse=0.1)], ylim=[0.05, 0.5])
    assert dict(zip(drawn["series"], drawn["clipped"], strict=True)) == {"SSP": "above", "AdaSSP": ""}
    assert [text.get_text() for text in figure.axes[0].texts] == ["1230"]
    assert "Arrows" in footnote(figure)
    assert figure.axes[0].get_ylim() == (0.05, 0.5)


def test_marks_of_one_place_are_stacked_above_and_below_the_axis():
    figure, drawn = draw([make_trial(mse=7.0), make_trial("adassp", mse=8.0), make_trial("aim", mse=0.01)], ylim=[1, 5])
    assert list(drawn["clipped"]) == ["above", "above", "below"]
    heights = {text.get_text(): text.xyann[1] for text in figure.axes[0].texts}
    assert heights["8"] < heights["7"] < 0 < heights["0.01"], "into the panel from its upper and lower edge"
