import numpy as np
import pytest
from made_up import LABELS, SPEC, make_grid, make_trial
from matplotlib import rcParams

from dpbench.report.frame import trial_frame
from dpbench.report.metric_by_epsilon import metric_by_epsilon
from dpbench.report.stats import summarise
from dpbench.report.style import COLOURS, save_figure


def draw(trials, notes="", **changes):
    return metric_by_epsilon(trial_frame(trials), LABELS, SPEC | changes, notes)


def footnote(figure):
    return " ".join(figure.get_supxlabel().split())


def lines_of(figure):
    """The main line of each series of the first panel, by label."""
    axes = figure.axes[0]
    handles, labels = axes.get_legend_handles_labels()
    return {label: getattr(handle, "lines", [handle])[0] for handle, label in zip(handles, labels, strict=True)}


def test_what_is_drawn_are_the_means_and_errors_of_the_frame():
    trials = make_grid()
    _, drawn = draw(trials)
    cells = summarise(trial_frame(trials))
    assert sorted(drawn["mean"]) == sorted(cells.loc[cells["metric"] == "mse", "mean"])
    np.testing.assert_allclose(drawn["high"] - drawn["mean"], drawn["se"])


def test_reference_is_a_horizontal_line_with_its_band():
    figure, drawn = draw(make_grid())
    lines = drawn[drawn["kind"] == "line"]
    assert list(lines["series"]) == ["public"]
    assert np.isinf(lines["epsilon"]).all() and lines["x"].isna().all()
    line = lines_of(figure)["public"]
    assert line.get_ydata() == [lines["mean"].iloc[0]] * 2
    assert line.get_linestyle() == "--"
    assert len(figure.axes[0].patches) == 1


def test_ticks_are_the_epsilons_and_points_stay_beside_them():
    figure, drawn = draw(make_grid())
    axes = figure.axes[0]
    assert list(axes.get_xticks()) == [0.05, 0.1, 0.5, 1.0, 2.0]
    assert len(axes.xaxis.get_minorticklocs()) == 0
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    points = drawn[drawn["kind"] == "point"]
    assert points.groupby("epsilon")["x"].nunique().eq(6).all()
    assert np.abs(np.log(points["x"] / points["epsilon"])).max() < np.log(2) / 2


def test_one_colour_a_method_and_one_line_style_a_calibration():
    lines = lines_of(draw(make_grid())[0])
    assert lines["SSP (tight)"].get_color() == lines["SSP (paper)"].get_color() == COLOURS[1]
    assert lines["SSP (tight)"].get_linestyle() != lines["SSP (paper)"].get_linestyle()
    assert lines["SSP (paper)"].get_markerfacecolor() == "white"
    assert lines["DD-SSP"].get_color() != lines["AIM-Synth"].get_color()
    alone = lines_of(draw([make_trial("aim", "linear_marginals")])[0])
    assert alone["DD-SSP"].get_color() == lines["DD-SSP"].get_color()


def test_footnote_tells_data_failures_overspending_and_notes():
    text = footnote(draw(make_grid(), notes="limits: smoke")[0])
    assert "adult: up to 50,000 training and 1,000 test rows. δ = 1e-05." in text
    assert "5 repetitions" in text
    assert "DD-SSP 2 of 5 at ε = 2" in text
    assert "Spent ε exceeds the asked ε: SSP (paper) 0.08 at ε = 0.05" in text
    assert "limits: smoke" in text


def test_footnote_names_the_data_set_where_they_differ():
    trials = [make_trial(status="failed"), make_trial(dataset="taxi", status="failed")]
    assert "(failed or not finite): SSP 1 of 1 at ε = 0.1." in footnote(draw(trials)[0])
    text = footnote(draw([*trials, make_trial("adassp", status="oom"), make_trial("adassp", dataset="taxi")])[0])
    assert "AdaSSP 1 of 1 at ε = 0.1 on adult." in text


def test_footnote_tells_what_was_not_run_and_nonprivate_inputs():
    used = make_trial("adassp", epsilon=1.0) | {"nonprivate_inputs": ["bounds"]}
    text = footnote(draw([make_trial(epsilon=0.1), used])[0])
    assert "Not run: SSP at ε = 1; AdaSSP at ε = 0.1" in text
    assert "Non-private inputs: bounds (AdaSSP)" in text


def test_means_outside_of_the_limits_are_marked_with_their_value():
    figure, drawn = draw([make_trial(mse=1234.5), make_trial("adassp", mse=0.1)], ylim=[0.05, 0.5])
    assert dict(zip(drawn["series"], drawn["clipped"], strict=True)) == {"SSP": "above", "AdaSSP": ""}
    assert [text.get_text() for text in figure.axes[0].texts] == ["1230"]
    assert "Arrows" in footnote(figure)
    assert figure.axes[0].get_ylim() == (0.05, 0.5)


def test_a_cell_without_values_leaves_a_hole_and_stays_in_the_csv():
    trials = [make_trial(epsilon=eps, status="done" if eps != 0.5 else "failed") for eps in (0.1, 0.5, 1.0)]
    figure, drawn = draw(trials)
    assert list(drawn["failed"]) == [0, 1, 0]
    assert np.isnan(lines_of(figure)["SSP"].get_ydata()[1])


