"""Lines of a metric: points, references, bands, and what is drawn as a table."""

import numpy as np
from matplotlib.colors import to_hex

from ..made_up import draw, footnote, lines_of, make_grid, make_trial


def test_reference_is_a_horizontal_line_with_its_band():
    figure, drawn = draw(make_grid())
    lines = drawn[drawn["kind"] == "line"]
    assert list(lines["series"]) == ["public"]
    assert np.isinf(lines["x"]).all()
    line = lines_of(figure)["public"]
    assert line.get_ydata() == [lines["mean"].iloc[0]] * 2
    assert line.get_linestyle() == "--"
    assert len(figure.axes[0].patches) == 1


def test_several_references_have_bars_side_by_side_in_place_of_bands_that_hide_each_other():
    names = ("exact", "exact_table")
    public = [make_trial(name, epsilon=np.inf, mse=0.1 + 0.01 * k, repetition=k) for name in names for k in range(3)]
    figure, drawn = draw([make_trial(), *public])
    (axes,) = figure.axes
    lines = drawn[drawn["kind"] == "line"]
    assert len(lines) == 2 and not axes.patches
    bars = [bar for collection in axes.collections for bar in collection.get_segments() if 0.9 < bar[0, 0] <= 1]
    np.testing.assert_allclose([bar[:, 1] for bar in bars], lines[["low", "high"]])
    assert bars[0][0, 0] < bars[1][0, 0]
    assert "Bars at the right edge" in footnote(figure)


def test_a_reference_is_dashed_alike_in_every_panel():
    """The second of two panels has the second of two references alone."""
    trials = [make_trial(dataset=name) for name in ("adult", "taxi")]
    trials += [make_trial(name, epsilon=np.inf) for name in ("exact", "exact_table")]
    figure, _ = draw([*trials, make_trial("exact_table", epsilon=np.inf, dataset="taxi")])
    label = "exact_table / linear_statistics"
    first, second = (next(line for line in axes.lines if line.get_label() == label) for axes in figure.axes)
    assert first._unscaled_dash_pattern == second._unscaled_dash_pattern
    assert first._unscaled_dash_pattern != lines_of(figure)["public"]._unscaled_dash_pattern


def test_a_private_method_without_a_place_on_the_axis_has_its_own_colour_and_a_reference_is_black():
    def of(mechanism, **changes):
        return [make_trial(mechanism, repetition=k, mse=0.1 + 0.01 * k, **changes) for k in range(2)]

    private = [*of("adassp", calibration="tight"), *of("adassp", calibration="paper")]
    swept = [trial for n in (10, 20) for trial in of("ssp", parameters={"theta": n})]
    theta = {"kind": "metric_by_setting", "x": "release.mechanism.parameters.theta", "ylim": [0.2, 0.3]}
    figure, _ = draw([*swept, *private, *of("exact", epsilon=np.inf)], **theta)
    (axes,), lines = figure.axes, lines_of(figure)
    usual = lines_of(draw(private)[0])
    for label in ("AdaSSP (tight)", "AdaSSP (paper)"):
        assert lines[label].get_color() == usual[label].get_color()
        assert lines[label].get_linestyle() == usual[label].get_linestyle()
        assert {usual[label].get_color()} < {text.get_color() for text in axes.texts}, "its mark outside of the axis"
    assert lines["AdaSSP (tight)"].get_linestyle() != lines["AdaSSP (paper)"].get_linestyle()
    assert lines["public"].get_color() == "#000000"
    bars = [bar.get_colors()[0] for bar in axes.collections if 0.9 < bar.get_segments()[0][0, 0] <= 1]
    own = to_hex(lines["AdaSSP (tight)"].get_color())
    assert [to_hex(colour) for colour in bars] == ["#000000", own, own]


def test_a_level_with_a_label_stands_in_the_legend_and_a_number_alone_does_not():
    figure, _ = draw([make_trial()], lines=[{"nominal level": 0.9}, 0.5])
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["SSP", "nominal level"]
    levels = [line for line in figure.axes[0].lines if line.get_linewidth() == 0.9 and line.get_marker() == "None"]
    assert [line.get_ydata()[0] for line in levels] == [0.9, 0.5]


def test_points_of_one_epsilon_are_next_to_each_other():
    figure, drawn = draw(make_grid())
    epsilons = np.unique(drawn.loc[drawn["kind"] == "point", "x"])
    places = np.array([line.get_xdata() for name, line in lines_of(figure).items() if name != "public"])
    assert places.shape == (6, len(epsilons)) and all(len(set(column)) == 6 for column in places.T.tolist())
    assert np.abs(np.log(places / epsilons)).max() < np.log(2) / 2
    (alone,) = lines_of(draw([make_trial(epsilon=epsilon) for epsilon in (0.1, 1.0)])[0]).values()
    assert list(alone.get_xdata()) == [0.1, 1.0]


def test_a_bar_is_one_standard_error_to_either_side():
    figure, drawn = draw([make_trial(mse=error, repetition=place) for place, error in enumerate((0.1, 0.2, 0.3))])
    (row,) = drawn.to_dict("records")
    se = 0.1 / np.sqrt(3)  # the sample standard deviation of 0.1, 0.2, 0.3 is 0.1
    np.testing.assert_allclose([row["mean"], row["low"], row["high"]], [0.2, 0.2 - se, 0.2 + se])
    (bar,) = figure.axes[0].collections[0].get_segments()
    np.testing.assert_allclose(bar[:, 1], [0.2 - se, 0.2 + se])


