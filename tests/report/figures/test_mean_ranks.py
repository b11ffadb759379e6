"""Mean ranks over data sets, and when their difference is more than chance."""

import math
from itertools import pairwise

import pytest
from scipy.stats import friedmanchisquare

from dpbench.report.figures.mean_ranks import mean_ranks
from dpbench.report.frames.frame import trial_frame
from tests.report.made_up import LABELS, drawing, footnote, make_trial

SPEC = {"name": "ranks", "kind": "mean_ranks", "metric": "mse", "title": "Linear regression"}
MSE = {  # by data set: SSP, AdaSSP, Analyze Gauss
    "adult": (0.3, 0.2, 0.1),
    "fire": (0.9, 0.5, 0.4),
    "taxi": (0.3, 0.2, 0.4),
    "acs": (0.7, 0.6, 0.5),
}
METHODS = ("ssp", "adassp", "analyze_gauss")


def trials(mse=MSE, **settings):
    return [
        make_trial(method, mse=value, dataset=dataset, **settings)
        for dataset, values in mse.items()
        for method, value in zip(METHODS, values, strict=True)
    ]


def drawn(stored, **spec):
    figure, points = drawing(mean_ranks(trial_frame(stored), LABELS, {**SPEC, **spec}))
    return figure, points.set_index("series")


def test_ranks_are_means_over_data_sets_with_the_critical_difference_of_the_tables():
    _, points = drawn(trials())
    assert points["mean_rank"].to_dict() == {"SSP": 2.75, "AdaSSP": 1.75, "analyze_gauss / linear_statistics": 1.5}
    critical = 2.343 * math.sqrt(3 * 4 / (6 * 4))  # Demšar 2006, Table 5a: q of three methods at 5 %
    assert (points["high"] - points["low"]).to_numpy() == pytest.approx(critical, abs=2e-3)
    assert points["best"].tolist() == [0, 1, 3]
    assert points["friedman_p"].iloc[0] == pytest.approx(friedmanchisquare(*zip(*MSE.values(), strict=True)).pvalue)


def test_of_a_score_that_should_be_high_the_highest_is_first():
    _, points = drawn(trials(), metric="r2")  # 1 - mse
    assert points["mean_rank"]["SSP"] == 2.75


def test_a_method_that_fails_once_ranks_last_and_one_that_was_not_run_drops_the_data_set():
    lost = [*trials(), make_trial("analyze_gauss", dataset="acs", repetition=1, status="failed")]
    assert drawn(lost)[1]["mean_rank"]["analyze_gauss / linear_statistics"] == (1 + 1 + 3 + 3) / 4
    figure, points = drawn([trial for trial in trials() if trial.release_id != trials()[-1].release_id])
    assert set(points["datasets"]) == {3} and "ε = 0.1: 3 data sets" in footnote(figure)


def test_a_method_run_on_fewer_than_half_of_the_data_sets_has_no_rank_and_drops_none():
    figure, points = drawn([*trials(), make_trial("jlt", mse=0.0, dataset="acs")])
    assert points["mean_rank"].to_dict() == drawn(trials())[1]["mean_rank"].to_dict() and set(points["datasets"]) == {4}
    assert "Without a rank, as run on fewer than half of the data sets: jlt" in footnote(figure)


def test_scores_at_two_deltas_are_ranked_apart():
    other = {name: values[::-1] for name, values in MSE.items()}
    figure, points = drawn([*trials(), *trials(other, delta=1e-9)])
    assert "A data set counts once for each of its δ" in footnote(figure)
    assert points["mean_rank"].tolist() == pytest.approx([2.125, 1.75, 2.125]) and set(points["datasets"]) == {8}


def test_each_epsilon_has_a_panel_and_references_have_no_rank():
    stored = [*trials(), *trials(epsilon=2.0), make_trial("exact", epsilon=math.inf, dataset="adult", mse=0.0)]
    figure, points = drawn(stored)
    assert [axes.get_title() for axes in figure.axes] == ["ε = 0.1", "ε = 2"] and "public" not in points.index
    top = figure.axes[0].get_yticklabels()[0].get_text()
    assert top == "analyze_gauss / linear_statistics"  # the best one


def test_one_data_set_has_no_test_and_none_no_points():
    _, points = drawn(trials({"adult": MSE["adult"]}))
    assert points["low"].isna().all() and points["mean_rank"].tolist() == [3, 2, 1]
    assert drawn([])[1].empty


def test_a_method_without_a_value_has_no_place_though_all_are_without():
    lost = [make_trial(method, dataset="adult", status="failed") for method in METHODS]
    _, points = drawn([*lost, *trials({"fire": MSE["fire"]})])
    assert points["best"].tolist() == [0, 0, 1] and points["mean_rank"].to_list() == [2.5, 2.0, 1.5]


def test_the_names_of_many_methods_do_not_overlap():
    many = [make_trial("ssp", mse=0.1 + i, parameters={"rounds": i}, dataset=name) for i in range(25) for name in MSE]
    figure, points = drawn(many)
    figure.canvas.draw()
    boxes = [label.get_window_extent() for label in figure.axes[0].get_yticklabels()]
    assert len(boxes) == len(points) == 25
    assert all(below.y1 <= above.y0 + 1 for above, below in pairwise(boxes))
