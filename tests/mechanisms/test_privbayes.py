"""PrivBayes: its network, its budget, its rows, and what it refuses. `tests/audit` replays it."""

import math
from itertools import combinations

import numpy as np
import pytest

from dpbench.data.domain import Attribute, Domain
from dpbench.data.table import Table
from dpbench.errors import UserError
from dpbench.inference import Measurement
from dpbench.mechanisms import privbayes as module
from dpbench.mechanisms.privbayes import maximal_sets, privbayes
from dpbench.privacy.accounting import gaussian_mu, spent
from dpbench.privacy.budget import Budget
from dpbench.releases import Marginals, SyntheticRows

DELTA = 1e-5
RELATIONS = ("add_remove", "replace")


def made(table, epsilon=1.0, relation="replace", seed=0, **settings):
    return privbayes(table, Budget(epsilon, DELTA, relation), np.random.default_rng(seed), **settings)


def chain(n=4000, sizes=(3, 4, 3, 4, 3), kept=0.9):
    """Each attribute is mostly a function of the one before, and of nothing else."""
    rng = np.random.default_rng(5)
    columns = [rng.integers(0, sizes[0], n)]
    for size in sizes[1:]:
        columns.append(np.where(rng.random(n) < kept, columns[-1] % size, rng.integers(0, size, n)))
    names = (Attribute.categorical(name, range(size)) for name, size in zip("abcde", sizes, strict=False))
    return Table(Domain(tuple(names)), np.column_stack(columns))


@pytest.mark.parametrize(("relation", "score"), [("add_remove", "R"), ("replace", "R"), ("replace", "I")])
def test_a_chain_is_found_where_there_is_budget(relation, score):
    table = chain()
    release = made(table, 1000.0, relation, score=score, max_cells=12)
    network = release.diagnostics["network"]
    edges = {frozenset((name, parent)) for name, parents in network for parent in parents}
    assert edges == {frozenset(pair) for pair in ("ab", "bc", "cd", "de")}
    assert sorted(name for name, _ in network) == list("abcde")
    rows = release[SyntheticRows].table
    for pair in combinations("abcde", 2):
        distance = np.abs(rows.marginal(pair) / len(rows) - table.marginal(pair) / len(table)).sum()
        assert distance < 0.05, pair


def test_parents_are_before_their_attribute_and_every_set_is_maximal_and_useful(small_table):
    for seed in range(5):
        found = made(small_table, seed=seed, theta=1.0).diagnostics
        sizes, before = small_table.domain.sizes, []
        for name, parents in found["network"]:
            assert set(parents) <= set(before)
            room = found["cells"] / sizes[name]
            held = math.prod(sizes[parent] for parent in parents)
            assert held <= max(room, 1)
            assert all(held * sizes[other] > room for other in before if other not in parents)
            before.append(name)


def test_usefulness_by_hand(small_table):
    """Laplace noise of scale 2 d / (0.7 eps): n / (4 scale) cells (theta = 4, d = 4, n = 3,000)."""
    found = made(small_table, 1.0, calibration="paper").diagnostics
    assert found["cells"] == pytest.approx(3000 * 0.7 / (2 * 4 * 4))
    assert found["sigma"] == pytest.approx(math.sqrt(2) * 2 * 4 / 0.7)
    tight = made(small_table, 1.0).diagnostics
    assert tight["cells"] == pytest.approx(3000 / (4 * tight["sigma"] * math.sqrt(2 / math.pi)))
    assert made(small_table, 1e4, max_cells=10).diagnostics["cells"] == 10


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("epsilon", [0.01, 0.5, 4.0])
def test_the_parts_of_the_budget_are_in_the_ledger(small_table, relation, epsilon):
    counts = relation == "add_remove"
    l1, l2 = (1, 1) if counts else (2, math.sqrt(2))
    score = 2 if counts else 3 + 2 / len(small_table)
    for calibration in ("paper", "tight"):
        events = made(small_table, epsilon, relation, calibration=calibration).ledger.events
        kind = "laplace" if calibration == "paper" else "gaussian"
        assert [one.kind for one in events] == [kind] * counts + ["exponential"] * 3 + [kind] * 4
        draws = {"n": events[:1] if counts else (), "network": events[-7:-4], "marginals": events[-4:]}
        assert {one.sensitivity for one in draws["network"]} == {score}
        assert {one.sensitivity for one in (*draws["n"], *draws["marginals"])} == {l1 if calibration == "paper" else l2}
        pure = calibration == "paper"
        total = epsilon if pure else gaussian_mu(epsilon, DELTA) ** 2
        shares = {
            part: sum((getattr(one, "epsilon", None) or 1 / one.multiplier) if pure else one.mu**2 for one in some)
            / total
            for part, some in draws.items()
        }
        first = 0.01 if counts else 0.0
        expected = {"n": first, "network": 0.3 * (1 - first), "marginals": 0.7 * (1 - first)}
        assert shares == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("calibration", ["paper", "tight"])
