"""PrivMRF: its graph, its marginals, its budget, and what it refuses. `tests/audit` replays it."""

import math
from itertools import combinations

import numpy as np
import pytest

from dpbench.errors import UserError
from dpbench.inference import model_mb
from dpbench.mechanisms import privmrf as module
from dpbench.mechanisms.privmrf import dependence_graph, first_marginals, privmrf
from dpbench.privacy.accounting import gaussian_mu, spent
from dpbench.privacy.budget import Budget
from dpbench.releases import Marginals, SyntheticRows
from mechanisms.test_privbayes import chain

DELTA = 1e-5
RELATIONS = ("add_remove", "replace")
SIZES = {"a": 3, "b": 4, "c": 3, "d": 4, "e": 3}


def made(table, epsilon=1.0, relation="add_remove", seed=0, **settings):
    return privmrf(table, Budget(epsilon, DELTA, relation), np.random.default_rng(seed), **settings)


def random_scores(seed):
    rng = np.random.default_rng(seed)
    return {pair: float(rng.gamma(0.5, 0.2) - 0.03) for pair in combinations(SIZES, 2)}


@pytest.mark.parametrize("relation", RELATIONS)
def test_a_chain_is_met_where_there_is_budget(relation):
    table = chain()
    release = made(table, 1000.0, relation)
    rows = release[SyntheticRows].table
    assert set(release[Marginals].tables) == set(combinations("abcde", 2))
    for pair, counts in release[Marginals].tables.items():
        assert np.abs(counts - table.marginal(pair)).sum() < 0.05 * len(table), pair
        assert np.abs(rows.marginal(pair) / len(rows) - table.marginal(pair) / len(table)).sum() < 0.06, pair


def test_measured_marginals_are_useful_and_within_the_graph(small_table):
    for seed in range(5):
        release = made(small_table, 2.0, seed=seed, theta=2.0, max_attributes=2)
        found = release.diagnostics
        sizes = small_table.domain.sizes
        assert {name for r in found["marginals"][: found["first"]] for name in r} == set(sizes)
        assert found["first"] <= 4
        assert len(found["marginals"]) <= 4 + 3
        assert len({tuple(r) for r in found["marginals"]}) == len(found["marginals"])
        for r in found["marginals"]:
            assert any(set(r) <= set(clique) for clique in found["graph"])
            assert len(r) == 1 or math.prod(sizes[name] for name in r) <= found["cells"]
        assert all(len(r) <= 2 for r in found["marginals"][found["first"] :])


@pytest.mark.parametrize("limit", [0.0003, 0.001, 80.0])
def test_the_graph_has_the_strongest_edges_that_its_limit_admits(limit):
    for seed in range(5):
        scores = random_scores(seed)
        graph = dependence_graph(SIZES, scores, limit)
        held = {pair for clique in graph for pair in combinations(clique, 2)}
        assert {name for clique in graph for name in clique} == set(SIZES)
        assert model_mb(SIZES, graph) <= limit
        strongest = max(scores, key=scores.__getitem__)
        assert (strongest in held) == (model_mb(SIZES, [strongest]) <= limit)
        if limit == 80:
            assert {pair for pair in scores if scores[pair] > 1e-5} <= held


def test_attributes_without_dependence_are_alone():
    graph = dependence_graph(SIZES, dict.fromkeys(combinations(SIZES, 2), -0.01), 80.0)
    assert sorted(graph) == [(name,) for name in SIZES]
    assert sorted(first_marginals(SIZES, graph, {}, 1e6, np.random.default_rng(0))) == sorted(graph)


@pytest.mark.parametrize("cells", [1, 9, 40, 1000])
def test_the_first_marginals_hold_every_attribute_within_a_clique(cells):
    for seed in range(5):
        scores = random_scores(seed)
        graph = dependence_graph(SIZES, scores, 0.002)
        first = first_marginals(SIZES, graph, scores, cells, np.random.default_rng(seed))
        assert {name for r in first for name in r} == set(SIZES)
        assert len(first) <= len(SIZES) and len(set(first)) == len(first)
        assert all(any(set(r) <= set(clique) for clique in graph) for r in first)
        assert all(len(r) == 1 or math.prod(SIZES[name] for name in r) <= cells for r in first)


