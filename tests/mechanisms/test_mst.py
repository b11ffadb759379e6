"""MST: its tree, its budget, what it sees of the rows, the merged levels, and what it refuses."""

import math
from itertools import combinations

import numpy as np
import pytest

from dpbench.data.domain import Attribute, Domain
from dpbench.data.table import Table
from dpbench.errors import UserError
from dpbench.inference import JunctionTree, Measurement
from dpbench.mechanisms import fitting
from dpbench.mechanisms import mst as module
from dpbench.mechanisms.fitting import ENGINES
from dpbench.mechanisms.mst import mst
from dpbench.privacy.accounting import gaussian_mu, spent, zcdp_rho
from dpbench.privacy.budget import Budget
from dpbench.releases import Marginals, SyntheticRows

DELTA = 1e-5


def dependence(table, pair):
    """The l1 distance of a pair from independence, n times its shape: the score of MST without noise."""
    a, b = (table.marginal((name,)) for name in pair)
    return np.abs(table.marginal(pair) - np.outer(a, b) / len(table)).sum()


def spans(edges, names):
    """Whether the edges join all names: every split of the names is crossed."""
    splits = (set(part) for k in range(1, len(names)) for part in combinations(names, k))
    return all(any((a in part) != (b in part) for a, b in edges) for part in splits)


def wide_table(n=2000, levels=400):
    """One attribute of `levels` levels of which two occur, beside two binary ones that copy it."""
    domain = Domain(
        (
            Attribute.categorical("wide", range(levels)),
            Attribute.categorical("b", "uv"),
            Attribute.categorical("c", "uv"),
        )
    )
    b = np.arange(n) % 2
    return Table(domain, np.stack([np.where(b, levels - 3, 5), b, b], axis=1).astype(np.int64))


def test_a_huge_budget_gives_the_maximum_spanning_tree_and_reproduces_it(small_table):
    release = mst(small_table, Budget(1e6, DELTA), np.random.default_rng(0))
    names, n = small_table.domain.names, len(small_table)
    pairs = list(combinations(names, 2))
    trees = [edges for edges in combinations(pairs, 3) if spans(edges, names)]
    assert len(trees) == 16  # Cayley
    best = max(trees, key=lambda edges: sum(dependence(small_table, pair) for pair in edges))
    tree = [tuple(pair) for pair in release.diagnostics["tree"]]
    assert sorted(tree) == sorted(best)
    assert set(release[Marginals].tables) == set(pairs)
    for pair in tree:
        assert np.abs(release[Marginals].tables[pair] - small_table.marginal(pair)).max() < 1, pair
        assert np.abs(release[SyntheticRows].table.marginal(pair) - small_table.marginal(pair)).sum() < 0.05 * n
    assert len(release[SyntheticRows].table) == n
    off = [pair for pair in pairs if pair not in tree]
    assert max(np.abs(release[Marginals].tables[pair] - small_table.marginal(pair)).max() for pair in off) > 5


@pytest.mark.parametrize("relation", ["add_remove", "replace"])
@pytest.mark.parametrize("calibration", ["tight", "paper"])
@pytest.mark.parametrize("epsilon", [0.01, 0.3, 3.0])
def test_the_three_steps_are_in_the_ledger_a_third_of_the_budget_each(small_table, epsilon, calibration, relation):
    budget = Budget(epsilon, DELTA, relation)
    release = mst(small_table, budget, np.random.default_rng(1), calibration=calibration)
    events = release.ledger.events
    assert [event.kind for event in events] == ["gaussian"] * 4 + ["exponential"] * 3 + ["gaussian"] * 3
    l1, l2 = (1, 1) if relation == "add_remove" else (2, math.sqrt(2))
    assert [event.sensitivity for event in events] == [l2] * 4 + [l1] * 3 + [l2] * 3
    total = zcdp_rho(epsilon, DELTA) if calibration == "paper" else gaussian_mu(epsilon, DELTA) ** 2
    for step in (events[:4], events[4:7], events[7:]):
        costs = [event.rho if calibration == "paper" else event.mu**2 for event in step]
        assert math.fsum(costs) == pytest.approx(total / 3, rel=1e-12)
        assert len(set(costs)) == 1
    assert release.diagnostics["sigma"] == pytest.approx([l2 * events[0].multiplier, l2 * events[-1].multiplier])
    cost = spent(release.ledger, DELTA)
    assert (cost.rho if calibration == "paper" else cost.mu**2) == pytest.approx(total, rel=1e-12)
    assert cost.epsilon <= epsilon * (1 + 1e-9)


