"""Independent noise on marginals: its scale under both relations, both distributions, weights, and what it refuses."""

import math
from itertools import combinations

import numpy as np
import pytest

from dpbench.data.domain import Attribute, Domain
from dpbench.data.table import Table
from dpbench.errors import UserError
from dpbench.mechanisms.gaussian_marginals import gaussian_marginals
from dpbench.privacy.accounting import gaussian_mu, spent, zcdp_rho
from dpbench.privacy.budget import Budget
from dpbench.releases import Marginals

DELTA = 1e-5
RELATIONS = ["add_remove", "replace"]


def made(table, epsilon=1.0, seed=0, relation="add_remove", **settings):
    return gaussian_marginals(table, Budget(epsilon, DELTA, relation), np.random.default_rng(seed), **settings)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("calibration", ["tight", "paper"])
@pytest.mark.parametrize("epsilon", [0.01, 0.3, 3.0])
def test_the_whole_budget_is_spent_on_noise_of_one_scale(small_table, epsilon, calibration, relation):
    release = made(small_table, epsilon, relation=relation, calibration=calibration)
    total = zcdp_rho(epsilon, DELTA) if calibration == "paper" else gaussian_mu(epsilon, DELTA) ** 2 / 2
    l2 = 1 if relation == "add_remove" else math.sqrt(2)
    assert [event.sensitivity for event in release.ledger.events] == [l2] * 6
    sigma = l2 * math.sqrt(6 / (2 * total))
    assert release[Marginals].noise == tuple(
        (r, pytest.approx(sigma)) for r in combinations(small_table.domain.names, 2)
    )
    cost = spent(release.ledger, DELTA)
    assert (cost.rho if calibration == "paper" else cost.mu**2 / 2) == pytest.approx(total)
    assert cost.epsilon <= epsilon * (1 + 1e-9)


def test_weights_lower_the_weighted_sum_of_variances(small_table):
    """sigma^2 is proportional to 1 / sqrt(w): no other split of the budget does better, one way or the other."""
    weights = [1.0, 16.0, 1.0, 4.0, 1.0, 1.0]
    sds = np.array([sd for _, sd in made(small_table, weights=weights)[Marginals].noise])
    assert sds / sds[0] == pytest.approx([1, 0.5, 1, 2**-0.5, 1, 1])
    even = np.array([sd for _, sd in made(small_table)[Marginals].noise])
    assert np.sum(1 / sds**2) == pytest.approx(np.sum(1 / even**2))
    assert weights @ sds**2 < weights @ even**2


@pytest.mark.parametrize("relation", RELATIONS)
def test_laplace_noise_is_pure_dp(small_table, relation):
    release = made(small_table, 0.7, relation=relation, distribution="laplace", weights=[1, 8, 1, 1, 1, 1])
    assert {event.kind for event in release.ledger.events} == {"laplace"}
    assert {event.sensitivity for event in release.ledger.events} == {1.0 if relation == "add_remove" else 2.0}
    assert sum(1 / event.multiplier for event in release.ledger.events) == pytest.approx(0.7)
    scales = [event.multiplier for event in release.ledger.events]
    assert scales[0] == pytest.approx(2 * scales[1])
    assert spent(release.ledger, 1e-12).epsilon <= 0.7 * (1 + 1e-9)
    assert release[Marginals].noise == ()  # it has another distribution


