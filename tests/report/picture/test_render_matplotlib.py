"""The layout of a printed figure: panels, legend, title and footnote."""

import pandas as pd
import pytest

from dpbench.report.picture.looks import Look
from dpbench.report.picture.picture import Axis, Panel, Picture, Points, around
from dpbench.report.picture.render_matplotlib import rendered

from ..made_up import draw, make_trial


def figure_of(count=1, names=(), looks=None, title="", footnote=""):
    """A figure of equal panels with a line for each name; its footnote."""
    rows = pd.DataFrame([(name, x, x) for name in names for x in (0, 1)], columns=["series", "x", "y"])
    axis = Axis("", (0.0, 1.0))
    panels = [Panel(f"{place}", axis, axis, [Points(rows, "x", "y", bars=None)]) for place in range(count)]
    figure = rendered(Picture(title, panels, dict.fromkeys(looks or names, Look()), footnote, pd.DataFrame()))
    return figure, figure.texts[-1]


@pytest.mark.parametrize(("count", "columns"), [(1, 1), (2, 2), (3, 3), (4, 2), (5, 3), (6, 3)])
def test_panels_stand_three_in_a_row_and_four_in_a_square(count, columns):
    grid = figure_of(count)[0].axes
    assert len(grid) == count and grid[0].get_subplotspec().get_gridspec().ncols == columns


def test_the_legend_has_each_name_that_is_drawn_once_in_the_order_of_the_looks():
    figure, _ = figure_of(2, "ba", looks="acb")
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["a", "b"]


@pytest.mark.parametrize(("words", "lines"), [(4, 1), (40, 2)])
def test_a_title_does_not_meet_a_long_legend(words, lines):
    names = [f"the method {name} with a long name" for name in "abcdefghi"]
    figure, _ = figure_of(2, names, title=" ".join(["word"] * words))
    assert figure.get_suptitle().count("\n") == lines - 1


def test_a_long_footnote_makes_the_figure_higher():
    short, long = (figure_of(footnote="word " * words)[0] for words in (1, 100))
    assert long.get_figheight() > short.get_figheight()


def test_a_picture_has_what_fits_of_a_longer_footnote():
    _, footnote = figure_of(3, footnote=f"First. A long one{' and so on' * 100}. Last.")
    assert " ".join(footnote.get_text().split()) == "First. Last. Further notes: dpbench report."


def test_a_footnote_of_wide_letters_stays_within_the_figure():
    figure, footnote = figure_of(3, footnote="WORD " * 200)
    assert footnote.get_window_extent().x1 <= figure.bbox.width


def test_a_long_legend_does_not_meet_the_footnote():
    figure, footnote = figure_of(3, [f"method {place}" for place in range(18)], footnote="word " * 110)
    figure.draw_without_rendering()
    assert figure.legends[0].get_window_extent().y0 > footnote.get_window_extent().y1


def test_limits_around_values_are_those_that_matplotlib_would_choose():
    figure, _ = draw([make_trial(mse=mse, epsilon=eps) for mse, eps in ((0.25, 1.0), (0.5, 0.1))], yscale="linear")
    (axes,) = figure.axes
    chosen = axes.get_ylim()
    axes.autoscale(axis="y")
    assert axes.get_ylim() == pytest.approx(chosen)
    assert around([0.01, 1.0], log=True) == pytest.approx((0.01 / 100**0.05, 100**0.05))
