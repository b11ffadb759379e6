"""Machine learning on released rows: what is learned, from which releases, and where there is too little."""

import numpy as np
import pytest

from dpbench.data.domain import Attribute, Domain
from dpbench.data.encode import Design
from dpbench.data.table import Table
from dpbench.errors import NoEstimateError, UserError
from dpbench.mechanisms.release import BinSums, Release
from dpbench.models.estimators import mlp, random_forest, svr, xgboost
from dpbench.privacy.budget import Budget, Ledger

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
    return Release(DOMAIN, Budget(1.0), Ledger(), rows=rows)


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
    fit = model(Release(DOMAIN, Budget(1.0), Ledger(), bins=bins), design=DESIGN, rng=np.random.default_rng(0))
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
