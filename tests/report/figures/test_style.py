"""A method looks the same in every figure, whatever the user's matplotlib is set to."""

import numpy as np
import pandas as pd
import pytest
from matplotlib import rcParams
from matplotlib.figure import Figure
from PIL import Image, ImageColor

from dpbench.config import choices, paper_of
from dpbench.config.labels import labels, styles
from dpbench.errors import UserError
from dpbench.report.figures.style import (
    COLOURS,
    MARKERS,
    PNG_COLOURS,
    PNG_DPI,
    add_footnote,
    add_legend,
    empty_figure,
    footnote_of,
    line_styles,
    reference_lines,
    save_figure,
)
from dpbench.report.frames.series import Series
from dpbench.report.kinds import is_table

from ..made_up import draw, lines_of, make_grid, make_trial


def one(name, calibration="", place=0):
    """The series of a method of this label."""
    return Series("m", calibration, "", "n", name, name, place)


def test_one_colour_a_method_and_one_line_style_a_calibration():
    lines = lines_of(draw(make_grid())[0])
    assert lines["SSP (tight)"].get_color() == lines["SSP (paper)"].get_color() == COLOURS["grey"]
    assert lines["SSP (tight)"].get_linestyle() != lines["SSP (paper)"].get_linestyle()
    assert lines["SSP (paper)"].get_markerfacecolor() == "white"
    assert lines["DD-SSP"].get_color() != lines["AIM-Synth"].get_color()
    alone = lines_of(draw([make_trial("aim", "linear_marginals")])[0])
    assert alone["DD-SSP"].get_color() == lines["DD-SSP"].get_color()


def test_a_figure_of_another_kind_draws_a_method_alike():
    rows = [make_trial(rows=n, calibration=name) for n in (100, 1000) for name in ("tight", "paper")]
    by_rows = lines_of(draw(rows, kind="metric_by_setting", x="release.split.train_rows")[0])
    by_epsilon = lines_of(draw(make_grid())[0])
    for label in ("SSP (tight)", "SSP (paper)"):
        for look in ("color", "marker", "linestyle", "markerfacecolor"):
            assert getattr(by_rows[label], f"get_{look}")() == getattr(by_epsilon[label], f"get_{look}")()


def test_a_method_that_declares_its_style_has_it_and_no_other_method_takes_it():
    declared = styles()
    assert len(set(declared.values())) == len(declared) and set(declared) <= set(labels().values())
    strangers = line_styles([one(f"stranger {place}") for place in range(20)])
    taken = {(COLOURS[colour], marker) for colour, marker in declared.values()}
    looks = [(style["color"], style["marker"]) for style in strangers]
    assert len(set(looks)) == 20 and not set(looks) & taken and {marker for _, marker in looks} <= set(MARKERS)
    assert line_styles([one("AIM-Synth")]) == line_styles([*map(one, ("stranger", "AIM-Synth"))])[1:]


FIGURES = {
    f"{name}/{spec['name']}": spec["show"]
    for name in choices("paper")
    for spec in paper_of(name).report["figures"]
    if not is_table(spec) and spec.get("show")
}


@pytest.mark.parametrize("figure", sorted(FIGURES))
def test_the_methods_of_a_figure_are_told_apart_by_colour_and_by_marker_and_its_references_by_dashes(figure):
    declared = styles()
    shown = [declared[label] for label in FIGURES[figure] if label in declared]
    methods = [look for look in shown if look[0] != "black"]
    references = [label for label in FIGURES[figure] if declared.get(label, ("",))[0] == "black"]
    if len(methods) < len(COLOURS):
        assert len({colour for colour, _ in methods}) == len({marker for _, marker in methods}) == len(methods), methods
    assert len(set(reference_lines(references))) == len(references), references


def test_a_reference_has_the_same_dashes_in_every_figure_and_others_take_those_left():
    alone, tree = reference_lines(["uniform"]), reference_lines(["Chow-Liu tree"])
    first, second, *more = reference_lines(["uniform", "Chow-Liu tree", "my mean", "my median"])
    assert [first, second] == [*alone, *tree]
    assert len({first, second, *more}) == 4


def test_more_methods_than_colours_and_markers_are_drawn():
    assert len(line_styles([one(f"stranger {place}") for place in range(200)])) == 200


def test_published_constants_are_hollow_also_where_they_stand_alone():
    tight, paper, alone = line_styles([one("SSP", "tight"), one("SSP", "paper", 1), one("AdaSSP", "paper")])
    assert (tight["linestyle"], tight["markerfacecolor"]) == ("-", tight["color"])
    assert paper["linestyle"] == alone["linestyle"] != "-"
    assert paper["markerfacecolor"] == alone["markerfacecolor"] == "white"


