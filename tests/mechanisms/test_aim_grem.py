"""AIM with residuals: its rounds and its budget, its answers between rounds, its speed, and what it refuses."""

import math
import time
from itertools import combinations, pairwise

import numpy as np
import pytest

from dpbench.data.domain import Attribute, Domain
from dpbench.data.table import Table
from dpbench.errors import UserError
from dpbench.inference import Measurement
from dpbench.inference.residuals import Residuals, RunningAnswers, on_simplex
from dpbench.mechanisms.aim_grem import aim_grem
from dpbench.mechanisms.gaussian_marginals import gaussian_marginals
from dpbench.privacy.accounting import gaussian_mu, spent, zcdp_rho
from dpbench.privacy.budget import Budget
from dpbench.releases import Distribution, Marginals, SyntheticRows

DELTA = 1e-5
RELATIONS = ["add_remove", "replace"]


def made(table, epsilon=1.0, seed=0, relation="add_remove", **settings):
    return aim_grem(table, Budget(epsilon, DELTA, relation), np.random.default_rng(seed), **settings)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("calibration", ["tight", "paper"])
@pytest.mark.parametrize("epsilon", [0.05, 2.0])
def test_it_measures_each_attribute_and_then_what_it_selects_for_the_whole_budget(
    small_table, epsilon, calibration, relation
):
    release = made(small_table, epsilon, relation=relation, calibration=calibration)
    events, rounds = release.ledger.events, release.diagnostics["rounds"]
    assert [event.kind for event in events] == ["gaussian"] * 4 + ["exponential", "gaussian"] * len(rounds)
    measured = [tuple(one["clique"]) for one in rounds]
    assert [r for r, _ in release[Marginals].noise] == [(name,) for name in small_table.domain.names] + measured
    assert [event.label for event in events[5::2]] == [f"marginal {','.join(r)}" for r in measured]
    cost = spent(release.ledger, DELTA)
    total = zcdp_rho(epsilon, DELTA) if calibration == "paper" else gaussian_mu(epsilon, DELTA) ** 2 / 2
    assert (cost.rho if calibration == "paper" else cost.mu**2 / 2) == pytest.approx(total, rel=1e-6)
    assert cost.epsilon <= epsilon * (1 + 1e-9)
    sigmas = [one["sigma"] for one in rounds[:-1]]
    assert all(later in (pytest.approx(one), pytest.approx(one / 2)) for one, later in pairwise(sigmas))


def test_a_huge_budget_gives_the_workload(small_table):
    for r, table in made(small_table, 1e6)[Marginals].tables.items():
        assert np.abs(table - small_table.marginal(r)).max() < 1


def test_the_answers_of_a_round_are_those_of_all_measurements_at_once():
    """What was measured: the least-squares estimate, on the simplex. What was not: a product."""
    sizes, rng = {"a": 3, "b": 4, "c": 2}, np.random.default_rng(0)
    joint = rng.dirichlet(np.ones(24)).reshape(3, 4, 2) * 500
    tables = {("a",): joint.sum(axis=(1, 2)), ("c",): joint.sum(axis=(0, 1)), ("a", "b"): joint.sum(axis=2)}
    measured = [Measurement(r, t + rng.normal(0, 3, t.shape), 3.0) for r, t in tables.items()]
    running = RunningAnswers(sizes)
    for one in measured:
        running.add(one)
    once, answers = Residuals.of(sizes, measured), {}
    for r in (r for k in range(1, 4) for r in combinations(sizes, k)):
        answers[r] = running.distribution(r, answers)
        assert answers[r].min() >= 0 and answers[r].sum() == pytest.approx(1)
    assert running.total == pytest.approx(once.total)
    for r in [("a",), ("b",), ("c",), ("a", "b")]:
        np.testing.assert_allclose(answers[r] * once.total, on_simplex(once.marginal(r), once.total))
    np.testing.assert_allclose(answers["b", "c"], np.outer(answers["b",], answers["c",]))
    # c was measured with neither a nor b: it is independent of both
    np.testing.assert_allclose(answers["a", "b", "c"], answers["a", "b"][:, :, None] * answers["c",], atol=0.01)


