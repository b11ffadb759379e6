"""The loop of adaptive measurements: what it costs, what it selects, what it refuses, for families made by hand."""

import math
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import pytest
from scipy import stats

from dpbench.data.domain import Attribute, Domain
from dpbench.data.table import Table
from dpbench.errors import NoEstimateError, UserError
from dpbench.inference.query_workload import QueryWorkload
from dpbench.mechanisms.adaptive import (
    Asked,
    Round,
    adaptive_measurements,
    check_rounds,
    equal_rounds,
    published_rho,
    rho_of,
)
from dpbench.privacy.accounting import gaussian_mu, spent, zcdp_epsilon, zcdp_rho
from dpbench.privacy.budget import Budget
from dpbench.privacy.events import ExponentialMechanism, Gaussian
from dpbench.privacy.ledger import Ledger
from dpbench.privacy.pure import bounded_range_mu

N = 40
DOMAIN = Domain((Attribute.categorical("a", "uvwx"), Attribute.categorical("b", "st")))
QUERIES = QueryWorkload(DOMAIN.sizes, (("a",), ("b",)))
TRAIN = Table(DOMAIN, np.array([[0, 0]] * 20 + [[1, 0]] * 10 + [[2, 1]] * 8 + [[3, 1]] * 2))
TRUE = np.array([0.5, 0.25, 0.2, 0.05, 0.75, 0.25])


@dataclass
class Fixed:
    """A family of one distribution, which keeps what it is told."""

    told: list[Asked] = field(default_factory=list)
    signed: ClassVar[bool] = False

    def initial(self):
        return np.array([0.25, 0.25, 0.25, 0.25, 0.5, 0.5])

    def answers(self, D):
        return D

    def update(self, D, asked):
        self.told.append(asked)
        return D


class Signed(Fixed):
    signed = True


def looped(rounds, *, seed=0, family=None, **settings):
    family, ledger = family or Fixed(), Ledger()
    adaptive_measurements(TRAIN, QUERIES, family, rounds, np.random.default_rng(seed), ledger, **settings)
    return family.told, ledger


@pytest.mark.parametrize(("alpha", "per_round"), [(0.5, 1), (0.67, 1), (0.5, 3), (1, 2)])
def test_the_rounds_cost_rho_together(alpha, per_round):
    """Theorem 1; at alpha = 1 nothing is measured."""
    rho = 0.3
    _, ledger = looped(equal_rounds(rho, N, rounds=7, per_round=per_round, alpha=alpha))
    assert spent(ledger, 1e-6).rho == pytest.approx(rho)
    kinds = [type(event) for event in ledger.events]
    assert kinds == [ExponentialMechanism, Gaussian][: 1 if alpha == 1 else 2] * 7
    assert {event.sensitivity for event in ledger.events if isinstance(event, ExponentialMechanism)} == {1 / N}


def test_one_round_has_the_noise_of_appendix_b1():
    """T = 1, K = 1, alpha = 1/2: epsilon_0 = 2 sqrt rho, a selection at it, noise of 2 / (n epsilon_0)."""
    (one,) = equal_rounds(0.25, N, rounds=1, per_round=1, alpha=0.5)
    assert (one.epsilon, one.sigma) == pytest.approx((1.0, 2 / N))


def test_a_query_is_selected_with_the_weight_of_appendix_b1():
    """exp(alpha epsilon_0 n |q(P) - q(D)|), chi-square at level 1e-4."""
    (one,) = equal_rounds(0.02, N, rounds=1, per_round=1, alpha=0.5)
    epsilon_0 = math.sqrt(4 * 0.02)
    picks = [looped([one], seed=seed)[0][0].queries[0] for seed in range(4000)]
    weights = np.exp(0.5 * epsilon_0 * N * np.abs(TRUE - Fixed().initial()))
    assert stats.chisquare(np.bincount(picks, minlength=6), 4000 * weights / weights.sum()).pvalue > 1e-4


def test_a_query_is_measured_with_the_noise_of_its_round():
    """Kolmogorov-Smirnov at level 1e-4."""
    errors = []
    for seed in range(300):
        (asked,), _ = looped([Round(3, 1.0, 0.5)], seed=seed)
        errors.extend(asked.answers - TRUE[asked.queries])
        assert len(set(asked.queries)) == 3
    assert stats.kstest(errors, stats.norm(0, 0.5).cdf).pvalue > 1e-4


