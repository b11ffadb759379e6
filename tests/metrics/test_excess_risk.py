"""Excess risk, and its bounds for a run: every step of a bound is above the next and above what was measured."""

import math
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from dpbench.data.domain import Attribute, Domain
from dpbench.data.encode import Design
from dpbench.data.table import Split, Table
from dpbench.errors import UserError
from dpbench.mechanisms.exact import exact_table
from dpbench.metrics.classification import accuracy, auc, log_loss
from dpbench.metrics.evaluation import Evaluation, Reference
from dpbench.metrics.excess_risk import excess_risk, excess_risk_test, risk_bound_general, risk_bound_logistic
from dpbench.metrics.marginals import marginal_distances
from dpbench.models.fit import Fit
from dpbench.models.logistic import logistic_lbfgs, logistic_marginals, logistic_rows
from dpbench.privacy.budget import Budget
from dpbench.privacy.ledger import Ledger
from dpbench.releases import Coefficients, Release, SyntheticRows

FREE = Budget(math.inf)
DOMAIN = Domain(
    (
        Attribute.binned("a", 0, 4, 4),
        Attribute.categorical("b", "uvw"),
        Attribute.binned("c", -1, 1, 3),
        Attribute.categorical("y", ["no", "yes"]),
    )
)
DESIGN = Design(DOMAIN, "y")


def table(rows, seed, signal=1.0):
    rng = np.random.default_rng(seed)
    codes = np.stack([rng.integers(0, attribute.size, rows) for attribute in DOMAIN.attributes], axis=1)
    X, _ = DESIGN.encode(Table(DOMAIN, codes))
    codes[:, 3] = rng.random(rows) < 1 / (1 + np.exp(-signal * (X @ np.array([1.5, -1, 0.5, 2, 0.3]))))
    return Table(DOMAIN, codes)


def run(train, synthetic, test=None, model=logistic_rows, design=DESIGN):
    """The model is fitted to `synthetic`, which a mechanism released, and scored on `train` and `test`."""
    fitted = partial(model, design=design)
    release = exact_table(synthetic, FREE, np.random.default_rng(0))
    return Evaluation(fitted(release), release, Reference(Split(train, test or train), design), fitted)


def test_excess_risk_is_the_difference_of_two_mean_losses():
    train, test = table(400, 0), table(300, 1)
    evaluation = run(train, table(50, 2), test)
    exact = replace(evaluation, fit=evaluation.nonprivate)
    assert excess_risk_test(evaluation).value == pytest.approx(log_loss(evaluation).value - log_loss(exact).value)
    swapped = run(train, table(50, 2), train)
    assert excess_risk(evaluation).value == pytest.approx(excess_risk_test(swapped).value)
    assert excess_risk(evaluation).value > 0


def test_a_model_is_compared_with_itself_without_noise_and_released_coefficients_with_maximum_likelihood():
    train = table(400, 0)
    assert excess_risk(run(train, train, model=logistic_marginals)).value == 0
    best = run(train, train)
    assert excess_risk(best).value == 0
    theta = best.fit.coefficients + 0.3
    release = Release(DOMAIN, FREE, Ledger(), (Coefficients(theta, "logistic"),))
    found = excess_risk(Evaluation(Fit(theta), release, best.reference, lambda _: Fit(theta)))
    assert found.value == pytest.approx(excess_risk(replace(best, fit=Fit(theta))).value)
    assert found.value > 0


@pytest.mark.parametrize("bound", [risk_bound_general, risk_bound_logistic])
@pytest.mark.parametrize("degree", [2, 3, 4])
@pytest.mark.parametrize("rows", [20, 400, 3000])
@pytest.mark.parametrize("signal", [0.0, 1.0, -1.0])
@pytest.mark.parametrize("model", [logistic_rows, logistic_marginals])
def test_every_step_of_a_bound_is_above_what_it_bounds(bound, degree, rows, signal, model):
    evaluation = run(table(400, 0), table(rows, 1, signal), model=model)
    score = bound(evaluation, degree=degree)
    steps = dict(score.detail["steps"])
    assert score.value == steps["theorem"]
    assert steps["measured"] == pytest.approx(excess_risk(evaluation).value)
    assert steps["theorem"] >= steps["polynomial"] >= steps["weights"] >= steps["minimax"] >= steps["risks"]
    assert steps["risks"] >= steps["measured"] - 1e-9


