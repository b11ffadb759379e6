"""The footnote on methods that experiments plan, but that have no trial."""

import math
from dataclasses import replace

import pytest

from dpbench.config import compose
from dpbench.report.build import build_report
from dpbench.report.frames.results import Results
from dpbench.report.missing import not_run

from .made_up import LABELS, REPORT, make_trial

METHODS = [("ssp", "linear_statistics"), ("adassp", "linear_statistics"), ("aim", "linear_marginals")]
EVERYWHERE = [(*method, epsilon) for method in METHODS for epsilon in (0.1, 1.0)]
EVERYWHERE += [("exact", "linear_statistics", math.inf)]
OVER_ROWS = {"x": "release.split.train_rows"}


def calibration_of(mechanism):
    return None if mechanism == "exact" else "tight"


@pytest.fixture(scope="module")
def planned():
    """An experiment that plans `EVERYWHERE` on adult and on taxi."""
    axes = ["mechanism=[exact,ssp,adassp,aim]", "model=[linear_statistics,linear_marginals]", "metric=[mse,r2]"]
    one = compose(["experiment=quickstart", *axes, "epsilon=[0.1,1.0]", "calibration=[tight]", "repetitions=2"])
    points = tuple(replace(one, dataset=replace(one.dataset, name=name)) for name in ("adult", "taxi"))
    return replace(one, points=points, report={**one.report, **REPORT})


@pytest.fixture
def reported(planned):
    """reported(cells on adult, cells on taxi, what the figure's spec has more): the sentences."""

    def of(adult, taxi, more=(), **spec):
        trials = [
            make_trial(mechanism, model, epsilon, dataset=dataset, calibration=calibration_of(mechanism))
            for dataset, cells in (("adult", adult), ("taxi", taxi))
            for mechanism, model, epsilon in cells
        ]
        return not_run([Results(planned, [*trials, *more])], LABELS, {"metric": "mse", **spec})

    return of


def without(mechanism, *epsilons):
    return [cell for cell in EVERYWHERE if cell[0] != mechanism or (epsilons and cell[2] not in epsilons)]


def test_where_all_was_run_nothing_is_reported(reported):
    assert reported(EVERYWHERE, EVERYWHERE) == []


def test_a_method_without_a_trial_on_a_data_set_is_named(reported):
    assert reported(EVERYWHERE, without("aim"), panels={"taxi": "Taxi"}) == ["Not run: DD-SSP on Taxi"]
    assert reported(without("exact"), EVERYWHERE) == ["Not run: public on adult"]  # nor is the reference forgotten


def test_an_epsilon_at_which_no_method_has_a_trial_is_reported(reported):
    half = [cell for cell in EVERYWHERE if cell[2] != 1.0]
    assert reported(EVERYWHERE, half) == ["Not run: every private method at ε = 1 on taxi"]


def test_what_is_missing_alike_is_reported_once(reported):
    lacking = [cell for cell in without("adassp", 0.1) if cell in without("aim", 0.1)]
    assert reported(lacking, lacking) == ["Not run: AdaSSP and DD-SSP at ε = 0.1"]
    assert reported(without("adassp", 0.1), without("adassp")) == [
        "Not run: AdaSSP at ε = 0.1 on adult; AdaSSP on taxi"
    ]


def test_a_delta_that_was_not_run_is_reported_where_a_data_set_has_several(planned):
    points = tuple(replace(point, delta=delta) for point in planned.points[:1] for delta in (1e-5, 1e-6))
    one = replace(planned, points=points)
    trials = [make_trial(*cell, calibration=calibration_of(cell[0])) for cell in EVERYWHERE]
    assert not_run([Results(one, trials)], LABELS, {}) == ["Not run: every private method on adult, δ = 1e-06"]


def test_a_trial_that_failed_was_run(reported):
    failed = make_trial("aim", "linear_marginals", 1.0, dataset="taxi", status="oom", calibration="tight")
    assert reported(EVERYWHERE, without("aim", 1.0), [failed]) == []


def test_what_no_experiment_plans_is_not_missed(reported):
    more = [make_trial("jlt", "linear_statistics", 1.0), make_trial(epsilon=10.0, calibration="tight")]
    assert reported(EVERYWHERE, EVERYWHERE, more) == []


def test_what_a_figure_does_not_show_is_not_missed(reported):
    assert reported(EVERYWHERE, without("aim"), show=["SSP", "AdaSSP"]) == []
    assert reported(without("aim"), without("aim"), show=["SSP", "DD-SSP"]) == []  # reported as a method not run
    assert reported(EVERYWHERE, without("aim", 1.0), epsilon=0.1) == []
    assert reported(EVERYWHERE, without("aim", 1.0), epsilon=1.0) == ["Not run: DD-SSP on taxi"]
    assert reported(EVERYWHERE, without("aim"), where={"release.dataset.name": "adult"}) == []


def test_over_another_axis_a_method_is_missed_if_it_has_no_trial_on_the_data_set(reported):
    assert reported(EVERYWHERE, without("aim", 1.0), **OVER_ROWS) == []
    half = [cell for cell in EVERYWHERE if cell[0] == "exact"]
    assert reported(EVERYWHERE, half, **OVER_ROWS) == ["Not run: every private method on taxi"]
    assert reported(EVERYWHERE, without("aim"), **OVER_ROWS) == ["Not run: DD-SSP on taxi"]


def test_of_an_experiment_without_trials_nothing_is_reported(planned):
    assert not_run([Results(planned, [])], LABELS, {"metric": "mse"}) == [] == not_run([], LABELS, {})


def test_the_report_of_an_experiment_reports_it(planned, tmp_path):
    trials = [
        make_trial(*cell, dataset=name, calibration=calibration_of(cell[0]))
        for cell in without("adassp", 1.0)
        for name in ("adult", "taxi")
    ]
    build_report(Results(replace(planned, name="quickstart"), trials), tmp_path)
    assert "Not run: AdaSSP at ε = 1." in (tmp_path / "tables/quickstart.md").read_text()
