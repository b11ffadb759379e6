"""PrivSyn: what it selects and joins, its budget, its rows, and what it refuses. `tests/audit` replays it."""

import math
from itertools import combinations

import numpy as np
import pytest

from dpbench.errors import UserError
from dpbench.mechanisms.privsyn import dense_marginals, joined_marginals, privsyn
from dpbench.privacy.accounting import gaussian_mu, spent, zcdp_rho
from dpbench.privacy.budget import Budget
from dpbench.releases import SyntheticRows
from mechanisms.test_privbayes import chain

DELTA = 1e-5
RELATIONS = ("add_remove", "replace")


def made(table, epsilon=1.0, relation="add_remove", seed=0, **settings):
    return privsyn(table, Budget(epsilon, DELTA, relation), np.random.default_rng(seed), **settings)


def test_rows_have_the_pairs_where_there_is_budget():
    table = chain()
    release = made(table, 1000.0)
    rows = release[SyntheticRows].table
    assert rows.domain == table.domain
    for pair in combinations("abcde", 2):
        distance = np.abs(rows.marginal(pair) / len(rows) - table.marginal(pair) / len(table)).sum()
        assert distance < 0.08, pair
    little = made(table, 0.02)
    assert len(little.diagnostics["pairs"]) < len(release.diagnostics["pairs"]) == 10


@pytest.mark.parametrize("seed", range(5))
def test_selected_pairs_are_those_of_least_expected_error(seed):
    """Greedy search is not far from the best of all 2^6 sets."""
    rng = np.random.default_rng(seed)
    sizes = {"a": 2, "b": 3, "c": 4, "d": 8}
    pairs, indif = list(combinations(sizes, 2)), rng.gamma(1.0, 40.0, 6) - 10

    def error(chosen):
        cells = [math.prod(sizes[name] for name in pair) for pair in chosen]
        total = sum(c ** (2 / 3) for c in cells)
        noise = sum(c * scale * math.sqrt(total) / c ** (1 / 3) for c in cells)  # c_i E|noise|, rho_i by c^(2/3)
        return noise + sum(x for pair, x in zip(pairs, indif, strict=True) if pair not in chosen)

    scale = 1.0
    found = dense_marginals(sizes, pairs, indif, scale)
    best = min(error(list(some)) for k in range(7) for some in combinations(pairs, k))
    assert error(found) <= 1.05 * best + 1e-9 or error(found) - best < 0.05 * abs(best)
    assert all(error([*found, pair]) >= error(found) - 1e-9 for pair in pairs if pair not in found)


def test_no_pair_is_worth_endless_noise_and_every_one_is_without_noise():
    sizes, pairs = {"a": 2, "b": 2, "c": 2}, [("a", "b"), ("a", "c"), ("b", "c")]
    assert dense_marginals(sizes, pairs, np.array([5.0, 5.0, 5.0]), 1e9) == []
    assert set(dense_marginals(sizes, pairs, np.array([5.0, 6.0, 7.0]), 1e-9)) == set(pairs)


@pytest.mark.parametrize("cells", [4, 20, 100, 5000])
def test_joined_marginals_hold_every_pair_within_their_limits(cells):
    rng = np.random.default_rng(3)
    sizes = dict(zip("abcdefgh", rng.integers(2, 6, 8).tolist(), strict=True))
    for share in (0.3, 0.7, 1.0):
        pairs = [pair for pair in combinations(sizes, 2) if rng.random() < share]
        joined = joined_marginals(sizes, pairs, cells)
        assert all(any(set(pair) <= set(clique) for clique in joined) for pair in pairs)
        assert all(pair in pairs for clique in joined for pair in combinations(clique, 2))
        assert all(math.prod(sizes[name] for name in clique) <= cells for clique in joined if len(clique) > 2)
        seen = set()
        for clique in (clique for clique in joined if len(clique) > 2):
            assert len(seen & set(clique)) <= 2
            seen |= set(clique)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("calibration", ["paper", "tight"])
@pytest.mark.parametrize("epsilon", [0.05, 2.0])
def test_the_parts_of_the_budget_are_in_the_ledger(small_table, epsilon, calibration, relation):
    release = made(small_table, epsilon, relation, calibration=calibration)
    pairs, n = 6, len(small_table)
    events = release.ledger.events
    indif = events[4]
    assert [one.label for one in events[:5]] == [*(f"marginal {name}" for name in small_table.domain.names), "InDif"]
    assert indif.sensitivity == pytest.approx((4 if relation == "add_remove" else 6 + 4 / n) * math.sqrt(pairs))
    paper = calibration == "paper"
    total = zcdp_rho(epsilon, DELTA) if paper else gaussian_mu(epsilon, DELTA) ** 2
    costs = [one.rho if paper else one.mu**2 for one in events]
    assert math.fsum(costs[:4]) == pytest.approx(total / 10)
    assert costs[4] == pytest.approx(total / 10)
    joined = release.diagnostics["marginals"]
    assert len(events) == 5 + len(joined)
    if joined:
        assert math.fsum(costs[5:]) == pytest.approx(0.8 * total)
        cells = [math.prod(small_table.domain.sizes[name] for name in clique) for clique in joined]
        assert np.divide(costs[5:], np.power(cells, 2 / 3)) == pytest.approx(costs[5] / cells[0] ** (2 / 3))
    assert release.ledger.filter.limit == pytest.approx(total if paper else math.sqrt(total))
    assert spent(release.ledger, DELTA).epsilon <= epsilon * (1 + 1e-9)


def test_n_is_not_used_where_it_is_private(small_table):
    sizes = {len(made(small_table, 0.2, seed=seed, rounds=1)[SyntheticRows].table) for seed in range(8)}
    assert len(sizes) > 4
    assert len(made(small_table, 0.2, "replace", rounds=1)[SyntheticRows].table) == len(small_table)
    assert len(made(small_table, rows=77, rounds=1)[SyntheticRows].table) == 77


def test_a_single_attribute_has_the_whole_budget(small_table):
    release = made(small_table.project(["work"]))
    assert [one.label for one in release.ledger.events] == ["marginal work"]
    assert release.ledger.events[0].mu == pytest.approx(gaussian_mu(1.0, DELTA))


def test_discrete_noise_is_as_good(small_table):
    release = made(small_table, 2.0, noise="discrete")
    assert {one.kind for one in release.ledger.events} == {"discrete_gaussian"}
    assert release.diagnostics["pairs"][0] == made(small_table, 2.0).diagnostics["pairs"][0] == ["age", "grade"]
    assert spent(release.ledger, DELTA).epsilon <= 2 * (1 + 1e-9)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"max_cells": 0}, "max_cells"),
        ({"rounds": 0}, "rounds must be at least 1"),
        ({"rows": 0}, "rows must be at least 1"),
        ({"epsilon": math.inf}, "finite epsilon"),
        ({"calibration": "exact"}, "unknown calibration"),
        ({"noise": "pink"}, "unknown noise"),
    ],
)
def test_invalid_settings_are_named(small_table, settings, said):
    with pytest.raises(UserError, match=said):
        made(small_table, **settings)
