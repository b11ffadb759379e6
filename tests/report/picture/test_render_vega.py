"""Charts have the numbers, axes and looks of their figures."""

import pandas as pd
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from dpbench.report.picture.own_figure import own_picture
from dpbench.report.picture.render_matplotlib import rendered
from dpbench.report.picture.render_vega import chart_of

from ..made_up import lines_of, make_grid, make_trial, picture


@pytest.fixture(scope="module")
def drawn():
    """A picture of two panels, and its chart."""
    made = picture([*make_grid(), *make_grid("taxi", seed=1)], panels={"taxi": "Taxi"})
    return made, chart_of(made)


def shown(panel, place=-1):
    """The encoding of a layer of a panel."""
    return panel["spec"]["layer"][place]["encoding"]


def rows_of(panel, place=-1):
    """The rows of this layer."""
    return panel["spec"]["datasets"][panel["spec"]["layer"][place]["data"]["name"]]


def test_a_chart_has_the_panels_axes_and_scales_of_its_figure(drawn):
    made, chart = drawn
    assert [panel["title"] for panel in chart["panels"]] == ["Taxi", "adult"]
    assert set(chart["series"]) == set(made.drawn["series"])
    for axes, panel in zip(rendered(made).axes, chart["panels"], strict=True):
        y = panel["spec"]["layer"][-1]["encoding"]["y"]
        assert y["scale"] == {"type": "log", "domain": list(axes.get_ylim()), "nice": False}
        assert panel["spec"]["layer"][-1]["encoding"]["x"]["axis"]["values"] == [0.05, 0.1, 0.5, 1.0, 2.0]


def test_what_lies_outside_of_the_axis_is_marked_at_its_edge():
    chart = chart_of(picture(make_grid(), yscale="linear", ylim=[0.05, 0.1]))
    marks = [layer["mark"]["shape"] for layer in chart["panels"][0]["spec"]["layer"] if "shape" in layer["mark"]]
    assert marks == ["triangle-up"]


def test_mean_ranks_have_a_row_a_series_the_best_one_on_top():
    chart = chart_of(picture([*make_grid(), *make_grid("taxi", seed=1)], kind="mean_ranks"))
    assert [panel["title"] for panel in chart["panels"]][:2] == ["ε = 0.05", "ε = 0.1"]
    y = shown(chart["panels"][0])["y"]
    assert y["sort"][0] == "DD-SSP" and y["sort"][-1].startswith("SSP") and chart["series"][0] == "SSP (tight)"


def test_a_metric_against_another_has_both_axes():
    made = picture(make_grid(), kind="metric_by_metric", against="r2", xscale="log")
    chart, encoding = chart_of(made), shown(chart_of(made)["panels"][0])
    assert chart["panels"][0]["title"] == "adult, ε = 0.05" and len(chart["panels"]) == 5
    limits = list(rendered(made).axes[0].get_xlim())
    assert encoding["x"]["title"] == "r2" and encoding["x"]["scale"]["domain"] == limits
    assert encoding["y"]["scale"]["type"] == "log"


def test_categories_stand_in_their_order_with_series_side_by_side_and_references_as_lines():
    path = "release.dataset.parameters.mode"
    trials = [
        make_trial(mechanism, data={"mode": mode}, repetition=k)
        for mechanism, mode in (("adassp", "fast"), ("ssp", "fast"), ("ssp", "slow"))
        for k in range(2)
    ]
    names = {"slow": "slow one", "fast": "fast one"}
    chart = chart_of(
        picture([make_trial("exact", epsilon="inf"), *trials], kind="metric_by_setting", x=path, categories=names)
    )
    layers = chart["panels"][0]["spec"]["layer"]
    encoding = layers[-1]["encoding"]
    assert encoding["x"]["field"] == "category" and encoding["x"]["sort"] == ["slow one", "fast one"]
    assert encoding["xOffset"]["scale"]["domain"] == ["SSP", "AdaSSP"], "of points alone"
    assert {"field": "category", "type": "nominal"} in encoding["tooltip"]
    assert "line" not in [layer["mark"]["type"] for layer in layers], "nothing lies between categories"
    (panel,) = chart["panels"]
    assert [row["series"] for row in rows_of(panel, 0)] == ["public"] and "x" not in shown(panel, 1)
    assert layers[-1]["params"][0]["select"]["encodings"] == ["y"], "categories are not zoomed into"


def test_rows_are_chosen_by_series_and_epsilon_and_a_reference_by_its_series_alone(drawn):
    _, panel = drawn[1]["panels"]
    assert {row["epsilon"] for row in rows_of(panel)} == {0.05, 0.1, 0.5, 1.0, 2.0}
    assert [row["epsilon"] for row in rows_of(panel, 0)] == [None], "infinity is no number of JSON"
    filters = [one["filter"] for one in panel["spec"]["layer"][0]["transform"]]
    assert ["shownSeries" in one for one in filters] == [True, False] and "!isNumber(datum.epsilon)" in filters[1]