@pytest.mark.parametrize(("distribution", "seeds"), [("gaussian", 200), ("laplace", 200)])
def test_the_noise_has_the_scale_that_is_stated(small_table, distribution, seeds):
    """200 runs of 12 cells: the mean of 2,400 squares is within 15% of its value but for odds below 1e-4."""
    r = ("age", "sex")
    runs = [
        made(small_table, 1.0, s, distribution=distribution, workload=[r], reconstruction="unbiased")
        for s in range(seeds)
    ]
    gaps = np.array([run[Marginals].tables[r] - small_table.marginal(r) for run in runs])
    sd = (
        runs[0][Marginals].noise[0][1]
        if distribution == "gaussian"
        else math.sqrt(2) * runs[0].ledger.events[0].multiplier
    )
    assert np.mean(gaps**2) == pytest.approx(sd**2, rel=0.15)
    assert abs(gaps.mean()) < 5 * sd / math.sqrt(gaps.size)


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
    """Its own marginal is n. Where n is public that is free, and needs no noise."""
    domain = Domain((Attribute.categorical("one", "x"), Attribute.categorical("b", "uvw")))
    table = Table(domain, np.stack([np.zeros(90, int), np.arange(90) % 3], axis=1))
    release = made(table, 3.0, relation=relation, workload=[["one"], ["b"], ["one", "b"]], reconstruction=how)
    tables = release[Marginals].tables
    assert len(release.ledger.events) == (3 if relation == "add_remove" else 2)
    assert tables["one", "b"].shape == (1, 3) and all(np.isfinite(t).all() for t in tables.values())
    if relation == "replace":
        assert tables["one",] == pytest.approx([90.0])
        alone = Table(domain.project(["one"]), np.zeros((90, 1), int))
        free = made(alone, relation=relation, workload=1, reconstruction=how)
        assert free.ledger.events == () and free[Marginals].tables["one",] == pytest.approx([90.0])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"workload": [["age", "sex"], ["work"], ["sex", "age"]]},
            r"names the marginal \(age, sex\) 2 times; .*weights",
        ),
        ({"weights": [1.0, 2.0]}, "one finite number for each of the 6 marginals"),
        ({"weights": [1, 1, 0, 1, 1, 1]}, r"the weight of \(age, grade\) must be greater than 0, not 0"),
        ({"distribution": "laplac"}, "unknown distribution 'laplac'; did you mean 'laplace'"),
        ({"distribution": "laplace", "noise": "discrete"}, "distribution=laplace has no discrete noise"),
        ({"n_public": True}, "n_public is true, but with relation=add_remove"),
        ({"n_public": False, "relation": "replace"}, "n_public is false, but relation=replace .* leave n_public out"),
        ({"reconstruction": "simplx"}, "unknown reconstruction 'simplx'; did you mean 'simplex'"),
        (
            {"reconstruction": "native", "max_model_mb": 1e-4},
            "the junction tree of the whole workload .*mixture has none",
        ),
        ({"reconstruction": "mixture", "components": 0}, "components must be at least 1"),
        ({"iterations": 0}, "iterations must be at least 1"),
        ({"epsilon": math.inf}, "finite epsilon"),
        ({"epsilon": math.inf, "distribution": "laplace"}, "finite epsilon"),
        ({"workload": 9}, "k between 1 and 4"),
    ],
)
def test_what_cannot_be_used_is_refused_before_any_noise(small_table, settings, message):
    settings = {"epsilon": 1.0, "relation": "add_remove", **settings}
    budget, rng = Budget(settings.pop("epsilon"), DELTA, settings.pop("relation")), np.random.default_rng(0)
    before = rng.bit_generator.state["state"]
    with pytest.raises(UserError, match=message):
        gaussian_marginals(small_table, budget, rng, **settings)
    assert rng.bit_generator.state["state"] == before


def test_a_workload_that_no_memory_holds_is_refused_with_its_size_and_what_would_fit(monkeypatch):
    monkeypatch.setenv("DPBENCH_MEMORY_MB", "100")
    domain = Domain(tuple(Attribute.categorical(f"x{i}", range(40)) for i in range(52)))
    table = Table(domain, np.zeros((5, 52), int))
    words = r"marginals have 1.08e\+04 MB, .* the limit is 100 MB: the 40 smallest of 22,100 would fit"
    with pytest.raises(UserError, match=words):
        made(table, workload=3)
    with pytest.raises(
        UserError, match=r"752,538,150 marginals of 8 of 52 .* degree 4 would fit, with 270,725 marginals"
    ):
        made(table, workload=8)