def test_a_panel_per_data_set_and_delta():
    trials = [make_trial(), make_trial(delta=1e-6), make_trial(dataset="taxi"), make_trial("exact", epsilon="inf")]
    figure, _ = draw(trials)
    assert [axes.get_title() for axes in figure.axes] == ["adult, δ = 1e-06", "adult, δ = 1e-05", "taxi"]
    assert ["public" in axes.get_legend_handles_labels()[1] for axes in figure.axes] == [True, True, False]


@pytest.mark.parametrize(
    "trials",
    [
        [make_trial("exact", epsilon="inf")],
        [make_trial(status="failed")],
        [make_trial(mse=-1.0)],
        [make_trial(mse=0.0), make_trial(repetition=1, mse=0.3)],
        [make_trial(metrics=["r2"], scores=[{"name": "r2", "value": 1, "unit": "", "direction": "higher"}])],
    ],
    ids=["reference only", "all failed", "negative on a log axis", "bar down to zero", "no such metric"],
)
def test_scarce_trials_are_drawn_all_the_same(trials, tmp_path):
    assert len(save_figure(*draw(trials), tmp_path, "scarce")) == 3


def test_the_users_settings_do_not_matter_and_are_left_alone(tmp_path):
    trials = make_grid(repetitions=2)
    before = [path.read_bytes() for path in save_figure(*draw(trials), tmp_path / "a", "f")]
    rcParams["font.size"] = 20
    try:
        after = [path.read_bytes() for path in save_figure(*draw(trials), tmp_path / "b", "f")]
        assert rcParams["font.size"] == 20
    finally:
        rcParams["font.size"] = 10
    assert before == after


def test_declared_panels_give_titles_and_order_also_to_a_single_one():
    trials = [make_trial(), make_trial(dataset="taxi")]
    titles = {"taxi": "Taxi (2020)", "adult": "Adult", "fire": "Fire"}
    figure, drawn = draw(trials, panels=titles)
    assert [axes.get_title() for axes in figure.axes] == ["Taxi (2020)", "Adult"]
    assert "Each data set: up to 50,000 training" in footnote(figure)
    assert list(drawn["dataset"]) == ["taxi", "adult"]
    figure, _ = draw(trials[:1], panels=titles)
    assert (figure.axes[0].get_title(), figure.get_suptitle()) == ("Adult", SPEC["title"])
    assert "Adult: up to 50,000 training" in footnote(figure)


def test_limits_of_one_panel_leave_the_others_alone():
    trials = [make_trial(mse=9.0), make_trial(dataset="taxi", mse=9.0), make_trial("adassp", mse=0.1)]
    figure, drawn = draw(trials, ylim={"adult": [0.05, 0.5]})
    assert figure.axes[0].get_ylim() == (0.05, 0.5)
    assert dict(zip(drawn["dataset"] + drawn["series"], drawn["clipped"], strict=True)) == {
        "adultSSP": "above",
        "adultAdaSSP": "",
        "taxiSSP": "",
    }


def test_a_band_is_shaded_between_two_means_where_both_have_one():
    upper = [make_trial("ssp", epsilon=eps, mse=0.2 + eps) for eps in (0.1, 0.5, 1.0)]
    lower = [make_trial("adassp", epsilon=eps, mse=0.1 + eps) for eps in (0.05, 0.1, 0.5, 1.0)]
    upper += [make_trial("ssp", epsilon=2.0, status="failed")]
    band = {"between": ["adassp/linear_statistics", "ssp/linear_statistics"], "label": "a band"}
    figure, drawn = draw([*upper, *lower], bands=[band])
    (shade,) = [collection for collection in figure.axes[0].collections if collection.get_label() == "a band"]
    corners = {(round(x, 6), round(y, 6)) for x, y in shade.get_paths()[0].vertices.tolist()}
    assert corners == {(0.1, 0.2), (0.1, 0.3), (0.5, 0.6), (0.5, 0.7), (1.0, 1.1), (1.0, 1.2)}
    lines = lines_of(figure)
    assert (lines["AdaSSP"].get_marker(), lines["SSP"].get_marker()) == ("", "*")
    assert lines["AdaSSP"].get_color() == lines["SSP"].get_color() == COLOURS[2]
    assert (drawn["x"] == drawn["epsilon"]).all(), "the lines of a band are not moved sideways"
    assert figure.legends[0].get_texts()[-1].get_text() == "a band"


def test_a_band_without_one_of_its_lines_is_left_out():
    figure, _ = draw([make_trial()], bands=[{"between": ["ssp/linear_statistics", "aim/linear_rows"], "label": "band"}])
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["SSP"]


def test_footnote_groups_data_sets_and_what_was_taken_from_them():
    used = {"nonprivate_inputs": ["bounds"]}
    trials = [make_trial(), make_trial("adassp"), make_trial(dataset="taxi") | used]
    trials += [make_trial("adassp", dataset="taxi") | {"nonprivate_inputs": ["bounds", "settings"]}]
    trials += [make_trial(repetition=1), make_trial(epsilon=1.0)]
    text = footnote(draw(trials)[0])
    assert "Each data set: up to 50,000 training" in text
    assert "2 repetitions (adult) and 1 repetition (taxi)" in text
    assert "Not run: AdaSSP at ε = 1 on adult." in text
    assert "Non-private inputs: bounds (every private method on taxi); settings (AdaSSP on taxi)" in text


def test_a_long_footnote_makes_the_figure_higher():
    short, long = draw(make_grid())[0], draw(make_grid(), notes="word " * 300)[0]
    assert long.get_figheight() > short.get_figheight() + 0.5
