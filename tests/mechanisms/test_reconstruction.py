"""Reconstruction as one interface: of noisy marginals and of noisy residuals, by each way, for each model."""

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpbench.config import part_of
from dpbench.data.domain import Attribute, Domain
from dpbench.data.encode import Design
from dpbench.data.table import Table
from dpbench.inference.residuals import on_simplex
from dpbench.mechanisms.fitting import ENGINES
from dpbench.mechanisms.gaussian_marginals import gaussian_marginals
from dpbench.mechanisms.reconstruction import ANSWERS
from dpbench.mechanisms.residual_planner import residual_planner
from dpbench.models.linear import linear_marginals, linear_rows
from dpbench.models.logistic import logistic_marginals
from dpbench.privacy.budget import Budget
from dpbench.releases import Distribution, Marginals, Release, SyntheticRows, check_release
from dpbench.releases.release_type import answers_of

MECHANISMS = [gaussian_marginals, residual_planner]
WAYS = [*ANSWERS, *(name for name in ENGINES if name != "mbi")]


def made(mechanism, table, epsilon=1.0, seed=0, relation="add_remove", **settings):
    return mechanism(table, Budget(epsilon, 1e-5, relation), np.random.default_rng(seed), **settings)


@given(st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=30), st.floats(0.1, 1e4))
def test_the_projection_is_the_nearest_table_of_the_simplex(cells, total):
    """By its conditions: what is kept was lowered by one amount, and what is 0 would fall below it."""
    given_cells = np.array(cells)
    found = on_simplex(given_cells, total)
    assert found.min() >= 0 and found.sum() == pytest.approx(total)
    lowered = (given_cells - found)[found > 0]
    assert np.ptp(lowered) < 1e-6 * (1 + np.abs(given_cells).max() + total)
    assert all(given_cells[found == 0] <= lowered[0] + 1e-6 * (1 + total))


def agree(tables):
    """The largest distance of two marginals of one attribute that pairs give."""
    singles = {}
    for (one, two), table in tables.items():
        singles.setdefault(one, []).append(table.sum(axis=1))
        singles.setdefault(two, []).append(table.sum(axis=0))
    return max(np.abs(np.ptp(np.array(found), axis=0)).max() for found in singles.values())


@pytest.mark.parametrize("relation", ["add_remove", "replace"])
@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("how", WAYS)
def test_what_each_way_keeps_and_what_the_release_says_of_it(small_table, mechanism, how, relation):
    release = check_release(made(mechanism, small_table, 0.05, relation=relation, reconstruction=how))
    tables, said = release[Marginals].tables, release.diagnostics
    assert list(tables) == list(combinations(small_table.domain.names, 2))
    assert said["reconstruction"] == how
    assert said["consistent"] == (agree(tables) < 1e-3)
    assert (min(t.min() for t in tables.values()) >= -said.get("most_negative", 0.0)) == (how != "unbiased")
    if how != "unbiased" or mechanism is residual_planner:
        assert all(t.sum() == pytest.approx(said["total"], rel=1e-2) for t in tables.values())
    assert (release.get(Distribution) is not None) == (release.get(SyntheticRows) is not None) == (how in ENGINES)
    back = Release.from_parts(*release.to_parts())
    assert all(np.array_equal(back[Marginals].tables[r], t) for r, t in tables.items())


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_consistency_and_non_negativity_lower_the_error_where_noise_is_large(small_table, mechanism):
    """Mean squared errors over 20 seeds at epsilon 0.05; they differ by factors."""

    def error(how):
        runs = [made(mechanism, small_table, 0.05, seed, reconstruction=how) for seed in range(20)]
        return np.mean(
            [np.sum((t - small_table.marginal(r)) ** 2) for x in runs for r, t in x[Marginals].tables.items()]
        )

    errors = {how: error(how) for how in ("unbiased", "simplex", "least_squares")}
    assert errors["simplex"] < 0.9 * errors["unbiased"]
    assert errors["least_squares"] < 0.9 * errors["unbiased"]


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("how", WAYS)
def test_dd_ssp_takes_every_reconstruction(small_table, mechanism, how):
    """At a huge epsilon each gives the coefficients of the rows, the mixture those of a model that is near them."""
    design = Design(small_table.domain, "grade")
    release = made(mechanism, small_table, 1e5, reconstruction=how, tolerance=1e-3 if how == "mixture" else None)
    exact = linear_marginals(
        Release(release.domain, release.budget, release.ledger, (release[Marginals].exact(small_table, design),)),
        design=design,
    )
    near = 0.1 if how == "mixture" else 1e-2
    np.testing.assert_allclose(linear_marginals(release, design=design).coefficients, exact.coefficients, atol=near)
    if how in ENGINES:
        fit = linear_rows(release, design=design, rng=np.random.default_rng(0))
        np.testing.assert_allclose(fit.coefficients, exact.coefficients, atol=max(near, 0.05))


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_classifier_takes_the_marginals_of_pairs(mechanism):
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 4, 4000), rng.integers(0, 2, 4000)
    y = (rng.random(4000) < 1 / (1 + np.exp(-(1.0 * a - 1.5 + b)))).astype(int)
    domain = Domain(
        (Attribute.discrete("a", range(4)), Attribute.categorical("b", "uv"), Attribute.categorical("y", "nm"))
    )
    table = Table(domain, np.stack([a, b, y], axis=1))
    design = Design(domain, "y")
    X, labels = design.encode(table)
    for how in ANSWERS:
        fit = logistic_marginals(made(mechanism, table, 5.0, reconstruction=how), design=design)
        assert np.mean((fit.predict(X) > 0.5) == (labels > 0)) > 0.7


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_queries_of_larger_marginals_are_answered_by_the_mixture(small_table, mechanism):
    """Asked for pairs, a release with a distribution answers triples too."""
    release = made(mechanism, small_table, 100.0, reconstruction="mixture")
    triples = tuple(combinations(small_table.domain.names, 3))
    true = np.concatenate([small_table.marginal(r).ravel() for r in triples]) / len(small_table)
    assert np.abs(answers_of(release, triples, len(small_table)) - true).max() < 0.02


def test_the_mixture_of_conf_offers_rows():
    part = part_of("mechanism", "residual_planner_mixture")
    assert set(part.offers) == {"marginals", "rows", "distribution"}
    assert part.parameters["reconstruction"] == "mixture"


def test_a_number_of_rows_can_be_asked_for_and_does_not_change_the_noise(small_table):
    asked, drawn = (made(residual_planner, small_table, reconstruction="mixture", rows=n) for n in (77, None))
    assert len(asked[SyntheticRows].table) == 77
    assert len(drawn[SyntheticRows].table) == round(drawn.diagnostics["total"])
    assert all(np.array_equal(t, drawn[Marginals].tables[r]) for r, t in asked[Marginals].tables.items())


def test_public_n_is_the_total_of_every_engine(small_table):
    for mechanism in MECHANISMS:
        for how in ("native", "mixture"):
            release = made(mechanism, small_table, 0.1, relation="replace", reconstruction=how)
            assert release.diagnostics["total"] == pytest.approx(3000, abs=1e-3)
            assert math.isclose(release[Distribution].model.total, 3000, abs_tol=1e-3)