@pytest.mark.parametrize("epsilon", [0.05, 1.0, 50.0])
def test_all_that_is_read_of_the_rows_goes_through_the_noise(monkeypatch, small_table, epsilon):
    """With the noisy answers of one table, its neighbour's release is the same to the byte, and that of no rows too.

    And what is asked of the neighbours differs by no more than the sensitivity that is declared for it.
    """
    noise = fitting.gaussian, module.exponential_mechanism

    def played(table, draw):
        for place, name, function in ((fitting, "gaussian", noise[0]), (module, "exponential_mechanism", noise[1])):
            monkeypatch.setattr(place, name, lambda *args, function=function, **kw: draw(function, *args, **kw))
        return mst(table, Budget(epsilon, DELTA), np.random.default_rng(5))

    for table in (small_table, wide_table(300)):
        asked, told, replayed = [], [], []

        def record(function, rng, ledger, value, *, asked=asked, told=told, **settings):
            asked.append(np.array(value, dtype=float))
            told.append(function(rng, ledger, value, **settings))
            return told[-1]

        def replay(function, rng, ledger, value, *, sensitivity, told=told, replayed=replayed, **settings):
            replayed.append((np.asarray(value, dtype=float), sensitivity, None if function is noise[0] else np.inf))
            return told[len(replayed) - 1]

        release = played(table, record)
        for other in (table.take(np.arange(1, len(table))), table.take(np.arange(0))):
            replayed.clear()
            same = played(other, replay)
            assert len(replayed) == len(asked) == 3 * len(table.domain.names) - 2
            assert np.array_equal(same[SyntheticRows].table.codes, release[SyntheticRows].table.codes)
            assert all(
                np.array_equal(same[Marginals].tables[r], release[Marginals].tables[r])
                for r in release[Marginals].tables
            )
            assert same.diagnostics == release.diagnostics
            changes = [(now - then, bound, norm) for then, (now, bound, norm) in zip(asked, replayed, strict=True)]
            if len(other) == len(table) - 1:
                assert all(np.linalg.norm(change, norm) <= bound * (1 + 1e-9) for change, bound, norm in changes)
            assert all(np.abs(change).max() > 0 for change, _, _ in changes)


def test_better_budgets_answer_better(small_table):
    """Mean over 5 seeds of the error on what a tree without noise would give."""
    limit = mst(small_table, Budget(1e6, DELTA), np.random.default_rng(0))[Marginals].tables

    def error(epsilon: float) -> float:
        releases = [mst(small_table, Budget(epsilon, DELTA), np.random.default_rng(seed)) for seed in range(5)]
        return float(np.mean([np.abs(t - limit[c]).sum() for r in releases for c, t in r[Marginals].tables.items()]))

    assert error(0.05) > 2 * error(1.0) > 4 * error(20.0)


def test_n_is_not_used(small_table):
    """The released total is an estimate: over 20 seeds it is never n."""
    totals = [mst(small_table, Budget(0.1, DELTA), np.random.default_rng(s)).diagnostics["total"] for s in range(20)]
    assert all(total != len(small_table) for total in totals)
    assert len(set(totals)) == 20


def test_levels_below_three_sigma_are_merged():
    """By hand: sigma = 10, so that 30 stays and 29.9 goes; the merged levels come last."""
    merge = module._merged(Measurement(("a",), np.array([29.9, 100.0, -3.0, 30.0, 50.0]), 10.0))
    assert merge.code.tolist() == [3, 0, 3, 1, 2]
    assert merge.levels.tolist() == [1, 3, 4, 0, 2]
    assert merge.count.tolist() == [1, 1, 1, 2]
    back = merge.undo(np.repeat(np.arange(4), 1000), np.random.default_rng(0))
    assert [set(part.tolist()) for part in np.split(back, 4)] == [{1}, {3}, {4}, {0, 2}]
    assert 400 < (back == 0).sum() < 600
    none, every = (module._merged(Measurement(("a",), np.full(3, value), 10.0)) for value in (99.0, 0.0))
    assert none.code.tolist() == [0, 1, 2]
    assert none.count.tolist() == [1, 1, 1]
    assert every.code.tolist() == [0, 0, 0]
    assert every.count.tolist() == [3]