def test_series_look_as_in_the_figure():
    made = picture(make_grid())
    looks = shown(chart_of(made)["panels"][0])
    names, lines = looks["stroke"]["scale"]["domain"], lines_of(rendered(made))
    assert names == list(made.series) and names[:3] == ["public", "SSP (tight)", "SSP (paper)"]
    for name, stroke, fill in zip(
        names, looks["stroke"]["scale"]["range"], looks["fill"]["scale"]["range"], strict=True
    ):
        assert to_hex(lines[name].get_color()) == stroke.lower()
        assert name == "public" or to_hex(lines[name].get_markerfacecolor()) == fill.lower()


def test_a_line_leaves_out_what_stands_for_few_repetitions_and_what_was_not_run():
    lost = [make_trial(epsilon=0.5, status="no_estimate", repetition=k) for k in (1, 2)]
    trials = [make_trial(epsilon=eps) for eps in (0.1, 0.5, 1.0)]
    trials += [make_trial("adassp", epsilon=eps) for eps in (0.1, 1.0)]
    (panel,) = chart_of(picture([*trials, *lost]))["panels"]
    rows = rows_of(panel)
    assert [row["alone"] for row in rows if row["series"] == "SSP"] == [False, True, False]
    assert [row["mean"] for row in rows if row["series"] == "AdaSSP"][1] is None
    assert panel["spec"]["layer"][0]["transform"][-1]["calculate"].startswith("datum.alone ? null")


def test_thin_lines_bands_and_published_points_are_shown_too():
    trials = [make_trial(name, epsilon=eps) for name in ("ssp", "adassp") for eps in (0.1, 1.0)]
    band = {"between": ["adassp/linear_statistics", "ssp/linear_statistics"], "label": "a band"}
    published = {"rows": {"adult": {"theirs": {0.1: 0.2}}}}
    chart = chart_of(picture(trials, bands=[band], lines=[{"nominal": 0.9}], published=published))
    assert chart["series"] == ["SSP", "AdaSSP", "a band", "nominal", "theirs, published"]
    marks = [layer["mark"]["type"] for layer in chart["panels"][0]["spec"]["layer"]]
    assert marks == ["area", "line", "rule", "point", "point", "rule"]


def test_a_figure_of_a_users_own_kind_is_a_chart_of_points():
    rows = pd.DataFrame({"mechanism": ["ssp", "aim"], "seconds": [0.1, 2.0], "value": [0.5, 0.4]})
    figure = Figure()
    figure.add_subplot(xlabel="seconds", ylabel="mse").plot(rows["seconds"], rows["value"], "o")
    chart = chart_of(own_picture(figure, rows, "Mine", "A note."))
    encoding = shown(chart["panels"][0])
    assert [encoding[name]["field"] for name in ("x", "y", "stroke")] == ["seconds", "value", "series"]
    assert encoding["y"]["title"] == "mse" and encoding["y"]["scale"]["domain"] == list(figure.axes[0].get_ylim())
    assert chart["series"] == ["ssp", "aim"]
    assert [tip["field"] for tip in encoding["tooltip"]] == ["mechanism", "seconds", "value"]


def test_panels_of_a_users_own_figure_are_those_of_the_column_with_their_titles():
    rows = pd.DataFrame({"dataset": ["Adult", "Fire"], "method": ["SSP", "AIM"], "mse": [0.5, 0.4]})
    figure = Figure()
    for place, name in enumerate(rows["dataset"]):
        figure.add_subplot(1, 2, place + 1, title=name, xlabel="method", ylabel="MSE").bar(rows["method"], rows["mse"])
    chart = chart_of(own_picture(figure, rows, "Mine", ""))
    assert [(panel["title"], panel["place"]) for panel in chart["panels"]] == [("Adult", "Adult"), ("Fire", "Fire")]
    encoding = shown(chart["panels"][1])
    assert (encoding["x"]["field"], encoding["x"]["type"], encoding["y"]["field"]) == ("method", "nominal", "mse")
    assert [row["method"] for row in rows_of(chart["panels"][1])] == ["AIM"]
    other = own_picture(figure, rows.assign(dataset=["Fire", "Taxi"]), "Mine", "")
    assert chart_of(other) is None, "whose panels they are is not known"


def test_a_figure_of_an_unknown_kind_without_two_columns_of_numbers_has_its_picture_alone():
    figure = Figure()
    figure.add_subplot()
    assert chart_of(own_picture(figure, pd.DataFrame({"share": [0.2, 0.8]}), "Mine", "")) is None