def test_a_fit_that_minimises_its_own_loss_adds_nothing_to_the_bound_and_another_what_it_lacks():
    made = run(table(400, 0), table(90, 1, signal=-1.0))
    score = risk_bound_logistic(made)
    assert score.detail["optimisation"] == 0
    assert score.value == score.detail["approximation"] + score.detail["marginal"]
    worse = risk_bound_logistic(replace(made, fit=Fit(-10 * made.fit.coefficients))).detail
    assert worse["optimisation"] > 0


def test_what_a_mechanism_promises_is_a_step_of_the_bound_of_the_same_marginals_alone():
    made = run(table(400, 0), table(90, 1))
    known = risk_bound_logistic(made, degree=3).detail
    found = {"promised_distance": 400 * known["distance"] * 2, "marginals": 14}  # of up to 3 of 4 attributes
    promising = replace(made, release=replace(made.release, diagnostics=found))
    (first, promise), (second, theorem), *_ = risk_bound_logistic(promising, degree=3).detail["steps"]
    assert (first, second) == ("promise", "theorem")
    assert promise - theorem == pytest.approx(known["marginal"])
    assert risk_bound_logistic(promising, degree=2).detail["steps"][0][0] == "theorem"


def test_the_same_rows_leave_the_approximation_alone():
    train = table(400, 0)
    score = risk_bound_logistic(run(train, train))
    theta = run(train, train).fit.coefficients
    assert score.value == pytest.approx(score.detail["approximation"]) and score.detail["distance"] == 0
    assert score.value == pytest.approx(4 * 3 / 4 * 5 * (theta @ theta) / 3)
    assert score.detail["steps"][-1] == ["measured", 0.0]


def test_the_distance_is_the_largest_of_all_marginals_of_so_many_attributes():
    train, synthetic = table(400, 0), table(90, 1)
    detail = risk_bound_logistic(run(train, synthetic), degree=3).detail
    assert detail["distance"] == marginal_distances(train, synthetic, 3).max()
    assert detail["features"] == 5 and detail["rows"] == 400


@pytest.mark.parametrize("change", [{"scaled": False}, {"exact": True}])
def test_a_design_whose_features_the_theorems_do_not_have_is_refused(change):
    with pytest.raises(UserError, match=r"risk_bound_logistic needs features in \[-1, 1\]"):
        risk_bound_logistic(run(table(40, 0), table(40, 1), design=replace(DESIGN, **change)))


def test_a_degree_above_the_number_of_attributes_is_refused():
    with pytest.raises(UserError, match=r"degree=5: .* between 1 and 4"):
        risk_bound_general(run(table(40, 0), table(40, 1)), degree=5)


def test_a_target_of_numbers_or_a_model_without_coefficients_is_refused():
    evaluation = run(table(40, 0), table(40, 1))
    numbers = Design(DOMAIN, "a")
    with pytest.raises(ValueError, match="leave out excess_risk"):
        excess_risk(replace(evaluation, reference=Reference(evaluation.reference.split, numbers)))
    with pytest.raises(ValueError, match="no coefficients; leave excess_risk out"):
        excess_risk(replace(evaluation, fit=Fit(predictor=lambda X: X[:, 0])))


def test_rows_are_what_a_bound_needs():
    train = table(40, 0)
    release = Release(DOMAIN, FREE, Ledger(), (SyntheticRows(train.take(np.arange(0))),))
    evaluation = replace(run(train, train), release=release)
    with pytest.raises(UserError, match="without rows"):
        risk_bound_logistic(evaluation)


def test_the_model_without_noise_is_that_of_the_training_rows_whatever_the_mechanism_saw():
    train, test = table(400, 0), table(100, 1)
    own = run(train, table(50, 2), test)
    leaked = Reference(Split(train, test, protocol="authors"), DESIGN)
    given = Release(DOMAIN, FREE, Ledger(), (Coefficients(own.fit.coefficients, "logistic"),))
    for evaluation in (own, replace(own, release=given, model=None)):
        seen = replace(evaluation, reference=leaked)
        assert excess_risk(seen).value == excess_risk(evaluation).value
        assert excess_risk_test(seen).value == excess_risk_test(evaluation).value
    assert not np.allclose(leaked.likelihood, own.reference.likelihood)


@pytest.mark.parametrize("label", [0, 1])
def test_test_rows_of_one_class_have_no_auc_and_all_else(label):
    train = table(400, 0)
    test = train.take(np.flatnonzero(train.column("y") == label))
    evaluation = run(train, table(100, 1), test, model=partial(logistic_lbfgs, rng=np.random.default_rng(0)))
    assert math.isnan(auc(evaluation).value)
    for metric in (accuracy, log_loss, excess_risk, excess_risk_test):
        assert math.isfinite(metric(evaluation).value)
    assert 0 < accuracy(evaluation).value < 1