def test_the_strongest_family_is_first():
    scores = {**dict.fromkeys(combinations("abc", 2), 0.01), ("a", "c"): 0.4}
    first = first_marginals({"a": 2, "b": 2, "c": 2}, [("a", "b", "c")], scores, 4, np.random.default_rng(0))
    assert first[0] == ("a", "c")


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("epsilon", [0.1, 2.0])
def test_the_parts_of_the_budget_are_in_the_ledger(small_table, epsilon, relation):
    release = made(small_table, epsilon, relation)
    counts = relation == "add_remove"
    total = gaussian_mu(epsilon, DELTA) ** 2
    share = 0.99 * total if counts else total
    costs = {}
    for event in release.ledger.events:
        kind = "marginal" if event.label.startswith("marginal") else event.label
        costs[kind] = costs.get(kind, 0.0) + event.mu**2
        if event.label == "R of all pairs":
            assert event.sensitivity == pytest.approx((2 if counts else 3 + 2 / len(small_table)) * math.sqrt(6))
    assert costs.pop("number of rows", 0.0) == pytest.approx(0.01 * total if counts else 0.0)
    assert costs["R of all pairs"] == pytest.approx(0.1 * share)
    rounds = costs.get("distances from the model", 0.0)
    assert rounds == pytest.approx(0.1 * share) or (rounds == 0 and epsilon < 2), "nothing is useful at 0.1"
    assert costs["marginal"] == pytest.approx(0.9 * share - rounds)
    assert release.ledger.filter.limit == pytest.approx(math.sqrt(total))
    assert spent(release.ledger, DELTA).epsilon <= epsilon * (1 + 1e-9)


def test_what_the_model_answers_worst_is_measured(monkeypatch):
    worst = []

    def distances(self, model, cliques, cost):
        worst.append(cliques[len(cliques) // 2])
        return np.array([float(r == worst[-1]) for r in cliques])

    monkeypatch.setattr(module._Noisy, "distances", distances)
    found = made(chain(), 1000.0, theta=1e-6, rounds=2, extra=0.4).diagnostics
    assert [tuple(r) for r in found["marginals"][found["first"] :]] == worst and len(worst) == 2


def test_what_is_not_useful_is_measured_alone():
    assert made(chain(), 1000.0, theta=1e9).diagnostics["marginals"] == [[name] for name in "abcde"]


def test_its_model_stays_within_the_limit():
    table = chain()
    limit = made(table, 1000.0).diagnostics["model_mb"] / 3
    assert made(table, 1000.0, max_model_mb=limit).diagnostics["model_mb"] <= limit


def test_n_is_not_used_where_it_is_private(small_table):
    totals = {made(small_table, 0.2, seed=seed).diagnostics["total"] for seed in range(6)}
    assert len(totals) == 6 and len(small_table) not in totals
    assert len(made(small_table, 0.2, "replace")[SyntheticRows].table) == len(small_table)
    assert len(made(small_table, 0.2, rows=77)[SyntheticRows].table) == 77


def test_a_single_attribute_has_the_budget_but_for_n(small_table):
    release = made(small_table.project(["work"]), workload=1)
    assert [one.label for one in release.ledger.events] == ["number of rows", "marginal work"]
    assert sum(one.mu**2 for one in release.ledger.events) == pytest.approx(gaussian_mu(1.0, DELTA) ** 2)


def test_same_seed_same_release_and_discrete_noise(small_table):
    first, second = (made(small_table, seed=4) for _ in range(2))
    assert np.array_equal(first[SyntheticRows].table.codes, second[SyntheticRows].table.codes)
    discrete = made(small_table, noise="discrete")
    assert {one.kind for one in discrete.ledger.events} == {"discrete_gaussian"}
    assert spent(discrete.ledger, DELTA).epsilon <= 1 + 1e-9


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"theta": 0.0}, "theta"),
        ({"extra": 0.0}, "extra"),
        ({"candidates": 0}, "candidates"),
        ({"rounds": 0}, "rounds must be at least 1"),
        ({"engine": "gurobi"}, "unknown engine"),
        ({"epsilon": math.inf}, "finite epsilon"),
        ({"max_model_mb": 1e-9}, "the model of the one-way marginals"),
    ],
)
def test_invalid_settings_are_named(small_table, settings, said):
    with pytest.raises(UserError, match=said):
        made(small_table, **settings)
