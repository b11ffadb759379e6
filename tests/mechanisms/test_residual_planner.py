"""ResidualPlanner: its plan is the least of both programmes, its noise what it states, and it spends the budget."""

import math
from itertools import combinations

import numpy as np
import pytest
from scipy.optimize import minimize

from dpbench.data.domain import Attribute, Domain
from dpbench.data.table import Table
from dpbench.errors import UserError
from dpbench.inference.residuals import Residuals, centring
from dpbench.mechanisms.gaussian_marginals import gaussian_marginals
from dpbench.mechanisms.residual_planner import planned, residual_planner
from dpbench.privacy.accounting import gaussian_mu, spent, zcdp_rho
from dpbench.privacy.budget import Budget
from dpbench.releases import Marginals

DELTA = 1e-5
RELATIONS = ["add_remove", "replace"]
SIZES = {"a": 2, "b": 3, "c": 7, "d": 4}
WORKLOADS = {"pairs": list(combinations(SIZES, 2)), "mixed": [("a",), ("a", "b", "c"), ("c", "d"), ("b",)]}


def made(table, epsilon=1.0, seed=0, relation="add_remove", **settings):
    return residual_planner(table, Budget(epsilon, DELTA, relation), np.random.default_rng(seed), **settings)


def aim_of(objective, cliques, weights, plan):
    """What the plan is to minimise."""
    of_cell = [Residuals(SIZES, {}, plan).variance(r) for r in cliques]
    cells = [math.prod(SIZES[name] for name in r) if objective == "sum_of_variances" else 1 for r in cliques]
    terms = [w * c * v for w, c, v in zip(weights, cells, of_cell, strict=True)]
    return sum(terms) if objective == "sum_of_variances" else max(terms)


@pytest.mark.parametrize("objective", ["sum_of_variances", "max_variance"])
@pytest.mark.parametrize("cliques", WORKLOADS.values(), ids=WORKLOADS)
def test_no_other_plan_of_the_same_cost_is_better(objective, cliques):
    """Against a solver of the programme itself, over the logarithms of all variances, where it is convex."""
    weights = np.random.default_rng(0).uniform(0.5, 4, len(cliques))
    plan = planned(SIZES, cliques, dict(zip(cliques, weights, strict=True)), objective)
    kept = list(plan)
    p = np.array([centring(SIZES, r) for r in kept])
    assert p @ (1 / np.array(list(plan.values()))) == pytest.approx(1)

    def of(x):
        return dict(zip(kept, np.exp(x[:-1]) * (p @ np.exp(-x[:-1])), strict=True))  # scaled to the same cost

    def slack(x):
        terms = [aim_of(objective, [r], [w], of(x)) for r, w in zip(cliques, weights, strict=True)]
        return x[-1] - np.log(terms if objective == "max_variance" else [sum(terms)])

    start = np.append(np.zeros(len(kept)), 9.0)
    best = minimize(lambda x: x[-1], start, constraints={"type": "ineq", "fun": slack}, method="SLSQP", tol=1e-10)
    found = aim_of(objective, cliques, weights, plan)
    assert best.success and found == pytest.approx(math.exp(best.fun), rel=2e-4)


def test_a_marginal_alone_gets_independent_noise():
    """Of one marginal nothing is gained by its parts: each cell has the noise of the Gaussian mechanism."""
    for objective in ("sum_of_variances", "max_variance"):
        plan = planned(SIZES, [("b", "c")], {("b", "c"): 1.0}, objective)
        assert Residuals(SIZES, {}, plan).variance(("b", "c")) == pytest.approx(1.0)


@pytest.mark.parametrize("noise", ["continuous", "discrete"])
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("calibration", ["tight", "paper"])
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 100.0])
def test_the_whole_budget_is_spent_in_one_event(small_table, epsilon, calibration, relation, noise):
    release = made(small_table, epsilon, relation=relation, calibration=calibration, noise=noise)
    (event,) = release.ledger.events
    total = zcdp_rho(epsilon, DELTA) if calibration == "paper" else gaussian_mu(epsilon, DELTA) ** 2 / 2
    assert event.rho == pytest.approx(total, rel=1e-6)
    assert spent(release.ledger, DELTA).epsilon <= epsilon * (1 + 1e-9)
    if relation == "add_remove":  # and the paper's cost of the noise that is stated is that, but for rounding
        sizes = small_table.domain.sizes
        cost = sum(centring(sizes, r) / sd**2 for r, sd in release[Marginals].noise)
        assert cost == pytest.approx(2 * total, rel=1e-6)


@pytest.mark.parametrize("relation", RELATIONS)
def test_cells_have_the_variance_that_is_stated(small_table, relation):
    """300 runs: the mean of at least 1,800 squares is within 20% of its value but for odds below 1e-4."""
    runs = [made(small_table, 1.0, seed, relation, reconstruction="unbiased") for seed in range(300)]
    stated = Residuals(
        small_table.domain.sizes, {}, {r: sd**2 for r, sd in runs[0][Marginals].noise} | _public(relation)
    )
    for r in runs[0][Marginals].tables:
        gaps = np.array([run[Marginals].tables[r] - small_table.marginal(r) for run in runs])
        assert np.mean(gaps**2) == pytest.approx(stated.variance(r), rel=0.2)
        assert np.abs(gaps.mean(axis=0)).max() < 5 * math.sqrt(stated.variance(r) / len(runs))
    assert runs[0].diagnostics["largest_sd"] == pytest.approx(
        max(math.sqrt(stated.variance(r)) for r in runs[0][Marginals].tables)
    )


