"""Machine learning on released rows: what is learned, from which releases, and where there is too little."""

import pickle
from dataclasses import replace

import numpy as np
import pytest

from dpbench.data.domain import Attribute, Domain
from dpbench.data.encode import Design
from dpbench.data.table import Split, Table
from dpbench.errors import NoEstimateError, UserError
from dpbench.metrics.classification import accuracy, auc, log_loss
from dpbench.metrics.evaluation import Evaluation, Reference
from dpbench.models.estimators import mlp, random_forest, svr, xgboost
from dpbench.models.logistic import logistic_lbfgs
from dpbench.privacy.budget import Budget
from dpbench.privacy.ledger import Ledger
from dpbench.releases import BinSums, Release, SyntheticRows

DOMAIN = Domain(
    (
        Attribute.binned("large", 0, 2e6, 10),
        Attribute.binned("small", 0, 2e-3, 10),
        Attribute.categorical("side", ["left", "right"]),
        Attribute.binned("y", -10, 10, 10),
    )
)
DESIGN = Design(DOMAIN, "y", intercept=False, categorical="one_hot", scaled=False, exact=True)
MODELS = (xgboost, random_forest, svr, mlp)


def table(large, small, side, y):
    numbers = {"large": large, "small": small, "y": y}
    columns = {"side": side} | {name: DOMAIN[name].code(column) for name, column in numbers.items()}
    return Table(DOMAIN, np.stack([columns[name] for name in DOMAIN.names], axis=1).astype(np.int64), numbers)


def drawn(n, seed):
    """Rows with y = 3 sin(4 u) + 2 v, or - 2 v on the right, at u, v uniform on (0, 1)."""
    rng = np.random.default_rng(seed)
    u, v, side = rng.uniform(size=n), rng.uniform(size=n), rng.integers(0, 2, n)
    return table(2e6 * u, 2e-3 * v, side, 3 * np.sin(4 * u) + 2 * v * (1 - 2 * side))


def released(rows):
    return Release(DOMAIN, Budget(1.0), Ledger(), (SyntheticRows(rows),))


def trained(model, rows, seed=0, **settings):
    return model(released(rows), design=DESIGN, rng=np.random.default_rng(seed), **settings)


def unexplained(fit, rows):
    X, y = DESIGN.encode(rows)
    return np.mean((y - fit.predict(X)) ** 2) / np.var(y)


@pytest.mark.parametrize("model", MODELS)
def test_a_function_that_is_not_linear_is_learned_from_rows(model):
    fit, test = trained(model, drawn(1500, 0)), drawn(500, 1)
    assert unexplained(fit, test) < 0.02
    X, y = DESIGN.encode(test)
    line = X @ np.linalg.lstsq(X, y, rcond=None)[0]
    assert np.mean((y - line) ** 2) / np.var(y) > 0.2


@pytest.mark.parametrize("model", [svr, mlp])
def test_features_in_unlike_units_need_the_unit_box(model):
    assert unexplained(trained(model, drawn(1500, 0), unit_box=False), drawn(500, 1)) > 0.1


def test_a_feature_with_hardly_any_spread_does_not_send_real_rows_far_off():
    """As a failed generator makes it: all other values of the feature are new to the network."""
    rng = np.random.default_rng(0)
    n = 1000
    rows = table(1e6 + rng.normal(0, 1e-3, n), rng.uniform(0, 2e-3, n), rng.integers(0, 2, n), rng.normal(0, 1, n))
    assert np.abs(trained(mlp, rows).predict(DESIGN.encode(drawn(500, 1))[0])).max() < 10


@pytest.mark.parametrize("model", MODELS)
def test_predictions_hang_on_the_generator_only(model):
    train, X = drawn(600, 0), DESIGN.encode(drawn(50, 1))[0]
    one, two = (trained(model, train, seed=1) for _ in range(2))
    predictions = one.predict(X)
    np.testing.assert_array_equal(predictions, two.predict(X))
    np.testing.assert_allclose(predictions[:7], one.predict(X[:7]), rtol=1e-12)  # and not on the other test rows
    if model in (random_forest, mlp):  # the other two draw nothing
        assert np.any(predictions != trained(model, train, seed=2).predict(X))


@pytest.mark.parametrize("model", MODELS)
def test_bins_serve_as_rows_do(model):
    """Bins of 4 equal rows, without noise: the rows drawn from them are those rows."""
    X, y = DESIGN.encode(drawn(400, 0))
    c = np.full(len(y), 4)
    bins = BinSums(X, X, c, 4 * X, 4 * y, np.zeros_like(X), 0.0)
    fit = model(Release(DOMAIN, Budget(1.0), Ledger(), (bins,)), design=DESIGN, rng=np.random.default_rng(0))
    assert fit.notes["rows"] == 1600
    assert unexplained(fit, drawn(500, 1)) < 0.05


@pytest.mark.parametrize(
    ("model", "rows", "error"),
    [(xgboost, 1, 0), (xgboost, 600, 0), (random_forest, 1, 0), (svr, 1, 0.1), (svr, 600, 0.1), (mlp, 600, 0.5)],
)
def test_a_constant_target_is_predicted(model, rows, error):
    train = drawn(rows, 0)
    train = table(train.numbers["large"], train.numbers["small"], train.column("side"), np.full(len(train), 5.0))
    predictions = trained(model, train).predict(DESIGN.encode(train)[0])
    np.testing.assert_allclose(predictions, 5.0, atol=error + 1e-6)
    assert predictions.dtype == float


# --- classifiers -----------------------------------------------------------------------------------------------------

