"""Names of horizontal lines at the lines: in the panel, clear of all else, and in the legend where that cannot be."""

from itertools import combinations

import pandas as pd
import pytest

from dpbench.report.picture.looks import Look
from dpbench.report.picture.names_at_lines import MOST, with_names_at_lines
from dpbench.report.picture.picture import Axis, Levels, Panel, Picture, Points
from dpbench.report.picture.render_matplotlib import rendered
from dpbench.report.picture.render_vega import chart_of

POINTS = [("SSP", 0.0, 0.9), ("SSP", 0.5, 0.55), ("SSP", 1.0, 0.5)]


def picture_of(*panels, points=POINTS, fixed=(), log=False):
    """A panel for each mapping of lines to heights, with a series of points in front of them."""
    made = []
    for place, lines in enumerate(panels):
        rows = pd.DataFrame({"series": list(lines), "at": list(lines.values())}).assign(
            low=lines.values(), high=lines.values()
        )
        shown = Points(pd.DataFrame(points, columns=["series", "x", "y"]), "x", "y", bars=None)
        y = Axis("", (0.1, 1.0) if log else (0.0, 1.0), log)
        made.append(Panel("", Axis("", (-0.1, 1.1)), y, [Levels(rows, "at"), shown], f"{place}"))
    names = [*dict.fromkeys(name for lines in panels for name in lines), "SSP"]
    looks = {name: Look(marker="o" if name == "SSP" else "") for name in names}
    return Picture("", with_names_at_lines(made, set(fixed)), looks, "", pd.DataFrame())


def texts_of(axes):
    """Where the names of a panel are, in pixels."""
    axes.figure.draw_without_rendering()
    return {text.get_text(): text.get_window_extent() for text in axes.texts}


def test_names_at_lines_are_drawn_by_both_renderers_and_leave_the_legend():
    made = picture_of({"non-private": 0.2, "trivial": 0.8}, {"non-private": 0.3})
    assert list(made.legend) == ["SSP"] and list(made.series) == ["non-private", "trivial", "SSP"]
    figure = rendered(made)
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["SSP"]
    assert [set(texts_of(axes)) for axes in figure.axes] == [{"non-private", "trivial"}, {"non-private"}]
    chart = chart_of(made)
    assert chart["series"] == ["non-private", "trivial", "SSP"], "a filter of methods has all of them"
    texts = [one for one in chart["panels"][0]["spec"]["layer"] if one["mark"]["type"] == "text"]
    assert {one["encoding"]["text"]["field"] for one in texts} == {"series"}
    (rows,) = {one["data"]["name"] for one in texts}
    assert all(0.5 < row["name_at"] < 1 for row in chart["panels"][0]["spec"]["datasets"][rows])


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize(
    "lines", [{"non-private": 0.101, "trivial": 0.99}, {"a": 0.3, "b": 0.33}, {"a": 0.5, "b": 0.9}]
)
def test_names_are_within_their_panel_and_clear_of_points_lines_and_each_other(lines, log):
    figure = rendered(picture_of(lines, log=log))
    (axes,) = figure.axes
    boxes, frame = texts_of(axes), axes.get_window_extent()
    assert set(boxes) == set(lines)
    series = axes.transData.transform([(x, y) for _, x, y in POINTS])
    for box in boxes.values():
        assert frame.x0 <= box.x0 and box.x1 <= frame.x1 and frame.y0 <= box.y0 and box.y1 <= frame.y1
        assert not any(box.contains(x, y) for x, y in series)
        heights = [axes.transData.transform((0, at))[1] for at in lines.values()]
        assert not any(box.y0 + 2 < height < box.y1 - 2 for height in heights), "no line through a name"
    assert not any(one.overlaps(other) for one, other in combinations(boxes.values(), 2))


def test_lines_that_are_one_and_lines_outside_of_the_panel_stay_in_the_legend():
    assert list(picture_of({"a": 0.4, "b": 0.405, "c": 0.2}).legend) == ["a", "b", "SSP"]
    assert list(picture_of({"a": 0.4}, {"a": 1.4}, fixed="01").legend) == ["a", "SSP"]


def test_many_lines_and_those_of_a_series_with_points_stay_in_the_legend():
    lines = {f"{place}": 0.1 + 0.2 * place for place in range(MOST + 1)}
    assert list(picture_of(lines).legend) == [*lines, "SSP"]
    assert list(picture_of({"SSP": 0.2}).legend) == ["SSP"]


def test_a_panel_grows_for_a_name_at_its_edge_unless_its_limits_were_declared():
    near = [("SSP", 0.1 * place, 0.06) for place in range(11)]
    free, fixed = (picture_of({"non-private": 0.02}, points=near, fixed=names) for names in ("", "0"))
    assert free.panels[0].y.limits[0] < 0 and list(free.legend) == ["SSP"]
    assert fixed.panels[0].y.limits == (0.0, 1.0) and list(fixed.legend) == ["non-private", "SSP"]
