"""MWEM: a round by hand, its limit without noise, past queries, what is stored, and what it refuses."""

import json
import math

import numpy as np
import pytest
from inference.helpers import answers_of

from dpbench.data.domain import Attribute, Domain
from dpbench.data.table import Table
from dpbench.errors import UserError
from dpbench.inference.query_workload import QueryWorkload
from dpbench.mechanisms.adaptive import Asked
from dpbench.mechanisms.mwem import Mwem, mwem
from dpbench.mechanisms.supports import WholeDomain
from dpbench.mechanisms.workload import cliques_of
from dpbench.privacy.accounting import spent
from dpbench.privacy.budget import Budget
from dpbench.releases import Distribution, Marginals, Release, SyntheticRows

DELTA = 1e-7
QUERIES = QueryWorkload({"a": 2, "b": 3}, (("a", "b"), ("b",)))


def asked(queries, answers, newest=1):
    return Asked(np.array(queries), np.ones(len(queries)), np.array(answers), newest, 0.1)


def made(table, epsilon=1.0, seed=0, **settings):
    return mwem(table, Budget(epsilon, DELTA, "replace"), np.random.default_rng(seed), **settings)


def error(table, release, degree=3):
    queries = QueryWorkload(table.domain.sizes, cliques_of(table.domain, degree))
    return np.abs(queries.of_rows(table.codes) - answers_of(release[Distribution].model, queries.cliques)).max()


def test_one_round_by_hand():
    """From 1/6 a cell, (a, b) = (1, 2) is measured as 1/2: exp(rate (1/2 - 1/6)) for it, then normalised."""
    for rate in (0.5, 1.0):
        family = Mwem(WholeDomain(QUERIES), past=False, rate=rate)
        D = family.update(family.initial(), asked([5], [0.5]))
        grown = math.exp(rate / 3)
        assert D[1, 2] == pytest.approx(grown / (5 + grown))
        np.testing.assert_allclose(np.delete(D.ravel(), 5), 1 / (5 + grown))


def test_measurements_outside_of_0_and_1_are_clipped():
    family = Mwem(WholeDomain(QUERIES), past=False, rate=0.5)
    start = family.initial()
    for noisy, clipped in ((-0.3, 0.0), (1.7, 1.0)):
        np.testing.assert_array_equal(
            family.update(start, asked([5], [noisy])), family.update(start, asked([5], [clipped]))
        )


def test_without_past_queries_only_those_of_the_round_count():
    family = Mwem(WholeDomain(QUERIES), past=False, rate=0.5)
    start = family.initial()
    np.testing.assert_allclose(
        family.update(start, asked([6, 5], [0.9, 0.5])), family.update(start, asked([5], [0.5])), rtol=1e-15
    )


def test_with_past_queries_the_newest_counts_twice_and_those_with_half_its_error_once():
    """Errors: 0.2 of the newest (1, 2); 0.1 and more of b = 0, measured as 0.5; 0.05 of b = 1, left out."""
    family = Mwem(WholeDomain(QUERIES), past=True, rate=0.5)
    D = family.update(family.initial(), asked([6, 7, 5], [0.5, 1 / 3 + 0.05, 1 / 6 + 0.2]))
    weights = np.ones((2, 3))
    weights[1, 2] *= math.exp(0.5 * 2 * 0.2)
    weights[:, 0] *= math.exp(0.5 * (0.5 - 1 / 3))
    np.testing.assert_allclose(D, weights / weights.sum())


@pytest.mark.parametrize(("repeated", "answer"), [("mean", 0.4), ("newest", 0.5)])
@pytest.mark.parametrize("past", [False, True])
def test_a_query_that_was_measured_before_counts_with_the_mean_of_its_answers_or_the_newest(past, repeated, answer):
    """(1, 2) is measured as 0.3, then as 0.5; past queries count twice where they are the newest."""
    family = Mwem(WholeDomain(QUERIES), past=past, rate=1.0, repeated=repeated)
    D = family.update(family.initial(), asked([5, 5], [0.3, 0.5]))
    grown = math.exp((2 if past else 1) * (answer - 1 / 6))
    assert D[1, 2] == pytest.approx(grown / (5 + grown))


@pytest.mark.parametrize(("past", "rounds", "bound"), [(False, 1000, 0.012), (True, 300, 0.003)])
def test_almost_without_noise_the_workload_is_recovered(small_table, past, rounds, bound):
    """The precision is that of so many rounds: at T = 3000 it is 0.007 and 0.0003. The uniform law's error is 0.14."""
    release = made(small_table, 1e6, rounds=rounds, past=past, rate=1.0)
    assert error(small_table, release) < bound


def test_more_budget_gives_less_error_and_no_more_is_spent(small_table):
    low, high = (
        np.mean([error(small_table, made(small_table, eps, seed, past=True)) for seed in range(5)]) for eps in (0.05, 5)
    )
    assert high < low / 5
    for calibration in ("tight", "paper"):
        ledger = made(small_table, 0.7, calibration=calibration).ledger
        assert spent(ledger, DELTA).epsilon <= 0.7 * (1 + 1e-9)
        assert sum(event.count for event in ledger.events) == 100


def test_the_release_holds_pairs_rows_and_the_distribution_and_is_stored_as_it_is(small_table):
    release = made(small_table, 2.0)
    rows, distribution = release[SyntheticRows].table, release[Distribution].model.distribution
    assert len(rows) == len(small_table)
    assert list(release[Marginals].tables) == list(cliques_of(small_table.domain, 2))
    for clique, table in release[Marginals].tables.items():
        assert table.sum() == pytest.approx(len(small_table))
        assert np.abs(table - rows.marginal(clique)).max() < 0.02 * len(small_table)
    assert distribution.sum() == pytest.approx(1) and distribution.shape == (6, 3, 2, 5)
    data, arrays = release.to_parts()
    again = Release.from_parts(json.loads(json.dumps(data)), arrays)
    assert again.redrawn(1, np.random.default_rng(3))[SyntheticRows].table.codes.tolist() == (
        release.redrawn(1, np.random.default_rng(3))[SyntheticRows].table.codes.tolist()
    )


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"rounds": 0}, "mwem: rounds must be at least 1"),
        ({"per_round": 0}, "mwem: per_round must be at least 1"),
        ({"per_round": 217}, "217 different queries, and the workload has 216"),
        ({"workload": 0}, "k between 1 and 4"),
        ({"workload": 5}, "k between 1 and 4"),
        ({"rows": 0}, "rows must be at least 1"),
        ({"alpha": 1.0}, "alpha must lie between 0 and 1"),
        ({"rate": 0.0}, "rate must be greater than 0"),
        ({"repeated": "all"}, "unknown repeated 'all'"),
        ({"max_model_mb": 0.001}, "each of the 180 cells of the domain, 0.00137 MB, and the limit is 0.001 MB; .*aim"),
    ],
)
def test_what_is_refused(small_table, settings, message):
    with pytest.raises(UserError, match=message):
        made(small_table, **settings)


def test_a_domain_that_no_memory_holds_is_refused_before_anything_is_made():
    domain = Domain(tuple(Attribute.categorical(f"x{j}", range(10)) for j in range(30)))
    with pytest.raises(UserError, match=r"7\.63e\+24 MB.* a method that keeps none, such as aim, mst or gem"):
        made(Table(domain, np.zeros((5, 30), dtype=np.int64)), workload={"degree": 2, "marginals": 3})
