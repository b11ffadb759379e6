"""SSP: the noise of each statistic, what it costs together, and a measured privacy loss."""

import math
from functools import partial

import numpy as np
import pytest
from scipy import stats

from dpbench.data.domain import Attribute, Domain
from dpbench.data.encode import Design
from dpbench.data.table import Table
from dpbench.errors import UserError
from dpbench.mechanisms.ssp import ssp
from dpbench.privacy.accounting import spent
from dpbench.privacy.budget import Budget
from dpbench.privacy.noise import gaussian
from dpbench.releases import SufficientStatistics

DELTA = 1e-5


@pytest.fixture
def design(small_domain):
    return Design(small_domain, "grade")


def test_discrete_noise_has_the_size_of_the_continuous_one(small_table, design):
    """Kolmogorov-Smirnov at level 1e-4 of X'X and X'y less the exact ones, in units of the noise that they state."""
    X, y = design.encode(small_table)
    upper = np.triu_indices(X.shape[1])
    drawn = []
    for seed in range(100):
        rng = np.random.default_rng(seed)
        told = ssp(small_table, Budget(1.0, DELTA), rng, design=design, noise="discrete")[SufficientStatistics]
        assert np.array_equal(told.xtx, told.xtx.T)
        drawn += [(told.xtx - X.T @ X)[upper] / told.xtx_sd, (told.xty - X.T @ y) / told.xty_sd]
    assert stats.kstest(np.concatenate(drawn), "norm").pvalue > 1e-4


def test_statistics_for_intervals_are_covered_too_and_cost_no_more(small_table, small_domain):
    design = Design(small_domain, "grade", scaled=False)
    draw = partial(ssp, small_table, Budget(1.0, DELTA), design=design, intervals=True)
    release = draw(np.random.default_rng(0))
    assert release.ledger.events[-1].label == "y'y"
    assert release.ledger.events[-1].sensitivity == 25  # grades 1 to 5
    assert spent(release.ledger, DELTA).epsilon == pytest.approx(1.0, rel=1e-6)
    assert spent(release.ledger, DELTA).epsilon <= 1 + 1e-9
    _, y = design.encode(small_table)
    sd = release.ledger.events[-1].sensitivity * release.ledger.events[-1].multiplier
    mean = np.mean([draw(np.random.default_rng(seed))[SufficientStatistics].yty for seed in range(200)])
    assert abs(mean - y @ y) < 5 * sd / math.sqrt(200)  # error rate below 1e-6
    assert (
        ssp(small_table, Budget(1.0, DELTA), np.random.default_rng(0), design=design)[SufficientStatistics].yty is None
    )


def test_noise_is_symmetric_and_of_the_size_in_the_release(small_table, design):
    """Sample deviations of 400 draws lie within 5 standard errors (error rate below 1e-5)."""
    budget = Budget(1.0, DELTA)
    draws = [
        ssp(small_table, budget, np.random.default_rng(seed), design=design)[SufficientStatistics]
        for seed in range(400)
    ]
    for attribute, sd in [("xtx", draws[0].xtx_sd), ("xty", draws[0].xty_sd)]:
        values = np.array([getattr(draw, attribute) for draw in draws])
        ratio = values.std(axis=0, ddof=1).mean() / sd
        assert abs(ratio - 1) < 5 / np.sqrt(2 * 400 * values[0].size / 2)
    assert np.array_equal(draws[0].xtx, draws[0].xtx.T)


@pytest.mark.slow
def test_measured_privacy_loss_stays_under_the_claim_and_a_broken_mechanism_is_caught():
    """Clopper-Pearson lower bound on eps (level 1e-6) from 20,000 runs on two worst-case neighbours.

    The test statistic is the entry that a row at the corner of asymmetric bounds moves most.
    """
    from scipy.stats import beta

    domain = Domain((Attribute.from_edges("x", [-3, 1, 7]), Attribute.discrete("y", [0, 2])))
    design = Design(domain, "y", intercept=True)
    empty, one = (Table(domain, np.ones((n, 2), dtype=np.int64)) for n in (0, 1))
    epsilon, runs = 2.0, 20_000

    def lower_bound(draw) -> float:
        without, with_row = (np.array([draw(table, seed) for seed in range(runs)]) for table in (empty, one))
        best = 0.0
        for threshold in np.quantile(with_row, [0.5, 0.7, 0.9]):
            hits, false_hits = (with_row > threshold).sum(), (without > threshold).sum()
            p = beta.ppf(1e-6, hits, runs - hits + 1)
            q = beta.ppf(1 - 1e-6, false_hits + 1, runs - false_hits)
            best = max(best, math.log((p - DELTA) / q))
        return best

    def honest(table, seed):
        release = ssp(table, Budget(epsilon, DELTA), np.random.default_rng([len(table), seed]), design=design)
        return release[SufficientStatistics].xtx[-1, -1]

    def broken(table, seed):  # noise for a tenth of the sensitivity
        from dpbench.privacy.ledger import Ledger

        rng = np.random.default_rng([len(table), seed])
        return gaussian(rng, Ledger(), float(len(table)), sensitivity=0.1, multiplier=1.4, label="count")

    assert lower_bound(honest) <= epsilon
    assert lower_bound(broken) > epsilon


def test_unknown_calibration_is_named(small_table, design):
    with pytest.raises(UserError, match="unknown calibration 'loose'; known: paper, tight"):
        ssp(small_table, Budget(1.0), np.random.default_rng(0), design=design, calibration="loose")