def test_without_repeats_each_query_is_asked_once_and_all_were_told_in_order():
    told, _ = looped(equal_rounds(1e6, N, rounds=3, per_round=2, alpha=0.5), repeats=False)
    assert [asked.newest for asked in told] == [2, 2, 2]
    assert sorted(told[-1].queries) == list(range(6))
    np.testing.assert_array_equal(told[-1].queries[:2], told[0].queries)
    np.testing.assert_allclose(told[-1].answers, TRUE[told[-1].queries], atol=1e-3)
    errors = np.abs(TRUE - Fixed().initial())[told[-1].queries]
    assert (np.diff(errors) <= 1e-12).all()  # almost without noise the worst come first


def test_a_signed_family_is_told_which_answers_are_too_small():
    """Almost without noise: the largest q(P) - q(D) are those of the first cells of a and of b, both 1/4."""
    (asked,), _ = looped([Round(2, 1e5)], family=Signed())
    assert sorted(zip(asked.queries, asked.signs, strict=True)) in (
        [(0, 1), (4, 1)],
        [(0, 1), (5, -1)],
        [(4, 1), (5, -1)],
    )
    assert np.isnan(asked.answers).all()


def test_a_free_round_looks_at_no_row():
    told, ledger = looped([Round(500, 0.0, replacement=True)], family=Signed())
    assert ledger.events == ()
    assert set(told[0].signs) == {-1, 1} and set(told[0].queries) == set(range(6))


def test_repeated_queries_are_averaged_in_the_order_of_their_first_measurement():
    asked = Asked(np.array([4, 1, 4, 0]), np.ones(4), np.array([0.5, 0.2, 0.7, 0.1]), 1, 0.1)
    queries, answers = asked.distinct()
    assert queries.tolist() == [4, 1, 0]
    assert answers == pytest.approx([0.6, 0.2, 0.1])


def test_a_family_that_diverges_ends_the_run_as_without_estimate():
    class Diverging(Fixed):
        def update(self, D, asked):
            return D * np.nan

    with pytest.raises(NoEstimateError, match="after 1 rounds"):
        looped(equal_rounds(1.0, N, rounds=2, per_round=1, alpha=0.5), family=Diverging())


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0])
def test_the_tight_rho_spends_the_budget_and_the_published_one_less(epsilon):
    budget = Budget(epsilon, N**-2, "replace")
    tight, paper = (rho_of("mwem", TRAIN, budget, calibration) for calibration in ("tight", "paper"))
    assert zcdp_epsilon(tight, budget.delta) == pytest.approx(epsilon)
    assert paper + 2 * math.sqrt(paper * math.log(1 / budget.delta)) == pytest.approx(epsilon)
    assert paper < tight


@pytest.mark.parametrize("alpha", [0.5, 0.67, 0.9])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
def test_gaussian_differential_privacy_would_allow_less(alpha, epsilon):
    """What `rho_of` says: the mu of the rounds that zCDP allows is more than the budget's."""
    for delta in (1e-5, 5e-10):
        (one,) = equal_rounds(zcdp_rho(epsilon, delta), 1, rounds=1, per_round=1, alpha=alpha)
        many = [bounded_range_mu(one.epsilon / 10), 1 / one.sigma / 10]  # of each of 100 rounds
        assert 10 * math.hypot(*many) > gaussian_mu(epsilon, delta)


def test_published_rho_at_an_epsilon_so_small_that_a_difference_of_roots_would_be_none():
    assert published_rho(1e-12, 1e-9) == pytest.approx((1e-12 / (2 * math.sqrt(math.log(1e9)))) ** 2)


@pytest.mark.parametrize(
    ("budget", "rows", "calibration", "message"),
    [
        (Budget(1.0), N, "tight", "set relation=replace"),
        (Budget(math.inf, relation="replace"), N, "tight", "needs a finite epsilon"),
        (Budget(1.0, relation="replace"), 0, "tight", "one training row"),
        (Budget(1.0, relation="replace"), N, "loose", "calibration"),
        (Budget(1e-200, relation="replace"), N, "paper", "outside the range"),
    ],
)
def test_budgets_that_cannot_be_used_are_refused(budget, rows, calibration, message):
    with pytest.raises(UserError, match=message):
        rho_of("mwem", TRAIN.take(np.arange(rows)), budget, calibration)


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        ({"rounds": 0, "per_round": 1}, "rounds must be at least 1, not 0"),
        ({"rounds": 1, "per_round": 0}, "per_round must be at least 1, not 0"),
        ({"rounds": 1, "per_round": 7}, "7 different queries, and the workload has 6; lower per_round"),
        ({"rounds": 4, "per_round": 2, "repeats": False}, "8 different queries.*lower rounds or per_round"),
    ],
)
def test_numbers_of_rounds_and_queries_that_cannot_be_are_refused(counts, message):
    with pytest.raises(UserError, match=message):
        check_rounds("gem", QUERIES, **counts)
    check_rounds("gem", QUERIES, rounds=100, per_round=6)
