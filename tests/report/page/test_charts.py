import pandas as pd
import pytest
from matplotlib.figure import Figure

from dpbench.report.page.charts import chart_of, looks_of

from ..made_up import draw, make_grid, make_trial


@pytest.fixture(scope="module")
def drawn():
    return draw([*make_grid(), *make_grid("taxi", seed=1)], panels={"taxi": "Taxi"})


def test_a_chart_has_the_panels_axes_and_scales_of_its_figure(drawn):
    figure, table = drawn
    chart = chart_of(figure, table)
    assert [panel["title"] for panel in chart["panels"]] == ["Taxi", "adult"]
    assert chart["series"] == list(dict.fromkeys(table["series"])) and "mean" in chart["numbers"]
    for axes, panel in zip(figure.axes, chart["panels"], strict=True):
        y = panel["spec"]["layer"][-1]["encoding"]["y"]
        assert y["scale"] == {"type": "log", "domain": list(axes.get_ylim()), "nice": False}
        assert panel["spec"]["layer"][-1]["encoding"]["x"]["axis"]["values"] == [0.05, 0.1, 0.5, 1.0, 2.0]


def test_what_lies_outside_of_the_axis_is_marked_at_its_edge():
    chart = chart_of(*draw(make_grid(), yscale="linear", ylim=[0.05, 0.1]))
    marks = [layer["mark"]["shape"] for layer in chart["panels"][0]["spec"]["layer"] if "shape" in layer["mark"]]
    assert marks == ["triangle-up"]


def test_mean_ranks_have_a_row_a_series_the_best_one_on_top():
    chart = chart_of(*draw([*make_grid(), *make_grid("taxi", seed=1)], kind="mean_ranks"))
    assert [panel["title"] for panel in chart["panels"]][:2] == ["ε = 0.05", "ε = 0.1"]
    y = chart["panels"][0]["spec"]["layer"][-1]["encoding"]["y"]
    assert y["sort"][0] == "DD-SSP" and y["sort"][-1].startswith("SSP") and chart["series"][0] == "SSP (tight)"
    looks = looks_of(draw(make_grid(), kind="mean_ranks")[0])
    assert looks["DD-SSP"].marker and looks["DD-SSP"] != looks["AIM-Synth"]


def test_a_metric_against_another_has_both_axes():
    figure, points = draw(make_grid(), kind="metric_by_metric", against="r2", xscale="log")
    chart = chart_of(figure, points)
    encoding = chart["panels"][0]["spec"]["layer"][-1]["encoding"]
    assert chart["panels"][0]["title"] == "adult, ε = 0.05" and len(chart["panels"]) == 5
    assert encoding["x"]["title"] == "r2" and encoding["x"]["scale"]["domain"] == list(figure.axes[0].get_xlim())
    assert encoding["y"]["scale"]["type"] == "log"


def test_categories_stand_in_their_order_with_series_side_by_side_and_references_as_lines():
    path = "release.dataset.parameters.mode"
    trials = [
        make_trial(mechanism, data={"mode": mode}, repetition=k)
        for mechanism, mode in (("adassp", "fast"), ("ssp", "fast"), ("ssp", "slow"))
        for k in range(2)
    ]
    names = {"slow": "slow one", "fast": "fast one"}
    figure, table = draw(
        [make_trial("exact", epsilon="inf"), *trials], kind="metric_by_setting", x=path, categories=names
    )
    chart = chart_of(figure, table)
    layers = chart["panels"][0]["spec"]["layer"]
    encoding = layers[-1]["encoding"]
    assert encoding["x"]["field"] == "category" and encoding["x"]["sort"] == ["slow one", "fast one"]
    assert encoding["xOffset"]["scale"]["domain"] == ["SSP", "AdaSSP"], "of points alone"
    assert {"field": "category", "type": "nominal"} in encoding["tooltip"]
    assert "line" not in [layer["mark"]["type"] for layer in layers], "nothing lies between categories"
    assert layers[1]["transform"] == [{"filter": "!(datum.category)"}] and "x" not in layers[1]["encoding"]
    assert layers[-1]["params"][0]["select"]["encodings"] == ["y"], "categories are not zoomed into"


def test_a_figure_of_a_users_own_kind_is_a_chart_of_points():
    rows = pd.DataFrame({"mechanism": ["ssp", "aim"], "seconds": [0.1, 2.0], "value": [0.5, 0.4]})
    figure = Figure()
    figure.add_subplot(xlabel="seconds", ylabel="mse").plot(rows["seconds"], rows["value"], "o")
    chart = chart_of(figure, rows)
    encoding = chart["panels"][0]["spec"]["layer"][0]["encoding"]
    assert [encoding[name]["field"] for name in ("x", "y", "color")] == ["seconds", "value", "mechanism"]
    assert encoding["y"]["title"] == "mse" and encoding["y"]["scale"]["domain"] == list(figure.axes[0].get_ylim())
    assert chart["numbers"] == ["seconds", "value"]


def test_panels_of_a_users_own_figure_are_those_of_the_column_with_their_titles():
    rows = pd.DataFrame({"dataset": ["Adult", "Fire"], "method": ["SSP", "AIM"], "mse": [0.5, 0.4]})
    figure = Figure()
    for place, name in enumerate(rows["dataset"]):
        figure.add_subplot(1, 2, place + 1, title=name, xlabel="method", ylabel="MSE").bar(rows["method"], rows["mse"])
    chart = chart_of(figure, rows)
    assert [(panel["title"], panel["place"]) for panel in chart["panels"]] == [("Adult", "Adult"), ("Fire", "Fire")]
    encoding = chart["panels"][1]["spec"]["layer"][0]["encoding"]
    assert (encoding["x"]["field"], encoding["x"]["type"], encoding["y"]["field"]) == ("method", "nominal", "mse")
    assert {"field": "dataset", "equal": "Fire"} in [one["filter"] for one in chart["panels"][1]["spec"]["transform"]]
    assert chart_of(figure, rows.assign(dataset=["Fire", "Taxi"])) is None, "whose panels they are is not known"


def test_a_figure_of_an_unknown_kind_without_two_columns_of_numbers_has_its_picture_alone(drawn):
    assert chart_of(drawn[0], drawn[1][["series", "mean"]]) is None
