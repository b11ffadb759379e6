"""PEP: a projection by hand, the distribution of most entropy, its limit without noise, and what it refuses."""

import math

import numpy as np
import pytest
from inference.helpers import answers_of
from scipy.optimize import minimize

from dpbench.errors import UserError
from dpbench.inference.query_workload import QueryWorkload
from dpbench.mechanisms.adaptive import Asked
from dpbench.mechanisms.mwem import mwem
from dpbench.mechanisms.pep import Pep, pep
from dpbench.mechanisms.supports import WholeDomain
from dpbench.mechanisms.workload import cliques_of
from dpbench.privacy.accounting import spent
from dpbench.privacy.budget import Budget
from dpbench.releases import Distribution, Marginals, SyntheticRows

DELTA = 1e-7
QUERIES = QueryWorkload({"a": 2, "b": 3}, (("a", "b"), ("b",)))


def asked(queries, answers, sigma=0.1):
    return Asked(np.array(queries), np.ones(len(queries)), np.array(answers), 1, sigma)


def made(table, epsilon=1.0, seed=0, **settings):
    return pep(table, Budget(epsilon, DELTA, "replace"), np.random.default_rng(seed), **settings)


def error(table, release):
    queries = QueryWorkload(table.domain.sizes, cliques_of(table.domain, 3))
    return np.abs(queries.of_rows(table.codes) - answers_of(release[Distribution].model, queries.cliques)).max()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("answers", [[1.0, 1.0], [0.0, 0.0, 0.0, 0.0, 0.0, 0.0]])
def test_measurements_that_contradict_each_other_leave_a_distribution(answers):
    """Two cells with all records, or no cell with any: a projection undoes the one before, by a factor of a million."""
    family = Pep(WholeDomain(QUERIES), projections=200, gamma=0.0)
    D = family.update(family.initial(), asked(list(range(len(answers))), answers))
    assert D.min() > 0
    assert D.sum() == pytest.approx(1)


def test_one_round_by_hand():
    """One projection answers as measured: (1, 2) has 1/2, and the other five cells share the rest."""
    family = Pep(WholeDomain(QUERIES), projections=25, gamma=0.0)
    D = family.update(family.initial(), asked([5], [0.5]))
    np.testing.assert_allclose(D.ravel(), [0.1] * 5 + [0.5])


def test_the_law_is_the_one_of_most_entropy_by_the_dual_of_appendix_c1():
    """min over lambda of log(sum_x exp(sum_i lambda_i (q_i(x) - a_i))), found by another optimiser."""
    queries, answers = [6, 5, 0, 1], np.array([0.45, 0.3, 0.25, 0.1])
    family = Pep(WholeDomain(QUERIES), projections=3000, gamma=0.0)
    D = family.update(family.initial(), asked(queries, answers))
    indicators = np.zeros((4, 2, 3))
    for i, query in enumerate(queries):
        indicators[(i, *QUERIES.overlap(query, query))] = 1

    def dual(weights):
        return math.log(np.exp(np.tensordot(weights, indicators - answers[:, None, None], 1)).sum())

    weights = minimize(dual, np.zeros(4), tol=1e-12).x
    distribution = np.exp(np.tensordot(weights, indicators, 1))
    np.testing.assert_allclose(D, distribution / distribution.sum(), atol=1e-6)


def test_it_ends_at_the_tolerance_and_after_so_many_projections():
    """gamma is in standard deviations of the noise: 0.1 here, and the uniform answer is 0.15 away."""
    start = Pep(WholeDomain(QUERIES), 1, 0.0).initial()
    far = asked([5], [1 / 6 + 0.15])
    assert Pep(WholeDomain(QUERIES), 25, 1.6).update(start, far)[1, 2] == pytest.approx(1 / 6)
    assert Pep(WholeDomain(QUERIES), 25, 1.4).update(start, far)[1, 2] == pytest.approx(1 / 6 + 0.15)
    first = Pep(WholeDomain(QUERIES), 1, 0.0).update(start, asked([6, 5], [0.9, 0.3]))
    np.testing.assert_allclose(first.sum(axis=0), [0.9, 0.05, 0.05])  # the largest violation


def test_round_t_makes_so_many_times_t_projections_at_most():
    """b = 0 and b = 1 are measured as 0.9 and 0.2, which no distribution answers: no round ends before."""
    told = asked([5, 6, 7], [0.5, 0.9, 0.2])  # round 3
    start = Pep(WholeDomain(QUERIES), 1, 0.0).initial()
    for increase, made in ((1, 3), (2, 6), (9, 8), (None, 8)):
        limited = Pep(WholeDomain(QUERIES), 8, 0.0, increase=increase).update(start, told)
        np.testing.assert_array_equal(limited, Pep(WholeDomain(QUERIES), made, 0.0).update(start, told))
    assert (limited != Pep(WholeDomain(QUERIES), 7, 0.0).update(start, told)).any()


