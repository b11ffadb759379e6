"""AIM: its limit without noise, its budget, its independence of the process, and what it refuses."""

import math

import numpy as np
import pytest

from dpbench.data.domain import Attribute, Domain
from dpbench.data.table import Table
from dpbench.errors import UserError
from dpbench.inference import JunctionTree, MarkovModel
from dpbench.inference.mixture import MixtureModel
from dpbench.mechanisms import aim as AIM
from dpbench.mechanisms.aim import aim
from dpbench.mechanisms.fitting import ENGINES
from dpbench.privacy.accounting import gaussian_mu, spent, zcdp_rho
from dpbench.privacy.budget import Budget
from dpbench.releases import Marginals, SyntheticRows

DELTA = 1e-5


def test_a_huge_budget_reproduces_every_pair(small_table):
    release = aim(small_table, Budget(1e6, DELTA), np.random.default_rng(0))
    for clique, table in release[Marginals].tables.items():
        assert np.abs(table - small_table.marginal(clique)).max() < 1, clique
    assert len(release[SyntheticRows].table) == len(small_table)
    for clique in release[Marginals].tables:
        assert np.abs(release[SyntheticRows].table.marginal(clique) - small_table.marginal(clique)).sum() < 0.05 * len(
            small_table
        )


@pytest.mark.parametrize("relation", ["add_remove", "replace"])
@pytest.mark.parametrize("calibration", ["tight", "paper"])
@pytest.mark.parametrize("epsilon", [0.01, 0.3, 3.0])
def test_every_round_is_in_the_ledger_and_the_sum_is_what_the_filter_allows(
    small_table, epsilon, calibration, relation
):
    budget = Budget(epsilon, DELTA, relation)
    release = aim(small_table, budget, np.random.default_rng(1), calibration=calibration)
    cost, events = spent(release.ledger, DELTA), release.ledger.events
    rounds = release.diagnostics["rounds"]
    kinds = [event.kind for event in events]
    assert kinds.count("exponential") == len(rounds) >= 1
    assert kinds.count("gaussian") == len(rounds) + 4
    if calibration == "paper":
        assert cost.rho == pytest.approx(zcdp_rho(epsilon, DELTA), rel=1e-9)
        assert sum(event.rho for event in events) == pytest.approx(cost.rho, rel=1e-9)
    else:
        assert cost.mu == pytest.approx(gaussian_mu(epsilon, DELTA), rel=1e-9)
        assert sum(event.mu**2 for event in events) == pytest.approx(cost.mu**2, rel=1e-9)
    assert cost.epsilon == pytest.approx(epsilon, rel=1e-6)
    assert cost.epsilon <= epsilon * (1 + 1e-9)
    assert cost.ex_post <= cost.epsilon * (1 + 1e-9)
    l1, l2 = (1, 1) if relation == "add_remove" else (2, math.sqrt(2))
    scores = [event.sensitivity for event in events if event.kind == "exponential"]
    assert set(scores) == {6.0 * l1}  # max_r w_r: a pair shares 2 attributes with itself and 1 with each of 4 others
    assert {event.sensitivity for event in events if event.kind == "gaussian"} == {l2}
    stated = [m["sigma"] for m in rounds]
    assert [e.sensitivity * e.multiplier for e in events if e.kind == "gaussian"][4:] == pytest.approx(stated)


@pytest.mark.parametrize("calibration", ["tight", "paper"])
@pytest.mark.parametrize("epsilon", [0.05, 1.0, 10.0])
def test_a_budget_is_divided_as_the_algorithm_says(small_table, epsilon, calibration):
    """The first round has 1/T of the budget, 0.9 of it for its measurement, and is what no calibration changes."""
    release = aim(small_table, Budget(epsilon, DELTA), np.random.default_rng(0), calibration=calibration)
    first, chosen = release.ledger.events[0], release.ledger.events[4]
    cost = {"paper": "rho", "tight": "mu"}[calibration]
    power = {"paper": 1, "tight": 2}[calibration]
    total = release.ledger.filter.limit**power
    assert getattr(first, cost) ** power == pytest.approx(0.9 * total / 64, rel=1e-12)
    assert getattr(chosen, cost) ** power == pytest.approx(0.1 * total / 64, rel=1e-9)