@pytest.mark.parametrize("epsilon", [0.5, 1e6])
def test_the_release_is_over_the_original_domain(epsilon):
    """Of 400 levels two occur: the rest is one level to the tree, and 398 equal ones in what is released."""
    table = wide_table()
    release = mst(table, Budget(epsilon, DELTA), np.random.default_rng(0), rows=20_000)
    assert release.diagnostics["compressed_sizes"]["wide"] < 10
    assert release[SyntheticRows].table.domain == table.domain == release.domain
    pair = release[Marginals].tables["wide", "b"]
    assert pair.shape == (400, 2)
    assert np.abs(pair[[5, 397], [0, 1]] - 1000).max() < (150 if epsilon < 1 else 1)
    assert pair[[5, 397], [1, 0]].max() < (150 if epsilon < 1 else 1)
    counts = release[SyntheticRows].table.marginal(("wide",))
    assert set(np.argsort(counts)[-2:]) == {5, 397}
    assert np.abs(counts[[5, 397]] / 20_000 - 0.5).max() < 0.05
    rest = np.delete(pair.sum(axis=1), [5, 397])
    assert np.unique(np.round(rest, 9), return_counts=True)[1].max() > 390
    occurring = (np.delete(counts, [5, 397]) > 0).sum()
    assert occurring <= rest.sum() / pair.sum() * 20_000 + 20


def test_one_way_tables_are_brought_to_one_total():
    """By hand: sums 40 of 4 cells and 10 of 2 meet at (40/4 + 10/2) / (1/4 + 1/2) = 20, by -5 and +5 a cell."""
    singles = [
        Measurement(("a",), np.array([31.0, 2.0, 4.0, 3.0]), 10.0),
        Measurement(("b",), np.array([4.0, 6.0]), 1.0),
    ]
    a, b = module._reconciled(singles, {m.clique[0]: module._merged(m) for m in singles})
    assert a.values == pytest.approx([26.0, 9.0 - 15.0])
    assert b.values == pytest.approx([9.0, 11.0])
    assert (a.sigma, b.sigma) == (10.0, 1.0)


def test_the_model_is_of_all_that_was_measured(monkeypatch, small_table):
    """The independent model first, then every attribute and every pair of the tree, each with its own sigma."""
    asked = []

    class Recording(JunctionTree):
        def estimate(self, sizes, measurements, warm_start=None):
            asked.append([(m.clique, m.sigma) for m in measurements])
            return super().estimate(sizes, measurements, warm_start)

    monkeypatch.setitem(ENGINES, "native", Recording)
    diagnostics = mst(small_table, Budget(1.0), np.random.default_rng(0)).diagnostics
    single, pair = diagnostics["sigma"]
    first = [((name,), single) for name in small_table.domain.names]
    assert asked == [first, [*first, *((tuple(r), pair) for r in diagnostics["tree"])]]


def test_the_total_gives_each_table_its_own_weight():
    """The sum of 400 cells is 200 times as uncertain as that of 2: it must hardly enter, merged or not.

    Inverse variances give a standard deviation of sigma / sqrt(1/400 + 1/2 + 1/2), near sigma; a merged level
    with the weight of a single one would give the sum of `wide` a third of the say, and an error of 7 sigma.
    """
    table = wide_table()
    errors = []
    for seed in range(40):
        release = mst(table, Budget(0.5, DELTA), np.random.default_rng(seed), rows=1)
        errors.append((release.diagnostics["total"] - len(table)) / release.diagnostics["sigma"][0])
    assert np.sqrt(np.mean(np.square(errors))) < 1.5


def test_a_single_attribute_takes_the_whole_budget(small_table):
    table = small_table.project(["work"])
    release = mst(table, Budget(1.0, DELTA), np.random.default_rng(0), workload=1)
    assert [event.kind for event in release.ledger.events] == ["gaussian"]
    assert spent(release.ledger, DELTA).mu == pytest.approx(gaussian_mu(1.0, DELTA), rel=1e-12)
    assert release.diagnostics["tree"] == []
    assert np.abs(release[Marginals].tables[("work",)] - table.marginal(("work",))).max() < 100
    assert len(release[SyntheticRows].table) == round(release.diagnostics["total"])
    exact = mst(table, Budget(1e6, DELTA), np.random.default_rng(0), workload=[["work"]])
    assert np.abs(exact[Marginals].tables[("work",)] - table.marginal(("work",))).max() < 1