def test_cells_that_are_empty_in_a_part_are_empty_in_the_product():
    running = RunningAnswers({"a": 2, "b": 2, "c": 2})
    for r, values in {("a",): [0.0, 10.0], ("b",): [5.0, 5.0], ("c",): [10.0, 0.0]}.items():
        running.add(Measurement(r, np.array(values), 1.0))
    answers = {}
    for r in (r for k in range(1, 4) for r in combinations("abc", k)):
        answers[r] = running.distribution(r, answers)
    np.testing.assert_allclose(answers["a", "b", "c"], [[[0, 0], [0, 0]], [[0.5, 0], [0.5, 0]]])


def test_selection_pays_where_noise_is_large():
    """12 attributes, two of them dependent: mean errors over 10 seeds; independent noise has twice as much."""
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 6, (4000, 12))
    codes[:, 1] = (codes[:, 0] + rng.integers(0, 2, 4000)) % 6
    table = Table(Domain(tuple(Attribute.categorical(f"x{i}", range(6)) for i in range(12))), codes)

    def error(mechanism):
        runs = [mechanism(table, Budget(0.2, DELTA), np.random.default_rng(s))[Marginals].tables for s in range(10)]
        return np.mean([np.abs(t - table.marginal(r)).sum() for run in runs for r, t in run.items()])

    assert error(aim_grem) < 0.5 * error(gaussian_marginals)


def test_a_mixture_is_fitted_once_at_the_end(small_table):
    plain, fitted = (made(small_table, reconstruction=how) for how in ("simplex", "mixture"))
    assert plain.offers == ("marginals",) and set(fitted.offers) == {"marginals", "rows", "distribution"}
    assert plain.diagnostics["rounds"] == fitted.diagnostics["rounds"]  # the same noise, and the same loop
    assert len(fitted[SyntheticRows].table) == round(fitted[Distribution].model.total)
    assert fitted.diagnostics["consistent"] and not plain.diagnostics["consistent"]


def test_it_takes_less_than_a_second_for_15_attributes():
    """As many cells as Adult has; about 0.4 s on one core, so that a slow machine has ten times that."""
    sizes = [32, 9, 32, 16, 16, 7, 15, 6, 5, 2, 32, 32, 32, 42, 2]
    rng = np.random.default_rng(0)
    domain = Domain(tuple(Attribute.categorical(f"x{i}", range(m)) for i, m in enumerate(sizes)))
    table = Table(domain, np.stack([rng.binomial(m - 1, 0.3, 20_000) for m in sizes], axis=1))
    start = time.process_time()
    made(table, 10.0)
    assert time.process_time() - start < 5


@pytest.mark.parametrize("relation", RELATIONS)
def test_odd_tables_give_an_answer(relation):
    domain = Domain(
        (Attribute.categorical("one", "x"), Attribute.categorical("b", "uv"), Attribute.categorical("c", "uvw"))
    )
    for codes in (np.zeros((0, 3), int), np.zeros((50, 3), int)):
        for epsilon in (1e-4, 1.0, 1e6):
            for workload in (1, 2, 3):
                release = made(Table(domain, codes), epsilon, relation=relation, workload=workload)
                for clique, table in release[Marginals].tables.items():
                    assert table.shape == domain.shape(clique) and table.min() >= 0
                    assert table.sum() == pytest.approx(release.diagnostics["total"])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"reconstruction": "least_squares"}, "reconstruction must be simplex or mixture, not 'least_squares'"),
        ({"workload": [["age", "sex"], ["sex", "age"]]}, r"names the marginal \(age, sex\) 2 times"),
        ({"rounds": 0}, "rounds must be at least 1"),
        ({"rounds": 2}, "4 one-way marginals spend the whole budget; raise rounds above 4"),
        ({"alpha": 1.0}, "alpha must lie between"),
        ({"components": 0, "reconstruction": "mixture"}, "components must be at least 1"),
        ({"epsilon": math.inf}, "finite epsilon"),
    ],
)
def test_what_cannot_be_used_is_refused_before_any_noise(small_table, settings, message):
    settings = {"epsilon": 1.0, **settings}
    rng = np.random.default_rng(0)
    before = rng.bit_generator.state["state"]
    with pytest.raises(UserError, match=message):
        aim_grem(small_table, Budget(settings.pop("epsilon"), DELTA), rng, **settings)
    assert rng.bit_generator.state["state"] == before