def test_tight_measures_with_less_noise(small_table):
    """8% at epsilon = 1: sqrt of zCDP's rho by Gaussian DP's mu^2/2."""
    noise = {
        calibration: aim(small_table, Budget(1.0, DELTA), np.random.default_rng(0), calibration=calibration)
        .ledger.events[0]
        .multiplier
        for calibration in ("tight", "paper")
    }
    assert noise["tight"] / noise["paper"] == pytest.approx(
        math.sqrt(2 * zcdp_rho(1.0, DELTA)) / gaussian_mu(1.0, DELTA), rel=1e-9
    )
    assert 0.91 < noise["tight"] / noise["paper"] < 0.93


UP_TO_THREE = {"degree": 3, "up_to": True, "max_cells": 60}


@pytest.mark.parametrize(
    ("engine", "workload"),
    [
        *[("native", workload) for workload in (2, 4, UP_TO_THREE)],
        ("mixture", UP_TO_THREE),
        *[pytest.param("mixture", workload, marks=pytest.mark.slow) for workload in (2, 4)],
    ],
)
def test_scores_and_releases_are_those_of_whole_tables(small_table, monkeypatch, engine, workload):
    """Where ||h - m||_1 is taken from both tables, cell by cell: the same scores, picks, rows and answers."""
    own, met = AIM.exponential_mechanism, []

    def seen(rng, ledger, scores, **settings):
        met[-1].append(scores)
        return own(rng, ledger, scores, **settings)

    def whole(model, counts, cliques):
        answers = model.answer(cliques)
        return {r: float(np.abs(answers[r] - small_table.marginal(r)).sum()) for r in cliques}

    monkeypatch.setattr(AIM, "exponential_mechanism", seen)
    made = []
    for kind in (None, MarkovModel, MixtureModel):
        if kind:
            monkeypatch.setattr(kind, "distances", whole)
        met.append([])
        rng = np.random.default_rng(4)
        made.append(aim(small_table, Budget(1.0, DELTA), rng, workload=workload, engine=engine, iterations=200))
    for other, scores in zip(made[1:], met[1:], strict=True):
        assert [len(s) for s in scores] == [len(s) for s in met[0]]
        np.testing.assert_allclose(np.concatenate(scores), np.concatenate(met[0]), rtol=1e-9, atol=1e-7)
        assert other.diagnostics == made[0].diagnostics
        assert np.array_equal(other[SyntheticRows].table.codes, made[0][SyntheticRows].table.codes)
        for clique, table in made[0][Marginals].tables.items():
            assert np.array_equal(other[Marginals].tables[clique], table)


def test_the_rounds_update_the_model_and_the_last_one_estimates_it(small_table, monkeypatch):
    met = []

    class Recording(JunctionTree):
        def estimate(self, sizes, measurements, warm_start=None):
            met.append(("estimate", len(measurements)))
            return super().estimate(sizes, measurements, warm_start)

        def update(self, sizes, measurements, model):
            met.append(("update", len(measurements)))
            return super().update(sizes, measurements, model)

    monkeypatch.setitem(ENGINES, "native", Recording)
    release = aim(small_table, Budget(1.0, DELTA), np.random.default_rng(0))
    singles, rounds = len(small_table.domain.names), len(release.diagnostics["rounds"])
    updates = [("update", singles + t) for t in range(1, rounds)]
    assert met == [("estimate", singles), *updates, ("estimate", singles + rounds)]


