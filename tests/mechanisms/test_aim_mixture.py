"""AIM with a mixture for its model: its budget, its limit, and that no junction tree bounds what it measures."""

import numpy as np
import pytest

from dpbench.data.domain import Attribute, Domain
from dpbench.data.table import Table
from dpbench.errors import UserError
from dpbench.inference.trees import model_mb
from dpbench.mechanisms.aim import aim
from dpbench.privacy.accounting import gaussian_mu, spent
from dpbench.privacy.budget import Budget
from dpbench.releases import Marginals, SyntheticRows

DELTA = 1e-5


def chain(n, d, size):
    """Each attribute follows the one before it, and the last the first: a cycle of dependences."""
    rng = np.random.default_rng(1)
    codes = [rng.integers(0, size, n)]
    for _ in range(d - 1):
        codes.append((codes[-1] + (rng.random(n) < 0.3)) % size)
    return Table(Domain(tuple(Attribute.categorical(f"x{i}", range(size)) for i in range(d))), np.stack(codes, axis=1))


def error(table, release):
    return float(
        np.mean([np.abs(t - table.marginal(c)).sum() / len(table) for c, t in release[Marginals].tables.items()])
    )


@pytest.mark.slow
def test_a_large_budget_answers_every_pair(small_table):
    """Within 1% of the rows; independent attributes would miss by 15% of them."""
    release = aim(small_table, Budget(20.0, DELTA), np.random.default_rng(0), engine="mixture")
    assert error(small_table, release) < 0.01
    alone = aim(small_table, Budget(20.0, DELTA), np.random.default_rng(0), engine="mixture", workload=1)
    ones = {c: t / t.sum() for c, t in alone[Marginals].tables.items()}
    independent = [
        np.abs(np.outer(ones[a,], ones[b,]) * len(small_table) - small_table.marginal((a, b))).sum()
        for a, b in release[Marginals].tables
    ]
    assert np.mean(independent) / len(small_table) > 0.15
    rows = [
        np.abs(release[SyntheticRows].table.marginal(c) - small_table.marginal(c)).sum()
        for c in release[Marginals].tables
    ]
    assert np.mean(rows) < 0.02 * len(small_table)


def test_the_budget_is_spent_as_with_any_engine(small_table):
    release = aim(small_table, Budget(0.5, DELTA), np.random.default_rng(1), engine="mixture")
    cost = spent(release.ledger, DELTA)
    assert cost.mu == pytest.approx(gaussian_mu(0.5, DELTA), rel=1e-9)
    assert sum(event.mu**2 for event in release.ledger.events) == pytest.approx(cost.mu**2, rel=1e-9)
    assert cost.epsilon <= 0.5 * (1 + 1e-9)
    assert release.diagnostics["engine"] == "mixture"
    for table in release[Marginals].tables.values():
        assert table.sum() == pytest.approx(release.diagnostics["total"])
        assert table.min() >= 0


@pytest.mark.slow
def test_the_limit_on_the_junction_tree_does_not_bind():
    """Six attributes of 8 levels in a ring: a tree of its pairs is over the limit, ten products are not."""
    table, limit = chain(4000, 6, 8), {"max_model_mb": 500 * 8 / 2**20, "iterations": 100}
    tree = aim(table, Budget(5.0, DELTA), np.random.default_rng(0), **limit)
    mixture = aim(table, Budget(5.0, DELTA), np.random.default_rng(0), **limit, engine="mixture", components=10)
    trees = [
        model_mb(table.domain.sizes, {tuple(one["clique"]) for one in release.diagnostics["rounds"]})
        for release in (tree, mixture)
    ]
    assert trees[0] <= limit["max_model_mb"] < trees[1]
    assert mixture.diagnostics["model_mb"] == 10 * 48 * 8 / 2**20
    assert tree.diagnostics["model_mb"] <= limit["max_model_mb"]


def test_same_seed_same_release(small_table):
    a, b = (aim(small_table, Budget(1.0), np.random.default_rng(2), engine="mixture") for _ in range(2))
    assert all(a[Marginals].tables[c].tobytes() == b[Marginals].tables[c].tobytes() for c in a[Marginals].tables)
    assert a[SyntheticRows].table.codes.tobytes() == b[SyntheticRows].table.codes.tobytes()


def test_what_cannot_begin_is_refused_before_any_noise(small_table):
    rng = np.random.default_rng(0)
    before = rng.bit_generator.state
    cases = [
        ({"engine": "mixture", "components": 900, "max_model_mb": 0.1}, "alone has 0.11 MB, the limit is 0.1 MB"),
        ({"engine": "mixture", "max_model_mb": 0.01}, "alone has 0.0122 MB, the limit is 0.01 MB"),
        ({"engine": "mixture", "components": 0}, "components must be at least 1"),
        ({"components": 10}, "engine 'native' has no components"),
        ({"engine": "mixtures"}, "unknown engine 'mixtures'"),
    ]
    for parameters, message in cases:
        with pytest.raises(UserError, match=message):
            aim(small_table, Budget(1.0), rng, **parameters)
    assert rng.bit_generator.state == before
