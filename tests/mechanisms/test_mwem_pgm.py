"""MWEM+PGM: its rounds by hand, its budget, its limit without noise, what it sees of the rows, and what it refuses."""

import math
from itertools import combinations

import numpy as np
import pytest

from dpbench.data.domain import Attribute, Domain
from dpbench.data.table import Table
from dpbench.errors import UserError
from dpbench.inference import JunctionTree, model_mb
from dpbench.mechanisms import fitting
from dpbench.mechanisms import mwem_pgm as module
from dpbench.mechanisms.fitting import ENGINES
from dpbench.mechanisms.mwem_pgm import mwem_pgm
from dpbench.privacy.accounting import gaussian_mu, spent, zcdp_rho
from dpbench.privacy.budget import Budget
from dpbench.releases import Distribution, Marginals, SyntheticRows

DELTA = 1e-5


def made(table, epsilon=1.0, seed=0, relation="add_remove", **settings):
    return mwem_pgm(table, Budget(epsilon, DELTA, relation), np.random.default_rng(seed), **settings)


def test_a_huge_budget_reproduces_the_workload_once_each_pair_is_measured(small_table):
    """Without noise a pair that is measured has no error left, and another is selected: six rounds measure all six."""
    release, n = made(small_table, 1e6, rounds=6), len(small_table)
    pairs = list(combinations(small_table.domain.names, 2))
    assert sorted(clique for clique, _ in release[Marginals].noise) == sorted(pairs)
    assert list(release[Marginals].tables) == pairs
    for pair, table in release[Marginals].tables.items():
        assert np.abs(table - small_table.marginal(pair)).max() < 1, pair
        assert np.abs(release[SyntheticRows].table.marginal(pair) - small_table.marginal(pair)).sum() < 0.05 * n
    assert len(release[SyntheticRows].table) == n


def test_each_round_measures_what_scores_most_without_noise(small_table):
    """The score is the l1 distance less the number of cells, taken from whole tables; the first model has total 1."""
    release = made(small_table, 1e6, rounds=5)
    pairs, sizes = list(combinations(small_table.domain.names, 2)), small_table.domain.sizes
    measured = []
    for one in release.diagnostics["rounds"]:
        if measured:
            model = made(small_table, 1e6, rounds=len(measured), workload=measured)[Distribution].model
            answers = model.answer(pairs)
        else:
            answers = {r: np.full(small_table.domain.shape(r), 1 / (sizes[r[0]] * sizes[r[1]])) for r in pairs}
        score = {r: np.abs(small_table.marginal(r) - answers[r]).sum() - answers[r].size for r in pairs}
        assert tuple(one["clique"]) == max(pairs, key=score.__getitem__)
        measured.append(tuple(one["clique"]))


@pytest.mark.parametrize("relation", ["add_remove", "replace"])
@pytest.mark.parametrize("calibration", ["tight", "paper"])
@pytest.mark.parametrize("epsilon", [0.01, 0.3, 3.0])
def test_every_round_is_in_the_ledger_and_together_they_spend_the_budget(small_table, epsilon, calibration, relation):
    release = made(small_table, epsilon, relation=relation, calibration=calibration, rounds=5, alpha=0.8)
    events = release.ledger.events
    assert [event.kind for event in events] == ["exponential", "gaussian"] * 5
    l1, l2 = (1, 1) if relation == "add_remove" else (2, math.sqrt(2))
    assert [event.sensitivity for event in events] == [l1, l2] * 5
    total = zcdp_rho(epsilon, DELTA) if calibration == "paper" else gaussian_mu(epsilon, DELTA) ** 2
    costs = [event.rho if calibration == "paper" else event.mu**2 for event in events]
    assert costs == pytest.approx([0.2 * total / 5, 0.8 * total / 5] * 5, rel=1e-9)
    assert {event.sensitivity * event.multiplier for event in events[1::2]} == {release.diagnostics["sigma"]}
    cost = spent(release.ledger, DELTA)
    assert (cost.rho if calibration == "paper" else cost.mu**2) == pytest.approx(total, rel=1e-9)
    assert cost.epsilon <= epsilon * (1 + 1e-9)


