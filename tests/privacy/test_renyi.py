"""A random search: its cost by hand and by dp-accounting, the distribution of K, its ledger; and curves."""

import json
import math

import dp_accounting
import numpy as np
import pytest
from dp_accounting import dp_event
from dp_accounting.rdp import RdpAccountant
from scipy import stats

from dpbench.errors import UserError
from dpbench.privacy.accounting import spent
from dpbench.privacy.calibration import search_multipliers
from dpbench.privacy.events import ZCDP, Exact, Gaussian
from dpbench.privacy.ledger import Ledger
from dpbench.privacy.noise import number_of_runs
from dpbench.privacy.renyi import ORDERS, RandomSearch, RenyiCurve, random_search_epsilon

DELTA = 1e-5
LAWS = [(0.0, 0.03), (1.0, 0.1), (2.5, 0.2)]  # eta, gamma


def gaussian(multiplier, count=1, rate=1.0):
    return Gaussian("x", 1.0, multiplier, count, rate)


def test_cost_by_hand():
    """Theorem 2 for a Gaussian run, lambda / (2 sigma^2), and a geometric K of mean 10, minimised over both orders."""
    sigma, order = 20.0, np.unique(ORDERS)
    e = order / (2 * sigma**2)
    penalty = min(2 * (1 - 1 / a) * x + 2 * math.log(10) / a for a, x in zip(order, e, strict=True))
    by_hand = min(
        x + penalty + math.log(10) / (a - 1) + math.log(1 - 1 / a) - math.log(DELTA * a) / (a - 1)
        for a, x in zip(order, e, strict=True)
    )
    assert random_search_epsilon(RandomSearch("s", 1.0, 0.1, ((gaussian(sigma),),)), DELTA) == pytest.approx(by_hand)


@pytest.mark.parametrize(("eta", "gamma"), LAWS)
def test_cost_agrees_with_dp_accounting(eta, gamma):
    search = RandomSearch("s", eta, gamma, ((gaussian(3.0, 400, 0.02), gaussian(30.0)),))
    step = dp_accounting.PoissonSampledDpEvent(0.02, dp_accounting.GaussianDpEvent(3.0))
    run = dp_accounting.ComposedDpEvent(
        [dp_accounting.SelfComposedDpEvent(step, 400), dp_accounting.GaussianDpEvent(30.0)]
    )
    whole = dp_event.RepeatAndSelectDpEvent(run, search.mean, eta)
    reference = RdpAccountant(list(ORDERS)).compose(whole).get_epsilon(DELTA)
    cost = spent(Ledger([search]), DELTA)
    assert cost.epsilon == pytest.approx(reference, rel=1e-6)
    assert (cost.rho, cost.mu) == (math.inf, None)


def test_a_run_costs_what_the_dearest_alternative_does_and_a_search_more_than_a_run():
    def cost(*multipliers, gamma=0.1):
        alternatives = tuple((gaussian(multiplier),) for multiplier in multipliers)
        return spent(Ledger([RandomSearch("s", 1.0, gamma, alternatives)]), DELTA).epsilon

    assert cost(9.0, 20.0) == cost(9.0) > cost(20.0)
    assert cost(9.0) > spent(Ledger([gaussian(9.0)]), DELTA).epsilon
    assert cost(9.0, gamma=0.01) > cost(9.0, gamma=0.1)


@pytest.mark.parametrize(("eta", "gamma"), [*LAWS, (-0.5, 0.1)])
def test_the_number_of_runs_has_its_distribution(eta, gamma):
    """Chi-square at level 1e-4 against Definition 1; the mean within 5 standard errors (error rate below 1e-6)."""
    search, draws = RandomSearch("s", eta, gamma, ()), 20_000
    rng = np.random.default_rng(7)
    ks = np.array([number_of_runs(rng, Ledger(), search) for _ in range(draws)])
    k = np.arange(1, 2000)
    weights = np.exp(k * math.log(1 - gamma) + np.concatenate([[0], np.cumsum(np.log((k[:-1] + eta) / (k[:-1] + 1)))]))
    probabilities = weights / weights.sum()
    common = draws * probabilities > 5
    observed = np.bincount(ks, minlength=len(k) + 1)[1 : len(k) + 1]
    counts = np.append(observed[common], draws - observed[common].sum())
    expected = draws * np.append(probabilities[common], 1 - probabilities[common].sum())
    assert stats.chisquare(counts, expected).pvalue > 1e-4
    assert search.mean == pytest.approx((k * probabilities).sum(), rel=1e-6)
    assert abs(ks.mean() - search.mean) < 5 * ks.std() / math.sqrt(draws)


def test_the_ledger_holds_the_distribution_before_k_is_drawn_and_never_k():
    search = RandomSearch("s", 1.0, 0.1, ((gaussian(5.0), gaussian(50.0)), (gaussian(2.0, 30, 0.1),)))
    ledgers = [Ledger(), Ledger()]
    ks = [number_of_runs(np.random.default_rng(seed), ledger, search) for seed, ledger in enumerate(ledgers)]
    assert ks[0] != ks[1]
    assert ledgers[0].to_list() == ledgers[1].to_list()
    assert Ledger.from_list(json.loads(json.dumps(ledgers[0].to_list()))).events == (search,)