def test_an_unknown_colour_is_named_with_its_method(monkeypatch):
    monkeypatch.setattr("dpbench.report.figures.style.styles", lambda: {"SSP": ("gray", "o")})
    with pytest.raises(UserError, match="unknown colour of SSP 'gray'; did you mean 'grey'"):
        line_styles([one("SSP")])


@pytest.mark.parametrize(("count", "columns"), [(1, 1), (2, 2), (3, 3), (4, 2), (5, 3), (6, 3)])
def test_panels_stand_three_in_a_row_and_four_in_a_square(count, columns):
    _, grid = empty_figure(count)
    assert len(grid) == count and grid[0].get_subplotspec().get_gridspec().ncols == columns


def test_the_legend_has_each_name_once_in_the_order_asked_for():
    figure = Figure()
    grid = [figure.add_subplot(1, 2, place + 1) for place in range(2)]
    for axes in grid:
        for name in ("b", "a"):
            axes.plot([0, 1], [0, 1], label=name)
    add_legend(figure, grid, ["a", "c", "b"])
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["a", "b"]


@pytest.mark.parametrize(("words", "lines"), [(4, 1), (40, 2)])
def test_a_title_does_not_meet_a_long_legend(words, lines):
    figure, grid = empty_figure(2)
    for name in "abcdefghi":
        grid[0].plot([0, 1], [0, 1], label=f"the method {name} with a long name")
    figure.suptitle(" ".join(["word"] * words))
    add_legend(figure, grid, grid[0].get_legend_handles_labels()[1])
    assert figure.get_suptitle().count("\n") == lines - 1


def test_a_long_footnote_makes_the_figure_higher():
    short, long = (empty_figure(1)[0] for _ in range(2))
    for figure, words in ((short, 1), (long, 100)):
        add_footnote(figure, "word " * words)
    assert long.get_figheight() > short.get_figheight()


def test_a_picture_has_what_fits_of_a_longer_footnote_and_the_page_all_of_it():
    text = f"First. A long one{' and so on' * 100}. Last."
    figure, _ = empty_figure(3)
    add_footnote(figure, text)
    assert " ".join(figure.get_supxlabel().split()) == "First. Last. Further notes: dpbench report."
    assert footnote_of(figure) == text


def test_a_footnote_of_wide_letters_stays_within_the_figure():
    figure, _ = empty_figure(3)
    add_footnote(figure, "WORD " * 200)
    (footnote,) = figure.texts
    assert footnote.get_window_extent().x1 <= figure.bbox.width


def test_a_long_legend_does_not_meet_the_footnote():
    figure, grid = empty_figure(3)
    for place in range(18):
        grid[0].plot([0, 1], [0, 1], label=f"method {place}")
    add_legend(figure, grid, grid[0].get_legend_handles_labels()[1])
    add_footnote(figure, "word " * 110)
    figure.draw_without_rendering()
    (footnote,) = [text for text in figure.texts if text.get_text().startswith("word")]
    assert figure.legends[0].get_window_extent().y0 > footnote.get_window_extent().y1


def test_the_users_settings_do_not_matter_and_are_left_alone(tmp_path):
    trials = make_grid(repetitions=2)
    before = [path.read_bytes() for path in save_figure(*draw(trials), tmp_path / "a", "f", pdf=True)]
    rcParams["font.size"] = 20
    try:
        after = [path.read_bytes() for path in save_figure(*draw(trials), tmp_path / "b", "f", pdf=True)]
        assert rcParams["font.size"] == 20
    finally:
        rcParams["font.size"] = 10
    assert before == after


@pytest.mark.parametrize("colour", COLOURS.values())
def test_a_small_point_keeps_its_colour_in_a_png_of_few_colours(tmp_path, colour):
    """Beside many other colours, which are rounded."""
    figure = Figure(figsize=(3, 2))
    axes = figure.add_subplot()
    axes.imshow(np.linspace(0, 1, 3000).reshape(50, 60), cmap="viridis")
    axes.plot([30], [20], "o", color=colour, markersize=4)
    png, _ = save_figure(figure, pd.DataFrame(), tmp_path, "f")
    pixels = np.asarray(Image.open(png).convert("RGB"))
    inside = np.pi * (4 / 72 * PNG_DPI / 2 - 1) ** 2  # pixels of the point, but for its edge
    assert (pixels == ImageColor.getrgb(colour)).all(axis=2).sum() > inside
    assert len(np.unique(pixels.reshape(-1, 3), axis=0)) <= PNG_COLOURS