@pytest.mark.parametrize(("repeated", "answer"), [("mean", 0.35), ("all", 0.5)])
def test_a_query_that_was_measured_twice_counts_with_its_mean_or_with_both_answers(repeated, answer):
    """0.2, then 0.5, which is further from the uniform 1/6: one projection answers it."""
    family = Pep(WholeDomain(QUERIES), 1, 0.0, repeated=repeated)
    D = family.update(family.initial(), asked([5, 5], [0.2, 0.5]))
    assert D[1, 2] == pytest.approx(answer)


@pytest.mark.parametrize(("clipped", "query"), [("measurement", 6), ("odds", 5)])
def test_a_negative_measurement_is_violated_by_its_answer_or_by_more(clipped, query):
    """-0.2 of (1, 2), whose answer is 1/6, and 0.65 of b = 0, whose answer is 1/3: by 1/6 or 0.367, and by 0.317."""
    family = Pep(WholeDomain(QUERIES), 1, 0.0, clipped=clipped)
    found = QUERIES.of_histogram(family.update(family.initial(), asked([5, 6], [-0.2, 0.65])))
    assert found[query] == pytest.approx({5: 1e-6, 6: 0.65}[query])


def test_an_answer_below_the_least_has_the_odds_of_the_least():
    """(1, 2) has 1e-4 and is measured as 0.1: one projection reaches 0.1, or multiplies its odds by 11."""
    D = np.full((2, 3), (1 - 1e-4) / 5)
    D[1, 2] = 1e-4
    assert Pep(WholeDomain(QUERIES), 1, 0.0).update(D, asked([5], [0.1]))[1, 2] == pytest.approx(0.1)
    found = Pep(WholeDomain(QUERIES), 1, 0.0, least=0.01).update(D, asked([5], [0.1]))[1, 2]
    assert found / (1 - found) == pytest.approx(11 * 1e-4 / (1 - 1e-4))


@pytest.mark.parametrize("noisy", [-0.2, 0.0, 1.0, 1.3])
def test_measurements_that_have_no_odds_leave_a_law(noisy):
    family = Pep(WholeDomain(QUERIES), 25, 0.0)
    D = family.initial()
    for _ in range(50):
        D = family.update(D, asked([5, 6], [noisy, 0.4]))
    assert D.min() > 0 and D.sum() == pytest.approx(1)
    later = QUERIES.of_histogram(family.update(D, asked([1], [0.3])))[1]
    assert later == pytest.approx(0.3)  # no cell is lost for good, although a measurement of 1 contradicts one of 0.4


def test_almost_without_noise_the_workload_is_recovered(small_table):
    assert error(small_table, made(small_table, 1e6, rounds=150)) < 1e-3


def test_it_is_better_than_mwem_after_as_many_rounds(small_table):
    """What the paper says of them (section 3.1), in the mean of 5 seeds at epsilon = 1."""
    budget = Budget(1.0, DELTA, "replace")
    ours = np.mean([error(small_table, made(small_table, seed=seed, rounds=30)) for seed in range(5)])
    theirs = np.mean(
        [error(small_table, mwem(small_table, budget, np.random.default_rng(s), rounds=30)) for s in range(5)]
    )
    assert ours < theirs


def test_the_release_keeps_its_budget_and_holds_pairs_and_rows(small_table):
    for calibration in ("tight", "paper"):
        release = made(small_table, 0.7, calibration=calibration)
        assert spent(release.ledger, DELTA).epsilon <= 0.7 * (1 + 1e-9)
    assert len(release[SyntheticRows].table) == len(small_table)
    assert list(release[Marginals].tables) == list(cliques_of(small_table.domain, 2))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"rounds": 0}, "pep: rounds must be at least 1"),
        ({"projections": 0}, "pep: projections must be at least 1"),
        ({"gamma": -0.1}, "gamma must be at least 0"),
        ({"increase": 0}, "pep: increase must be at least 1"),
        ({"repeated": "newest"}, "unknown repeated 'newest'"),
        ({"clipped": "answer"}, "unknown clipped 'answer'"),
        ({"least": 0.5}, "least must be greater than 0 and less than 1/2, not 0.5"),
        ({"workload": {"degree": 5}}, "k between 1 and 4"),
        ({"max_model_mb": 0.001}, "pep keeps a probability for each of the 180 cells"),
    ],
)
def test_what_is_refused(small_table, settings, message):
    with pytest.raises(UserError, match=message):
        made(small_table, **settings)
