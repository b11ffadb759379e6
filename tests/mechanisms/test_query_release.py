"""What the methods of query release share: the mixture that they end with, and what all of them release."""

from itertools import combinations

import numpy as np
import pytest

from dpbench.config import compose, part_of
from dpbench.config.registry import declared
from dpbench.data.domain import Attribute, Domain
from dpbench.data.encode import Design, marginal
from dpbench.data.table import Table
from dpbench.errors import NoEstimateError
from dpbench.inference.product_queries import softmax
from dpbench.inference.query_workload import QueryWorkload
from dpbench.mechanisms.query_release import mixture_of
from dpbench.models.linear import linear_marginals, linear_rows
from dpbench.privacy.budget import Budget
from dpbench.releases import Marginals, SyntheticRows

SIZES = {"a": 2, "b": 3}
QUERIES = QueryWorkload(SIZES, (("a", "b"), ("b",)))
SMALL = {"rounds": 3, "components": 20, "latent": 3, "hidden": [5], "iterations": 10, "samples": 5, "pretraining": 1}
SMALL["grid"] = {"rounds": [2, 3]}


NAMES = sorted(name for name, node in declared("mechanism").items() if node.get("_relations_") == ["replace"])


@pytest.fixture(scope="module")
def parts():
    """All mechanisms of private query release, by their names."""
    made = compose([f"mechanism=[{','.join(NAMES)}]", "model=[linear_marginals,linear_rows]", "relation=replace"])
    return {part.name: part for part in made.mechanisms}


def test_logits_that_are_no_numbers_have_no_estimate():
    with pytest.raises(NoEstimateError, match="after 7 rounds"):
        mixture_of(SIZES, np.full((5, 4), np.nan), 10, 7)
    logits = np.random.default_rng(0).normal(size=(5, 4))
    model = mixture_of(SIZES, logits, 10, 7)
    expected = 10 * QUERIES.of_products(softmax(logits, [2, 3]).T)
    np.testing.assert_allclose(np.concatenate([t.ravel() for t in model.answer(QUERIES.cliques).values()]), expected)


def test_all_methods_are_there():
    assert set(NAMES) >= {
        "mwem",
        "pep",
        "gem",
        "rap",
        "rap_softmax",
        "dualquery",
        "fem",
        "pmw_pub",
        "pep_pub",
        "gem_pub",
    }


WITHOUT_HISTOGRAM = [
    "gem",
    "gem_small",
    "rap",
    "rap_softmax",
    "dualquery",
    "fem",
    "aim",
    "aim_grem",
    "aim_mixture",
    "mst",
    "mwem_pgm",
    "gaussian_marginals",
    "residual_planner",
    "residual_planner_mixture",
    "pmw_pub",
    "pep_pub",
    "gem_pub",
    "jam",
]
LONG = ("gem_small_search", "gem_small_best", "rap_search", "rap_softmax_search")


def marked(name):
    """The searches are one mechanism over several: some are slow."""
    return pytest.param(name, marks=[pytest.mark.slow] if name in LONG else [])


@pytest.mark.parametrize("name", [marked(name) for name in NAMES])
def test_every_release_holds_all_pairs_and_rows_that_regressions_read(name, parts, small_table):
    part = parts[name]
    parameters = {**part.parameters, **{name: value for name, value in SMALL.items() if name in part.parameters}}
    if "shared" in parameters:
        parameters["shared"] = {name: SMALL.get(name, value) for name, value in parameters["shared"].items()}
    public = {"public": small_table.take(np.arange(50))} if part.takes("public") else {}
    budget, rng = Budget(1.0, 1e-7, "replace"), np.random.default_rng(0)
    release = part.function(small_table, budget, rng, **parameters, **public)
    tables = release[Marginals].tables
    for one, two in combinations(small_table.domain.names, 2):
        pair = tables[one, two]
        assert pair.sum() == pytest.approx(len(small_table))
        for axis, other in ((1, one), (0, two)):  # what a regression takes for the attribute alone
            np.testing.assert_allclose(marginal(tables, (other,)), pair.sum(axis=axis))
    assert release[SyntheticRows].table.domain == small_table.domain
    design = Design(small_table.domain, "age")
    for fit in (linear_marginals(release, design=design), linear_rows(release, design=design, rng=rng)):
        assert np.isfinite(fit.coefficients).all() and len(fit.coefficients) == len(design.columns)


@pytest.mark.parametrize("name", WITHOUT_HISTOGRAM)
def test_the_methods_that_a_domain_too_large_for_a_histogram_is_left_to_run_on_it(name):
    """3^40 cells; records are searched for by integer programming."""
    domain = Domain(tuple(Attribute.categorical(f"x{j}", range(3)) for j in range(40)))
    table = Table(domain, np.random.default_rng(0).integers(0, 3, (50, 40)))
    part = part_of("mechanism", name)
    parameters = {**part.parameters, **{one: value for one, value in SMALL.items() if one in part.parameters}}
    parameters |= {"rounds": None} if part.takes("noise") and part.takes("rounds") else {}
    parameters |= {"workload": {"degree": 2, "marginals": 5}} if part.takes("workload") else {}
    public = {"public": table} if part.takes("public") else {}
    release = part.function(table, Budget(1.0, 1e-7, "replace"), np.random.default_rng(0), **parameters, **public)
    assert release.domain == domain and set(part.offers) <= set(release.offers)
    assert part.offers == ("marginals",) or release[SyntheticRows].table.domain == domain