def test_better_budgets_answer_better(small_table):
    """Mean over 5 seeds; the errors differ by factors, so that a reversal has odds far below 1e-6."""

    def error(epsilon: float) -> float:
        releases = [aim(small_table, Budget(epsilon, DELTA), np.random.default_rng(seed)) for seed in range(5)]
        return float(
            np.mean(
                [
                    np.abs(t - small_table.marginal(c)).sum()
                    for release in releases
                    for c, t in release[Marginals].tables.items()
                ]
            )
        )

    assert error(0.05) > 2 * error(1.0) > 4 * error(20.0)


def test_model_stays_within_its_limit(small_table):
    """A limit of 60 cells; the joint table of the four attributes has 180."""
    release = aim(small_table, Budget(2.0, DELTA), np.random.default_rng(0), max_model_mb=60 * 8 / 2**20)
    assert release.diagnostics["model_mb"] <= 60 * 8 / 2**20


def test_n_is_not_used(small_table):
    """The released total is an estimate: over 20 seeds it is never n, and its error is of the size of its noise."""
    totals = [aim(small_table, Budget(0.1, DELTA), np.random.default_rng(s)).diagnostics["total"] for s in range(20)]
    assert all(total != len(small_table) for total in totals)
    assert len(set(totals)) == 20


def test_the_number_of_synthetic_rows_can_be_asked_for(small_table):
    """And does not change the noise."""
    asked, estimated = (aim(small_table, Budget(1.0), np.random.default_rng(0), rows=n) for n in (123, None))
    assert len(asked[SyntheticRows].table) == 123
    assert len(estimated[SyntheticRows].table) == round(estimated.diagnostics["total"])
    assert all(
        np.array_equal(asked[Marginals].tables[c], estimated[Marginals].tables[c]) for c in asked[Marginals].tables
    )


@pytest.mark.parametrize("engine", ["native", "mixture"])
def test_the_release_tells_which_estimates_their_limit_cut_short(small_table, engine):
    """At most 5 steps, where some of them would take more."""
    cut, whole = (
        aim(small_table, Budget(1.0), np.random.default_rng(0), rows=1, iterations=limit, engine=engine)
        for limit in (5, 5000)
    )
    assert max(r["iterations"] for r in cut.diagnostics["rounds"]) == 5
    assert 5 < max(r["iterations"] for r in whole.diagnostics["rounds"]) < 5000


def test_what_cannot_begin_is_refused_before_any_noise(small_table):
    rng = np.random.default_rng(0)
    before = rng.bit_generator.state["state"]
    cases = [
        ({"max_model_mb": 1e-6}, "one-way marginals alone"),
        ({"rounds": 2}, "raise rounds above 4"),
        ({"alpha": 1.0}, "alpha must lie between"),
        ({"iterations": 0}, "at least 1"),
        ({"rows": 0}, "at least 1"),
        ({"engine": "fast"}, "unknown engine 'fast'"),
        ({"workload": 9}, "k between 1 and 4"),
    ]
    for parameters, message in cases:
        with pytest.raises(UserError, match=message):
            aim(small_table, Budget(1.0), rng, **parameters)
    with pytest.raises(UserError, match="finite epsilon"):
        aim(small_table, Budget(float("inf")), rng)
    assert rng.bit_generator.state["state"] == before


def test_odd_tables_give_an_answer():
    """One level, no rows, equal rows, and a budget too small for any signal: finite answers that sum to the total."""
    domain = Domain(
        (Attribute.categorical("one", ["x"]), Attribute.categorical("b", "uv"), Attribute.categorical("c", "uvw"))
    )
    for codes in (np.zeros((0, 3), int), np.zeros((50, 3), int)):
        for epsilon in (1e-4, 1.0, 1e5):
            release = aim(Table(domain, codes), Budget(epsilon), np.random.default_rng(0))
            for table in release[Marginals].tables.values():
                assert np.isfinite(table).all()
                assert table.min() >= 0
                assert table.sum() == pytest.approx(release.diagnostics["total"])