def test_what_is_spent_is_within_the_budget(small_table, calibration):
    for relation in RELATIONS:
        release = made(small_table, 1.0, relation, calibration=calibration)
        assert spent(release.ledger, DELTA).epsilon <= 1 + 1e-9


def test_rows_follow_the_noisy_conditionals_by_hand():
    """Negative cells are 0; parents of which nothing was counted have all levels."""
    network = [("b", ()), ("a", ("b",))]
    measured = [
        Measurement(("b",), np.array([3.0, 1.0, -2.0]), 1.0),
        Measurement(("a", "b"), np.array([[9.0, -1.0, 0.0], [1.0, -3.0, 0.0]]), 1.0),
    ]
    codes = module._sampled({"a": 2, "b": 3}, network, measured, 400, np.random.default_rng(0))
    assert np.bincount(codes[:, 1], minlength=3).tolist() == [300, 100, 0]
    assert np.bincount(codes[codes[:, 1] == 0, 0]).tolist() == [270, 30]
    assert np.bincount(codes[codes[:, 1] == 1, 0]).tolist() == [50, 50]


@pytest.mark.parametrize("cells", [0.5, 1, 5, 12, 30, 1e6])
def test_maximal_sets_by_search(cells):
    sizes = {"a": 2, "b": 3, "c": 2, "d": 7, "e": 1}
    every = [set(some) for k in range(6) for some in combinations(sizes, k)]
    few = [some for some in every if math.prod(sizes[name] for name in some) <= cells]
    wanted = sorted(sorted(some) for some in few if not any(some < other for other in few))
    found = [list(some) for some in maximal_sets(sizes, list(sizes), cells)]
    assert sorted(found) == wanted


def test_too_many_candidates_are_fewer_cells_each(monkeypatch):
    monkeypatch.setattr(module, "MOST_CANDIDATES", 20)
    sizes = {f"a{i}": 2 for i in range(12)}
    network = [(f"a{i}", ()) for i in range(10)]
    found = module._candidates(sizes, network, 64.0, None)
    assert 0 < len(found) <= 20
    assert {name for name, _ in found} == {"a10", "a11"}
    assert {len(parents) for _, parents in found} == {1}, "10 pairs of parents each would be too many"


def test_a_large_budget_does_not_join_more_cells_than_the_limit():
    release = made(chain(), 1e6, max_cells=40)
    sizes = release.domain.sizes
    for name, parents in release.diagnostics["network"]:
        assert math.prod(sizes[other] for other in (name, *parents)) <= 40


@pytest.mark.parametrize("calibration", ["paper", "tight"])
def test_with_a_graphical_model_pairs_are_answered(calibration):
    table = chain()
    release = made(table, 1000.0, engine="native", max_cells=40, calibration=calibration)
    assert set(release[Marginals].tables) == set(combinations("abcde", 2))
    for pair, counts in release[Marginals].tables.items():
        assert counts.sum() == pytest.approx(len(table), rel=1e-3)
        assert np.abs(counts - table.marginal(pair)).sum() < 0.05 * len(table)
    assert release.diagnostics["model_mb"] <= 80


def test_its_model_stays_within_the_limit():
    table = chain()
    free = made(table, 100.0, engine="native").diagnostics["model_mb"]
    limit = free / 4
    assert made(table, 100.0, engine="native", max_model_mb=limit).diagnostics["model_mb"] <= limit


def test_n_is_not_used_where_it_is_private(small_table):
    sizes = {made(small_table, 0.2, "add_remove", seed=seed).diagnostics["total"] for seed in range(10)}
    assert len(sizes) == 10 and len(small_table) not in sizes
    assert len(made(small_table, 0.2, "replace")[SyntheticRows].table) == len(small_table)
    assert len(made(small_table, 0.2, rows=77)[SyntheticRows].table) == 77


def test_a_single_attribute_has_no_selection(small_table):
    release = made(small_table.project(["work"]), 1.0)
    assert [one.kind for one in release.ledger.events] == ["gaussian"]
    assert spent(release.ledger, DELTA).mu == pytest.approx(gaussian_mu(1.0, DELTA), rel=1e-9)


def test_same_seed_same_release(small_table):
    first, second = (made(small_table, seed=4) for _ in range(2))
    assert np.array_equal(first[SyntheticRows].table.codes, second[SyntheticRows].table.codes)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"score": "K"}, "unknown score 'K'"),
        ({"score": "F"}, "attributes of two levels"),
        ({"score": "I", "relation": "add_remove"}, "relation=replace"),
        ({"theta": 0.0}, "theta"),
        ({"beta": 1.0}, "beta must lie between 0 and 1"),
        ({"max_cells": 0}, "max_cells"),
        ({"engine": "gurobi"}, "unknown engine"),
        ({"epsilon": math.inf}, "finite epsilon"),
        ({"epsilon": math.inf, "calibration": "paper"}, "finite epsilon"),
        ({"calibration": "paper", "noise": "discrete"}, "Laplace noise"),
        ({"engine": "native", "max_model_mb": 1e-9}, "the model without parents"),
    ],
)
def test_invalid_settings_are_named(small_table, settings, said):
    with pytest.raises(UserError, match=said):
        made(small_table, **settings)