LABELLED = Domain((*DOMAIN.attributes[:3], Attribute.categorical("y", ["no", "yes"])))
CLASSES = Design(LABELLED, "y", intercept=False, categorical="one_hot", scaled=False, exact=True)
CLASSIFIERS = (xgboost, random_forest, mlp)


def classified(n, seed, flip=0.1):
    """Rows whose label is that of u > 1/2 and v > 1/2 being unlike, but for a part `flip` of them."""
    rng = np.random.default_rng(seed)
    u, v = rng.uniform(size=n), rng.uniform(size=n)
    y = ((u > 0.5) ^ (v > 0.5) ^ (rng.uniform(size=n) < flip)).astype(np.int64)
    numbers = {"large": 2e6 * u, "small": 2e-3 * v}
    codes = [LABELLED[name].code(column) for name, column in numbers.items()]
    return Table(LABELLED, np.stack([*codes, rng.integers(0, 2, n), y], axis=1).astype(np.int64), numbers)


def classifier(model, rows, **settings):
    made = Release(LABELLED, Budget(1.0), Ledger(), (SyntheticRows(rows),))
    return model(made, design=CLASSES, rng=np.random.default_rng(0), **settings)


@pytest.mark.parametrize("model", CLASSIFIERS)
def test_of_two_levels_the_log_odds_are_learned(model):
    """The true log-odds are +-log 9, the least log loss 0.325, the best accuracy 0.9, and a line has 0.5."""
    fit = classifier(model, classified(2000, 0))
    test = classified(1000, 1)
    X, y = CLASSES.encode(test)
    score = Evaluation(fit, Release(LABELLED, Budget(1.0), Ledger()), Reference(Split(test, test), CLASSES))
    assert accuracy(score).value > 0.8 and auc(score).value > 0.8
    odds = fit.predict(X)
    assert odds.shape == y.shape and odds.dtype == float and np.isfinite(odds).all()
    if model is not random_forest:  # its trees are sure of themselves
        assert 0.3 < log_loss(score).value < 0.6
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(fit)).predict(X), odds)


def test_a_forest_that_is_certain_has_a_finite_log_loss():
    fit = classifier(random_forest, classified(400, 0, flip=0.0))
    odds = fit.predict(CLASSES.encode(classified(400, 0, flip=0.0))[0])
    assert 30 < np.abs(odds).max() < 40, "scikit-learn's log_loss cuts a probability at 2.2e-16 too"


@pytest.mark.parametrize("model", CLASSIFIERS)
def test_rows_of_one_class_give_no_estimate(model):
    rows = classified(1200, 0)
    with pytest.raises(NoEstimateError, match="same level of 'y'"):
        classifier(model, rows.take(np.flatnonzero(rows.column("y") == 1)))


@pytest.mark.parametrize("model", MODELS)
def test_without_rows_there_is_no_estimate(model):
    with pytest.raises(NoEstimateError, match="no rows"):
        trained(model, drawn(0, 0))


def test_the_network_is_left_out_below_500_rows():
    with pytest.raises(NoEstimateError, match=r"499 rows.*least_rows=500"):
        trained(mlp, drawn(499, 0))


def test_a_network_that_was_stopped_says_so(recwarn):
    notes = trained(mlp, drawn(500, 0), epochs=3).notes
    assert notes == {"rows": 500, "epochs": 3, "converged": False}
    assert not recwarn.list
    assert trained(mlp, drawn(500, 0), epochs=2000).notes["converged"]


@pytest.mark.parametrize(
    ("model", "settings"),
    [(xgboost, {"trees": 0}), (xgboost, {"learning_rate": 0.0}), (random_forest, {"trees": 0}), (svr, {"tube": -1.0})],
)
def test_a_setting_that_is_not_positive_is_refused(model, settings):
    with pytest.raises(UserError, match="must be greater than 0"):
        trained(model, drawn(10, 0), **settings)


# --- several levels --------------------------------------------------------------------------------------------------

QUADRANTS = Domain((*DOMAIN.attributes[:3], Attribute.categorical("y", ["none", "a", "b", "c", "d"])))
SEVERAL = replace(CLASSES, domain=QUADRANTS, classes=True)


def in_quadrants(n, seed):
    """Rows whose level names the quadrant of (u, v); the first level does not occur."""
    rng = np.random.default_rng(seed)
    u, v = rng.uniform(size=n), rng.uniform(size=n)
    numbers = {"large": 2e6 * u, "small": 2e-3 * v}
    codes = [QUADRANTS[name].code(column) for name, column in numbers.items()]
    level = 1 + (u > 0.5) + 2 * (v > 0.5)
    return Table(QUADRANTS, np.stack([*codes, rng.integers(0, 2, n), level], axis=1).astype(np.int64), numbers)


@pytest.mark.parametrize("model", [*CLASSIFIERS, logistic_lbfgs])
def test_of_several_levels_the_level_is_predicted(model):
    made = Release(QUADRANTS, Budget(1.0), Ledger(), (SyntheticRows(in_quadrants(2000, 0)),))
    design = SEVERAL if model is not logistic_lbfgs else replace(SEVERAL, scaled=True, intercept=True)
    fit, test = model(made, design=design, rng=np.random.default_rng(0)), in_quadrants(500, 1)
    scored = Evaluation(fit, made, Reference(Split(test, test), design))
    assert set(fit.predict(design.encode(test)[0])) == {1.0, 2.0, 3.0, 4.0}
    assert accuracy(scored).value > 0.9
    with pytest.raises(ValueError, match="does not have two levels"):
        auc(scored)