@pytest.mark.parametrize("epsilon", [0.05, 1.0, 50.0])
def test_all_that_is_read_of_the_rows_goes_through_the_noise(monkeypatch, small_table, epsilon):
    """With the noisy answers of one table, its neighbour's release is the same to the byte, and that of no rows too.

    And what is asked of the neighbours differs by no more than the sensitivity that is declared for it.
    """
    own = fitting.gaussian, module.exponential_mechanism
    asked, told = [], []

    def record(function):
        def draw(rng, ledger, value, **settings):
            asked.append(np.array(value, dtype=float))
            told.append(function(rng, ledger, value, **settings))
            return told[-1]

        return draw

    monkeypatch.setattr(fitting, "gaussian", record(own[0]))
    monkeypatch.setattr(module, "exponential_mechanism", record(own[1]))
    release = made(small_table, epsilon)
    for other in (small_table.take(np.arange(1, len(small_table))), small_table.take(np.arange(0))):
        replayed = []

        def replay(norm, replayed=replayed):
            def draw(rng, ledger, value, *, sensitivity, **settings):
                replayed.append((np.asarray(value, dtype=float), sensitivity, norm))
                return told[len(replayed) - 1]

            return draw

        monkeypatch.setattr(fitting, "gaussian", replay(None))
        monkeypatch.setattr(module, "exponential_mechanism", replay(np.inf))
        same = made(other, epsilon)
        assert len(replayed) == len(asked) == 2 * 4
        assert np.array_equal(same[SyntheticRows].table.codes, release[SyntheticRows].table.codes)
        for r, table in release[Marginals].tables.items():
            assert np.array_equal(same[Marginals].tables[r], table)
        assert same.diagnostics == release.diagnostics
        changes = [(now - then, bound, norm) for then, (now, bound, norm) in zip(asked, replayed, strict=True)]
        if len(other) == len(small_table) - 1:
            assert all(np.linalg.norm(change, norm) <= bound * (1 + 1e-9) for change, bound, norm in changes)
        assert all(np.abs(change).max() > 0 for change, _, _ in changes)


def test_the_model_of_each_round_is_of_all_that_was_measured(monkeypatch, small_table):
    asked = []

    class Recording(JunctionTree):
        def estimate(self, sizes, measurements, warm_start=None):
            asked.append([(m.clique, m.sigma) for m in measurements])
            return super().estimate(sizes, measurements, warm_start)

    monkeypatch.setitem(ENGINES, "native", Recording)
    release = made(small_table)
    cliques = [tuple(one["clique"]) for one in release.diagnostics["rounds"]]
    sigma = release.diagnostics["sigma"]
    assert asked == [[(r, sigma) for r in cliques[:t]] for t in range(5)]
    assert release[Marginals].noise == tuple(asked[-1])


def test_there_are_as_many_rounds_as_attributes_unless_told(small_table):
    assert len(made(small_table).diagnostics["rounds"]) == 4
    assert len(made(small_table, rounds=9).diagnostics["rounds"]) == 9


def test_better_budgets_answer_better(small_table):
    """Mean over 5 seeds; the errors differ by factors, so that a reversal has odds far below 1e-6."""

    def error(epsilon: float) -> float:
        tables = [made(small_table, epsilon, seed, rounds=8)[Marginals].tables for seed in range(5)]
        return float(np.mean([np.abs(t - small_table.marginal(r)).sum() for found in tables for r, t in found.items()]))

    assert error(0.05) > 2 * error(1.0) > 4 * error(20.0)


