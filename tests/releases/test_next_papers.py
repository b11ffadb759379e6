"""What three further papers need of a release: each is held by the kinds there are."""

from dataclasses import dataclass

import numpy as np
import pytest

from dpbench import inference
from dpbench.data.encode import Design, second_moments
from dpbench.data.table import Split
from dpbench.grid.tiny_tables import tiny_table
from dpbench.inference.mixture import ProductMixture
from dpbench.metrics.evaluation import Evaluation, Reference
from dpbench.metrics.queries import workload_error_max
from dpbench.models.fit import Fit, check_fit
from dpbench.models.linear import linear_rows
from dpbench.privacy.accounting import gaussian_mu, spent
from dpbench.privacy.budget import Budget
from dpbench.privacy.ledger import Ledger
from dpbench.privacy.noise import gaussian
from dpbench.releases import Distribution, Marginals, Release, SufficientStatistics, SyntheticRows, check_release

TABLE = tiny_table()
DESIGN = Design(TABLE.domain, "y")


def stored(release):
    """What a model sees of a release that passed its checks."""
    return Release.from_parts(*check_release(release, (), release.budget, TABLE.domain).to_parts())


# --- Bayesian GLMs: approximate sufficient statistics, and a posterior that knows their noise ------------------------


def pass_glm(train, budget, rng, *, design):
    """A quadratic approximation of a log-likelihood: its statistics, with noise of two scales."""
    ledger, p = Ledger(), len(design.columns)
    xtx, xty = second_moments(*design.encode(train))
    multiplier, upper = np.sqrt(2) / gaussian_mu(budget.epsilon, budget.delta), np.triu_indices(p)
    r, s = design.x_bound**2, design.x_bound * design.y_bound
    noisy = np.zeros((p, p))
    noisy[upper] = gaussian(rng, ledger, xtx[upper], sensitivity=r, multiplier=multiplier, label="X'X")
    xty = gaussian(rng, ledger, xty, sensitivity=s, multiplier=multiplier, label="X'y")
    statistics = SufficientStatistics(noisy + np.triu(noisy, 1).T, xty, multiplier * r, multiplier * s)
    return Release(train.domain, budget, ledger, (statistics,))


def noise_aware(release, *, design, rng, draws=200):
    """Draws from the posterior of theta, each of statistics whose noise was drawn again."""
    found, p = release[SufficientStatistics], len(design.columns)
    upper, thetas = np.triu_indices(p), []
    noise = rng.multivariate_normal(np.zeros(len(found.covariance)), found.covariance, size=draws)
    for one in noise:
        xtx = np.zeros((p, p))
        xtx[upper] = found.xtx[upper] - one[: len(upper[0])]
        xtx += np.triu(xtx, 1).T
        thetas.append(np.linalg.solve(xtx + 10 * np.eye(p), found.xty - one[len(upper[0]) :]))
    return Fit(np.mean(thetas, axis=0), covariance=np.cov(thetas, rowvar=False), draws=np.array(thetas))


def test_bayesian_glms_release_statistics_and_fit_a_posterior():
    release = stored(pass_glm(TABLE, Budget(20.0), np.random.default_rng(0), design=DESIGN))
    assert spent(release.ledger, 1e-5).epsilon <= 20 * (1 + 1e-9)
    fit = check_fit(noise_aware(release, design=DESIGN, rng=np.random.default_rng(1)), len(DESIGN.columns))
    assert fit.draws.shape == (200, len(DESIGN.columns))
    exact = Reference(Split(TABLE, TABLE), DESIGN).coefficients
    spread = np.sqrt(np.diag(fit.covariance))
    assert np.all(np.abs(fit.coefficients - exact) < 6 * spread + 0.2)


# --- excess risk: several sets of rows from one release --------------------------------------------------------------


def test_excess_risk_trains_on_several_sets_of_one_release():
    ones = [inference.Measurement((name,), TABLE.marginal((name,)), 1.0) for name in TABLE.domain.names]
    distribution = Distribution(ProductMixture(components=5).estimate(TABLE.domain.sizes, ones))
    first = SyntheticRows(distribution.sample(TABLE.domain, 200, np.random.default_rng(0)))
    release = stored(Release(TABLE.domain, Budget(1.0), Ledger(), (first, distribution)))
    sets = [release.redrawn(draw, np.random.default_rng(draw)) for draw in range(4)]
    fits = [linear_rows(one, design=DESIGN, rng=np.random.default_rng(0)).coefficients for one in sets]
    assert len({fit.tobytes() for fit in fits}) == 4
    assert len({one.outline for one in sets}) == 1


# --- query release: a histogram over the whole domain as another distribution ----------------------------------------


@dataclass(frozen=True)
class Histogram:
    """The weights of all cells of a small domain, as multiplicative weights leave them."""

    sizes: dict
    weights: np.ndarray

    def sample(self, rows, rng):
        cells = rng.choice(self.weights.size, size=rows, p=self.weights.ravel() / self.weights.sum())
        return np.stack(np.unravel_index(cells, self.weights.shape), axis=1)

    def state(self):
        sizes = [list(item) for item in self.sizes.items()]
        return {"model": "histogram", "sizes": sizes}, {"weights": self.weights}

    @classmethod
    def from_state(cls, data, arrays):
        return cls(dict(data["sizes"]), arrays["weights"])


def test_query_release_holds_a_histogram_that_is_sampled(monkeypatch):
    """A class of its own needs `state`, `from_state` and an entry in `inference.load_model`, here put in its place."""
    monkeypatch.setattr(inference, "load_model", Histogram.from_state)
    weights = np.ones(tuple(TABLE.domain.sizes.values()))
    distribution = Distribution(Histogram(dict(TABLE.domain.sizes), weights))
    tables = {(name,): np.full(size, len(TABLE) / size) for name, size in TABLE.domain.sizes.items()}
    rows = SyntheticRows(distribution.sample(TABLE.domain, len(TABLE), np.random.default_rng(0)))
    release = stored(Release(TABLE.domain, Budget(1.0), Ledger(), (Marginals(tables), rows, distribution)))
    again = release.redrawn(1, np.random.default_rng(1))
    assert len(again[SyntheticRows].table) == len(TABLE)
    evaluation = Evaluation(Fit(np.zeros(1)), again, Reference(Split(TABLE, TABLE), DESIGN))
    expected = max(np.abs(TABLE.marginal(r) - t).sum() / len(TABLE) for r, t in tables.items())
    assert workload_error_max(evaluation).value == pytest.approx(expected)