def _public(relation):
    return {(): 0.0} if relation == "replace" else {}


@pytest.mark.parametrize("relation", RELATIONS)
def test_its_errors_are_below_those_of_independent_noise(small_table, relation):
    """Squared errors of unbiased tables over 20 seeds, about a half: below 0.75 but for odds of 1e-6."""

    def error(mechanism):
        budget = Budget(1.0, DELTA, relation)
        runs = [mechanism(small_table, budget, np.random.default_rng(s), reconstruction="unbiased") for s in range(20)]
        return np.mean(
            [np.sum((t - small_table.marginal(r)) ** 2) for x in runs for r, t in x[Marginals].tables.items()]
        )

    assert error(residual_planner) < 0.75 * error(gaussian_marginals)


def test_the_least_maximum_is_below_that_of_the_least_sum(small_table):
    one, two = (made(small_table, objective=o).diagnostics for o in ("sum_of_variances", "max_variance"))
    assert two["largest_sd"] < 0.95 * one["largest_sd"]


def test_a_weighted_marginal_has_less_noise(small_table):
    names = small_table.domain.names
    for objective in ("sum_of_variances", "max_variance"):
        sds = []
        for weight in (1.0, 100.0):
            release = made(small_table, objective=objective, weights=[1, 1, 1, 1, 1, weight])
            noise = {r: sd**2 for r, sd in release[Marginals].noise}
            sds.append(Residuals(small_table.domain.sizes, {}, noise).variance((names[2], names[3])))
        assert sds[1] < 0.5 * sds[0]


def test_a_huge_budget_gives_the_marginals_and_n_is_used_only_where_it_is_public(small_table):
    for relation in RELATIONS:
        for r, table in made(small_table, 1e6, relation=relation)[Marginals].tables.items():
            assert np.abs(table - small_table.marginal(r)).max() < 1
        totals = {made(small_table, 0.1, s, relation).diagnostics["total"] for s in range(20)}
        assert (totals == {3000.0}) == (relation == "replace")
        assert len(totals) == (1 if relation == "replace" else 20)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("how", ["unbiased", "simplex", "least_squares", "native", "mixture"])
def test_an_attribute_of_one_level_adds_nothing_and_harms_nothing(relation, how):
    domain = Domain((Attribute.categorical("one", "x"), Attribute.categorical("b", "uvw")))
    table = Table(domain, np.stack([np.zeros(90, int), np.arange(90) % 3], axis=1))
    release = made(table, 3.0, relation=relation, workload=[["one"], ["b"], ["one", "b"]], reconstruction=how)
    assert {r for r, _ in release[Marginals].noise} == ({(), ("b",)} if relation == "add_remove" else {("b",)})
    tables = release[Marginals].tables
    assert tables["one", "b"].shape == (1, 3)
    assert tables["one", "b"].sum() == pytest.approx(tables["one",].sum(), rel=1e-6)
    alone = Table(domain.project(["one"]), np.zeros((90, 1), int))
    free = made(alone, relation=relation, workload=1, reconstruction=how)
    assert len(free.ledger.events) == (1 if relation == "add_remove" else 0)


def test_a_domain_of_52_attributes_takes_seconds():
    """1,326 pairs of a domain whose histogram no memory holds."""
    rng = np.random.default_rng(0)
    domain = Domain(tuple(Attribute.categorical(f"x{i}", range(2 + i % 9)) for i in range(52)))
    table = Table(domain, np.stack([rng.integers(0, 2 + i % 9, 2000) for i in range(52)], axis=1))
    for relation in RELATIONS:
        release = made(table, relation=relation)
        assert len(release[Marginals].tables) == 1326
        assert spent(release.ledger, DELTA).epsilon == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"workload": [["age", "sex"], ["work"], ["sex", "age"]]},
            r"names the marginal \(age, sex\) 2 times; .*weights",
        ),
        ({"weights": [1.0, 2.0]}, "one finite number for each of the 6 marginals"),
        ({"objective": "max_varianc"}, "unknown objective 'max_varianc'; did you mean 'max_variance'"),
        ({"n_public": True}, "n_public is true, but with relation=add_remove"),
        ({"n_public": False, "relation": "replace"}, "n_public is false, but relation=replace .* leave n_public out"),
        ({"reconstruction": "simplx"}, "unknown reconstruction 'simplx'"),
        ({"epsilon": math.inf}, "finite epsilon"),
    ],
)
def test_what_cannot_be_used_is_refused_before_any_noise(small_table, settings, message):
    settings = {"epsilon": 1.0, "relation": "add_remove", **settings}
    budget, rng = Budget(settings.pop("epsilon"), DELTA, settings.pop("relation")), np.random.default_rng(0)
    before = rng.bit_generator.state["state"]
    with pytest.raises(UserError, match=message):
        residual_planner(small_table, budget, rng, **settings)
    assert rng.bit_generator.state["state"] == before