def test_round_t_of_T_may_take_t_parts_of_T_of_the_limit(small_table):
    """With 100 cells at the end, in the first of 4 rounds no model of more than 25 cells fits.

    A model has all attributes: the smallest is that of work and sex (6 cells), age (6) and grade (5), 17 together.
    """
    sizes, mb = small_table.domain.sizes, 8 / 2**20
    for seed in range(20):
        release = made(small_table, 0.01, seed, max_model_mb=4 * 25 * mb)
        cliques = [tuple(one["clique"]) for one in release.diagnostics["rounds"]]
        for t in range(1, 5):
            assert model_mb(sizes, cliques[:t]) <= t * 25 * mb
            pairs = combinations(small_table.domain.names, 2)
            fit = sum(model_mb(sizes, [*cliques[: t - 1], r]) <= t * 25 * mb for r in pairs)
            assert release.diagnostics["rounds"][t - 1]["candidates"] == fit >= 1
    assert made(small_table, max_model_mb=4 * 17 * mb).diagnostics["rounds"][0]["clique"] == ["work", "sex"]
    with pytest.raises(UserError, match=r"of a marginal, in the first of 4 rounds, has 0\.00013 MB"):
        made(small_table, max_model_mb=4 * 16.9 * mb)


def test_n_is_not_used(small_table):
    """The released total is an estimate: over 20 seeds it is never n."""
    for relation in ("add_remove", "replace"):
        totals = [made(small_table, 0.1, s, relation).diagnostics["total"] for s in range(20)]
        assert all(total != len(small_table) for total in totals)
        assert len(set(totals)) == 20


def test_its_answers_may_be_left_to_the_distribution(small_table):
    kept, left = (made(small_table, workload=3, answers=answers) for answers in (True, False))
    assert not left[Marginals].tables and left[Marginals].noise == kept[Marginals].noise
    assert len(kept[Marginals].tables) == 4
    for clique, table in kept[Marginals].tables.items():
        assert np.array_equal(left[Distribution].answer([clique])[clique], table)


def test_the_number_of_synthetic_rows_can_be_asked_for(small_table):
    """And does not change the noise."""
    asked, estimated = (made(small_table, rows=n) for n in (123, None))
    assert len(asked[SyntheticRows].table) == 123
    assert len(estimated[SyntheticRows].table) == round(estimated.diagnostics["total"])
    for clique, table in asked[Marginals].tables.items():
        assert np.array_equal(table, estimated[Marginals].tables[clique])


def test_what_cannot_begin_is_refused_before_any_noise(small_table):
    rng = np.random.default_rng(0)
    before, children = rng.bit_generator.state["state"], rng.bit_generator.seed_seq.n_children_spawned
    cases = [
        ({"rounds": 0}, "mwem_pgm: rounds must be at least 1, not 0"),
        ({"alpha": 1.0}, "mwem_pgm: alpha must lie between"),
        ({"max_model_mb": 1e-6}, "the smallest model of a marginal"),
        ({"tolerance": 0.0}, "tolerance must be greater"),
        ({"iterations": 0}, "at least 1"),
        ({"rows": 0}, "at least 1"),
        ({"engine": "fast"}, "unknown engine 'fast'"),
        ({"workload": 9}, "k between 1 and 4"),
        ({"workload": []}, "the workload is empty"),
    ]
    for parameters, message in cases:
        with pytest.raises(UserError, match=message):
            mwem_pgm(small_table, Budget(1.0), rng, **parameters)
    with pytest.raises(UserError, match="finite epsilon"):
        mwem_pgm(small_table, Budget(float("inf")), rng)
    assert rng.bit_generator.state["state"] == before
    assert rng.bit_generator.seed_seq.n_children_spawned == children


def test_odd_tables_give_an_answer():
    """One level, no rows, equal rows, and a budget too small for any signal: finite answers that sum to the total."""
    domain = Domain(
        (Attribute.categorical("one", ["x"]), Attribute.categorical("b", "uv"), Attribute.categorical("c", "uvw"))
    )
    for codes in (np.zeros((0, 3), int), np.zeros((50, 3), int)):
        for epsilon in (1e-4, 1.0, 1e6):
            for workload in (1, 2):
                release = made(Table(domain, codes), epsilon, workload=workload)
                for clique, table in release[Marginals].tables.items():
                    assert table.shape == domain.shape(clique)
                    assert np.isfinite(table).all() and table.min() >= 0
                    assert table.sum() == pytest.approx(release.diagnostics["total"])