def test_a_run_that_is_zcdp_in_total_costs_what_gaussian_noise_of_its_rho_does():
    whole, noise = ((ZCDP("run", 0.5 / 9.0**2), gaussian(30.0)),), ((gaussian(9.0), gaussian(30.0)),)
    costs = [spent(Ledger([RandomSearch("s", 1.0, 0.1, runs)]), DELTA).epsilon for runs in (whole, noise)]
    assert costs[0] == pytest.approx(costs[1], rel=1e-12)


def test_a_search_over_runs_of_another_kind_cannot_be_made():
    with pytest.raises(ValueError, match="a run must be Gaussian noise, or zCDP in total"):
        RandomSearch("s", 1.0, 0.1, ((Exact("x"),),))


def test_a_search_among_other_events_has_no_known_cost():
    with pytest.raises(ValueError, match="cannot be composed"):
        spent(Ledger([gaussian(5.0), RandomSearch("s", 1.0, 0.1, ((gaussian(5.0),),))]), DELTA)


@pytest.mark.parametrize("distribution", [(-1.0, 0.1), (0.0, 0.0), (0.0, 1.0)])
def test_a_distribution_out_of_range_cannot_be_made(distribution):
    with pytest.raises(ValueError, match="gamma"):
        RandomSearch("s", *distribution, ())


@pytest.mark.parametrize("epsilon", [0.05, 1.0, 8.0])
@pytest.mark.parametrize(("eta", "gamma"), LAWS)
def test_multipliers_spend_the_budget_and_no_more(epsilon, eta, gamma):
    plans = ((1.0, 10), (0.02, 49), (256 / 50_000, 1954))
    steps, score = search_multipliers(epsilon, DELTA, plans, eta=eta, gamma=gamma, score_share=0.1)
    alternatives = tuple(
        (gaussian(multiplier, count, rate), gaussian(score))
        for multiplier, (rate, count) in zip(steps, plans, strict=True)
    )
    cost = spent(Ledger([RandomSearch("s", eta, gamma, alternatives)]), DELTA).epsilon
    assert 0.999 * epsilon <= cost <= epsilon


def test_impossible_searches_are_refused():
    with pytest.raises(UserError, match="score_share between 0 and 1"):
        search_multipliers(1.0, DELTA, ((1.0, 1),), eta=0.0, gamma=0.1, score_share=1.0)
    with pytest.raises(UserError, match="no noise multiplier"):
        search_multipliers(1e-6, DELTA, ((1.0, 1),), eta=0.0, gamma=0.1, score_share=0.1)


CURVE = (2.0, 3.0, 5.0, 8.0, 16.0, 32.0)


def curve_of(*events):
    return RenyiCurve("curve", CURVE, tuple(sum(event.rdp(np.array(CURVE)) for event in events)))


def test_a_curve_composes_with_noise_as_dp_accounting_says():
    noise = [gaussian(6.0, 3), gaussian(2.0, 50, 0.02)]
    cost = spent(Ledger([curve_of(gaussian(4.0)), *noise]), DELTA)
    step = dp_accounting.PoissonSampledDpEvent(0.02, dp_accounting.GaussianDpEvent(2.0))
    reference = RdpAccountant(list(CURVE))
    for event, count in [(dp_accounting.GaussianDpEvent(4.0), 1), (dp_accounting.GaussianDpEvent(6.0), 3), (step, 50)]:
        reference.compose(event, count)
    assert cost.epsilon == pytest.approx(reference.get_epsilon(DELTA), rel=1e-9)
    assert (cost.rho, cost.mu) == (math.inf, None)


def test_curves_are_accounted_at_the_orders_that_they_share():
    whole = curve_of(gaussian(4.0))
    other = RenyiCurve("other", (8.0, 16.0, 64.0), (0.1, 0.2, 0.8))
    both = spent(Ledger([whole, other]), DELTA).epsilon
    shared = [RenyiCurve("s", (8.0, 16.0), (whole.epsilons[3] + 0.1, whole.epsilons[4] + 0.2))]
    assert both == pytest.approx(spent(Ledger(shared), DELTA).epsilon, rel=1e-12)
    assert spent(Ledger([whole, RenyiCurve("none", (7.0,), (0.1,))]), DELTA).epsilon == math.inf
    assert spent(Ledger([whole, Exact("x")]), DELTA).epsilon == math.inf


def test_a_curve_out_of_range_cannot_be_made():
    for orders, epsilons in [
        ((), ()),
        ((2.0,), (0.1, 0.2)),
        ((1.0,), (0.1,)),
        ((2.0,), (-0.1,)),
        ((2.0,), (math.nan,)),
    ]:
        with pytest.raises(ValueError, match=r"^c: "):
            RenyiCurve("c", orders, epsilons)
