"""The numbers of repetitions with a value, next to their points and clear of each other."""

from itertools import combinations

import pandas as pd
import pytest
from matplotlib.figure import Figure

from dpbench.report.picture.looks import Look
from dpbench.report.picture.notes_at_points import GAP, write_notes
from dpbench.report.picture.picture import Points

from ..made_up import draw, lines_of, make_trial

METHODS = ("ssp", "adassp", "aim", "mst")


def numbers_at(*cells):
    """The axes with a number at each of the cells (place, value, count), all of one panel from 0 to 10."""
    axes = Figure(figsize=(4, 3)).add_subplot()
    axes.set(xlim=(0, 10), ylim=(0, 10))
    rows = pd.DataFrame(cells, columns=["x", "y", "count"])
    notes = ["" if count >= 100 else str(count) for *_, count in cells]
    rows = rows.assign(low=rows["y"], high=rows["y"], note=notes, series=[str(place) for place in range(len(cells))])
    write_notes(axes, Points(rows, "x", "y"), dict.fromkeys(rows["series"], Look()))
    return axes


def boxes(axes):
    """Where the numbers stand, in points, by their text."""
    axes.figure.draw_without_rendering()
    scale = 72 / axes.figure.dpi
    return {text.get_text(): text.get_window_extent().extents * scale for text in axes.texts}


def test_a_number_alone_stands_at_the_upper_right_of_its_point():
    (text,) = numbers_at((5, 5, 42)).texts
    assert text.xy == (5, 5) and text.get_text() == "42" and min(text.xyann) > 0


@pytest.mark.parametrize("gap", [0.0, 0.1, 0.3])
def test_numbers_of_neighbouring_points_do_not_read_as_one(gap):
    axes = numbers_at(*((5 + gap * k, 5 + gap * k / 2, 10 + k) for k in range(4)))
    found = boxes(axes)
    assert len(found) == 4
    for (left, bottom, right, top), (other_left, other_bottom, other_right, other_top) in combinations(
        found.values(), 2
    ):
        apart = max(other_left - right, left - other_right)
        above = max(other_bottom - top, bottom - other_top)
        assert apart > 0.8 * GAP or above > -0.5  # the boxes are estimated from the size of the type


def test_a_number_leaves_the_marker_of_another_point_free():
    there = boxes(numbers_at((5, 5, 42), (5.25, 5.25, 100)))["42"]
    axes = numbers_at((5, 5, 42), (5.25, 5.25, 100))
    x, y = axes.transData.transform((5.25, 5.25)) * 72 / axes.figure.dpi
    assert not (there[0] < x < there[2] and there[1] < y < there[3])


@pytest.mark.parametrize("place", [0.02, 9.98])
def test_a_number_stays_within_the_axes(place):
    axes = numbers_at((place, 5, 42))
    (left, _, right, _) = boxes(axes)["42"]
    frame = axes.get_window_extent().extents * 72 / axes.figure.dpi
    assert frame[0] < left and right < frame[2]


def test_the_numbers_of_a_figure_have_the_colours_of_their_series_and_leave_its_layout_alone():
    whole = [make_trial(name, mse=0.2, repetition=k) for name in METHODS for k in range(3)]
    lost = [make_trial(name, status="no_estimate", repetition=3) for name in METHODS]
    figure, _ = draw([*whole, *lost])
    (axes,) = figure.axes
    assert [text.get_text() for text in axes.texts] == ["3"] * len(METHODS)
    found = {text.xy: text.get_color() for text in axes.texts}
    points = [(line.get_xdata()[0], line.get_ydata()[0], line.get_color()) for line in lines_of(figure).values()]
    assert found == {(x, y): colour for x, y, colour in points} and len(points) == len(METHODS)
    assert not any(text.get_in_layout() for text in axes.texts)