def test_any_workload_is_answered_by_the_tree(small_table):
    """What is asked for does not change what is measured."""
    names = small_table.domain.names
    full = mst(small_table, Budget(5.0, DELTA), np.random.default_rng(0))
    listed = mst(small_table, Budget(5.0, DELTA), np.random.default_rng(0), workload=[["sex"], names[:3]])
    assert listed.diagnostics == full.diagnostics
    assert list(listed[Marginals].tables) == [("sex",), names[:3]]
    assert listed[Marginals].tables[names[:3]].sum(axis=2) == pytest.approx(full[Marginals].tables[names[:2]], abs=1e-6)


def test_the_number_of_synthetic_rows_can_be_asked_for(small_table):
    """And does not change the noise."""
    asked, estimated = (mst(small_table, Budget(1.0), np.random.default_rng(0), rows=n) for n in (123, None))
    assert len(asked[SyntheticRows].table) == 123
    assert len(estimated[SyntheticRows].table) == round(estimated.diagnostics["total"])
    assert all(
        np.array_equal(asked[Marginals].tables[c], estimated[Marginals].tables[c]) for c in asked[Marginals].tables
    )


def test_no_tree_is_larger_than_the_limit_that_admits_it(small_table):
    """The star around age, 6 x (3 + 2 + 5) cells, is the largest tree: a limit of its size is enough."""
    star = 60 * 8 / 2**20
    for seed in range(20):
        release = mst(small_table, Budget(0.01), np.random.default_rng(seed), max_model_mb=star, rows=1)
        assert spans(release.diagnostics["tree"], small_table.domain.names)  # a tree, whatever the noise picks
        assert release.diagnostics["model_mb"] <= star
    with pytest.raises(UserError, match="the largest tree of pairs"):
        mst(small_table, Budget(0.01), np.random.default_rng(0), max_model_mb=star * 0.99)


def test_what_cannot_begin_is_refused_before_any_noise(small_table):
    rng = np.random.default_rng(0)
    before, children = rng.bit_generator.state["state"], rng.bit_generator.seed_seq.n_children_spawned
    cases = [
        ({"max_model_mb": 1e-6}, "the largest tree of pairs"),
        ({"tolerance": 0.0}, "tolerance must be greater"),
        ({"iterations": 0}, "at least 1"),
        ({"rows": 0}, "at least 1"),
        ({"engine": "fast"}, "unknown engine 'fast'"),
        ({"workload": 9}, "k between 1 and 4"),
        ({"workload": []}, "the workload is empty"),
    ]
    for parameters, message in cases:
        with pytest.raises(UserError, match=message):
            mst(small_table, Budget(1.0), rng, **parameters)
    with pytest.raises(UserError, match="finite epsilon"):
        mst(small_table, Budget(float("inf")), rng)
    with pytest.raises(UserError, match="k between 1 and 1"):
        mst(small_table.project(["sex"]), Budget(1.0), rng)
    assert rng.bit_generator.state["state"] == before
    assert rng.bit_generator.seed_seq.n_children_spawned == children


def test_odd_tables_give_an_answer():
    """One level, no rows, equal rows, and a budget too small for any signal: finite answers that sum to the total."""
    domain = Domain(
        (Attribute.categorical("one", ["x"]), Attribute.categorical("b", "uv"), Attribute.categorical("c", "uvw"))
    )
    for codes in (np.zeros((0, 3), int), np.zeros((50, 3), int)):
        for epsilon in (1e-4, 1.0, 1e6):
            for seed in range(3):
                release = mst(Table(domain, codes), Budget(epsilon), np.random.default_rng(seed))
                squares = math.fsum(event.mu**2 for event in release.ledger.events)
                assert squares == pytest.approx(gaussian_mu(epsilon, DELTA) ** 2, rel=1e-9)
                for clique, table in release[Marginals].tables.items():
                    assert table.shape == domain.shape(clique)
                    assert np.isfinite(table).all()
                    assert table.min() >= 0
                    assert table.sum() == pytest.approx(release.diagnostics["total"])
