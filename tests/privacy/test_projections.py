"""The exact cost of a random projection. Each statistical test uses a fixed seed and states its error rate."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from dpbench.privacy import noise
from dpbench.privacy.accounting import gaussian_delta, spent
from dpbench.privacy.events import Gaussian, Laplace, PureDP
from dpbench.privacy.ledger import Ledger
from dpbench.privacy.projections import (
    Projection,
    projection_delta,
    projection_epsilon,
    projection_multiplier,
    projection_rdp,
)

DELTA = 1e-5


def losses(gram, v, count, draws, seed):
    """Privacy losses of `count` rows of N(0, gram) against N(0, gram + v v'), and of the second against the first."""
    rng, grown = np.random.default_rng(seed), gram + np.outer(v, v)
    found = []
    for own, other in ((gram, grown), (grown, gram)):
        rows = rng.normal(size=(draws, count, len(gram))) @ np.linalg.cholesky(own).T
        change = np.linalg.inv(own) - np.linalg.inv(other)
        determinants = np.linalg.slogdet(other)[1] - np.linalg.slogdet(own)[1]
        found.append(count * determinants / 2 - np.einsum("dri,ij,drj->d", rows, change, rows) / 2)
    return found


def test_delta_is_that_of_the_worst_neighbours_and_no_others_exceed_it():
    """200,000 draws; 5 standard errors (error rate below 1e-5 for all)."""
    w, bound, count, epsilon, draws = 3.0, 2.0, 5, 0.4, 200_000
    stated = projection_delta(epsilon, w / bound, count)
    cases = {
        "empty table": (w**2 * np.eye(2), np.array([bound, 0.0])),
        "some rows": (w**2 * np.eye(2) + [[9.0, 2.0], [2.0, 4.0]], np.array([1.2, -1.6])),
        "a shorter row": (w**2 * np.eye(2), np.array([0.0, 1.0])),
    }
    for name, (gram, v) in cases.items():
        deltas = []
        for loss in losses(gram, v, count, draws, seed=2):
            part = np.maximum(-np.expm1(epsilon - loss), 0)
            assert part.mean() <= stated + 5 * part.std() / math.sqrt(draws), name
            deltas.append((part.mean(), 5 * part.std() / math.sqrt(draws)))
        if name == "empty table":
            assert any(abs(mean - stated) <= slack for mean, slack in deltas)


@given(st.floats(0.01, 20), st.sampled_from([1e-8, 1e-5, 1e-2]), st.sampled_from([1, 7, 300, 20_000]))
def test_calibration_keeps_its_claim_and_wastes_nothing(epsilon, delta, count):
    multiplier = projection_multiplier(epsilon, delta, count)
    assert projection_delta(epsilon, multiplier, count) <= delta
    assert projection_delta(epsilon, multiplier * (1 - 1e-6), count) > delta
    assert projection_epsilon(multiplier, count, delta) == pytest.approx(epsilon, rel=1e-6)


def test_more_regularisation_costs_less_and_more_projections_cost_more():
    deltas = [projection_delta(0.5, multiplier, 50) for multiplier in (2.0, 3.0, 4.0, 5.0)]
    assert deltas == sorted(deltas, reverse=True)
    deltas = [projection_delta(0.5, 3.0, count) for count in (10, 50, 200)]
    assert deltas == sorted(deltas)


def test_rows_among_gaussian_steps_cost_what_all_of_them_together_show():
    """400,000 draws of both losses; 5 standard errors (error rate below 1e-5 for all)."""
    count, multiplier, mu, epsilon, draws = 20, 3.0, 0.4, 0.8, 400_000
    rng, gram = np.random.default_rng(4), multiplier**2 * np.eye(1)
    of_gaussian = mu * rng.normal(size=draws) + mu**2 / 2
    found = []
    for loss in losses(gram, np.ones(1), count, draws, seed=3):
        part = np.maximum(-np.expm1(epsilon - loss - of_gaussian), 0)
        found.append((part.mean(), 5 * part.std() / math.sqrt(draws)))
    stated = projection_delta(epsilon, multiplier, count, mu)
    assert all(mean <= stated + slack for mean, slack in found)
    assert any(abs(mean - stated) <= slack for mean, slack in found)


def test_rows_among_gaussian_steps_cost_no_more_than_renyi_divergences_say_and_more_than_either_alone():
    for epsilon, multiplier, count, mu in [(1.0, 10.0, 600, 0.2), (0.1, 60.0, 300, 0.02), (8.0, 2.0, 300, 1.5)]:
        orders = 1 + multiplier**2 * np.linspace(0.001, 0.999, 2000)
        logs = [
            (a - 1) * (projection_rdp(a, multiplier, count) + a * mu**2 / 2 - epsilon + math.log1p(-1 / a))
            - math.log(a)
            for a in orders
        ]
        exact = projection_delta(epsilon, multiplier, count, mu)
        assert 0.05 * math.exp(min(logs)) < exact < math.exp(min(logs))
        assert exact > max(projection_delta(epsilon, multiplier, count), gaussian_delta(epsilon, mu))


@pytest.mark.parametrize(("multiplier", "count"), [(3.0, 50), (20.0, 7), (5.0, 20_000)])
def test_a_gaussian_step_that_shows_nothing_costs_nothing(multiplier, count):
    """Two formulas: by the chi-square distribution, and by an integral over its density."""
    for epsilon in (0.01, 0.2):
        alone = projection_delta(epsilon, multiplier, count)
        assert projection_delta(epsilon, multiplier, count, 1e-6) == pytest.approx(alone, rel=1e-4, abs=1e-30)


def test_renyi_divergence_is_that_of_the_densities():
    """By an integral over the density of one row along v: M = w^2 I, and a larger or smaller variance."""
    from scipy.integrate import quad

    multiplier, count, order = 2.0, 3, 3.5
    t = multiplier**-2
    divergences = []
    for p, q in ((1 + t, 1.0), (1.0, 1 + t)):

        def density(x, p=p, q=q):
            logs = stats.norm.logpdf(x, scale=np.sqrt([p, q]))
            return math.exp(order * logs[0] + (1 - order) * logs[1])

        divergences.append(count * math.log(quad(density, -60, 60)[0]) / (order - 1))
    assert projection_rdp(order, multiplier, count) == pytest.approx(divergences[0])
    assert divergences[1] < divergences[0]
    assert math.isinf(projection_rdp(1 + multiplier**2, multiplier, count))


def test_many_projections_are_a_gaussian_mechanism():
    """The loss of N(0, 1)^r against N(0, 1 + t)^r tends to that of sqrt(r t^2 / 2)-Gaussian DP."""
    count, mu = 10**8, 1.0
    multiplier = (count / 2 / mu**2) ** 0.25
    for epsilon in (0.0, 0.5, 2.0):
        assert projection_delta(epsilon, multiplier, count) == pytest.approx(gaussian_delta(epsilon, mu), rel=1e-3)


def test_a_huge_epsilon_is_no_overflow():
    assert projection_delta(1e6, 1e-3, 10) < 1
    assert projection_delta(1e6, projection_multiplier(1e6, DELTA, 10), 10) <= DELTA


def test_rows_have_the_declared_covariance():
    """Each entry of the second moments within 5 standard errors of its own (error rate below 1e-5)."""
    gram, count, ledger = np.array([[5.0, 2.0], [2.0, 3.0]]), 40_000, Ledger()
    rows = noise.projection(
        np.random.default_rng(1), ledger, gram, sensitivity=2.0, multiplier=0.6, count=count, label="R A"
    )
    sd = np.sqrt((np.outer(np.diag(gram), np.diag(gram)) + gram**2) / count)
    assert np.all(np.abs(rows.T @ rows / count - gram) < 5 * sd)
    assert stats.kstest(rows[:, 0], stats.norm(0, math.sqrt(5)).cdf).pvalue > 1e-4
    assert ledger.events == (Projection("R A", 2.0, 0.6, count),)


def test_a_ledger_adds_the_private_test_of_a_projection_and_its_failure():
    projected = Projection("R A", 1.0, 5.0, 30, delta=4e-6)
    tested = Ledger.from_list(Ledger([Laplace("sigma_min", 1.0, 4.0), projected]).to_list())
    assert spent(tested, DELTA).epsilon == pytest.approx(0.25 + projection_epsilon(5.0, 30, 6e-6))
    assert spent(Ledger([projected]), DELTA).epsilon == pytest.approx(projection_epsilon(5.0, 30, 6e-6))
    assert spent(tested, 4e-6).epsilon == math.inf
    among = Ledger([Gaussian("x", 1.0, 8.0), projected, Gaussian("y", 1.0, 4.0)])
    assert spent(among, DELTA).epsilon == pytest.approx(projection_epsilon(5.0, 30, 6e-6, math.hypot(1 / 8, 1 / 4)))
    for more in (projected, PureDP("x", 0.1)):
        with pytest.raises(ValueError, match="cannot be composed"):
            spent(Ledger([projected, more]), DELTA)