def test_a_cell_without_values_leaves_a_hole_and_stays_in_the_csv():
    trials = [make_trial(epsilon=eps, status="done" if eps != 0.5 else "failed") for eps in (0.1, 0.5, 1.0)]
    figure, drawn = draw(trials)
    assert list(drawn["failed"]) == [0, 1, 0]
    assert np.isnan(lines_of(figure)["SSP"].get_ydata()[1])


def test_limits_of_one_panel_leave_the_others_alone():
    trials = [make_trial(mse=9.0), make_trial(dataset="taxi", mse=9.0), make_trial("adassp", mse=0.1)]
    figure, drawn = draw(trials, ylim={"adult": [0.05, 0.5]})
    assert figure.axes[0].get_ylim() == (0.05, 0.5)
    assert dict(zip(drawn["panel"] + drawn["series"], drawn["clipped"], strict=True)) == {
        "adultSSP": "above",
        "adultAdaSSP": "",
        "taxiSSP": "",
    }


def test_a_band_is_shaded_between_two_means_where_both_have_one():
    upper = [make_trial("ssp", epsilon=eps, mse=0.2 + eps) for eps in (0.1, 0.5, 1.0)]
    lower = [make_trial("adassp", epsilon=eps, mse=0.1 + eps) for eps in (0.05, 0.1, 0.5, 1.0)]
    upper += [make_trial("ssp", epsilon=2.0, status="failed")]
    band = {"between": ["adassp/linear_statistics", "ssp/linear_statistics"], "label": "a band"}
    figure, _ = draw([*upper, *lower], bands=[band])
    (shade,) = [collection for collection in figure.axes[0].collections if collection.get_label() == "a band"]
    corners = {(round(x, 6), round(y, 6)) for x, y in shade.get_paths()[0].vertices.tolist()}
    assert corners == {(0.1, 0.2), (0.1, 0.3), (0.5, 0.6), (0.5, 0.7), (1.0, 1.1), (1.0, 1.2)}
    thin, usual = lines_of(figure), lines_of(draw([*upper, *lower])[0])
    for name in ("AdaSSP", "SSP"):  # a method looks the same in every figure
        assert thin[name].get_color() == usual[name].get_color() and thin[name].get_marker() == usual[name].get_marker()
        assert thin[name].get_linewidth() < usual[name].get_linewidth()
    places = {place for name in ("AdaSSP", "SSP") for place in thin[name].get_xdata()}
    assert places <= {0.05, 0.1, 0.5, 1.0, 2.0}, "the lines of a band are not moved sideways"
    assert figure.legends[0].get_texts()[-1].get_text() == "a band"


def test_a_mean_of_the_repetitions_with_a_value_shows_how_many_these_are():
    trials = [make_trial(mse=0.2, repetition=place) for place in range(3)]
    figure, _ = draw([*trials, make_trial(status="no_estimate", repetition=3), make_trial(epsilon=2.0, mse=0.1)])
    assert [text.get_text() for text in figure.axes[0].texts] == ["3"]
    assert any("Number at a point: repetitions with a value" in text.get_text() for text in figure.texts)


def test_a_band_without_one_of_its_lines_is_left_out():
    figure, _ = draw([make_trial()], bands=[{"between": ["ssp/linear_statistics", "aim/linear_rows"], "label": "band"}])
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["SSP"]


def test_no_line_leads_to_a_point_of_the_minority_that_has_a_value():
    whole = [make_trial(epsilon=epsilon, repetition=k) for epsilon in (0.1, 0.5, 2.0) for k in range(3)]
    lost = [make_trial(epsilon=1.0, status="no_estimate", repetition=k) for k in (1, 2)]
    figure, drawn = draw([*whole, make_trial(epsilon=1.0, mse=0.07), *lost])
    (line,) = (line for line in figure.axes[0].lines if line.get_linestyle() == "-")
    assert np.isnan(line.get_ydata()).tolist() == [False, False, True, False]
    alone = [
        one for one in figure.axes[0].lines if one.get_linestyle() == "None" and one.get_marker() == line.get_marker()
    ]
    assert 0.07 in alone[0].get_ydata() and "No line is drawn to a point" in footnote(figure)
    assert 0.07 in drawn["mean"].to_list()


def test_a_line_does_not_pass_over_a_value_that_its_series_does_not_have():
    trials = [make_trial(epsilon=epsilon) for epsilon in (0.1, 1.0)]
    trials += [make_trial("adassp", epsilon=epsilon) for epsilon in (0.1, 0.5, 1.0)]
    lines = lines_of(draw(trials)[0])
    assert np.isnan(lines["SSP"].get_ydata()).tolist() == [False, True, False]
    assert not np.isnan(lines["AdaSSP"].get_ydata()).any()


def test_published_points_are_drawn_on_the_panel_of_their_data_set():
    rows = {"adult": {"theirs": {0.1: 0.2, 1.0: 0.1}, "real": {"inf": 0.05}}}
    figure, _ = draw([make_trial(epsilon=epsilon) for epsilon in (0.1, 1.0)], published={"rows": rows})
    assert lines_of(figure)["theirs, published"].get_ydata().tolist() == [0.2, 0.1]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["SSP", "theirs, published"]
