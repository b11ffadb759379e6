"""PACE-GGM: what it spends, its limit without noise, the entries that it need not measure, and where it pays."""

import numpy as np
import pytest

from dpbench.data.domain import Attribute, Domain
from dpbench.data.encode import Design
from dpbench.data.table import Table
from dpbench.errors import UserError
from dpbench.mechanisms.adassp import adassp
from dpbench.mechanisms.pace_ggm import pace_ggm
from dpbench.models.linear import linear_statistics
from dpbench.privacy.accounting import gaussian_mu, spent
from dpbench.privacy.budget import Budget
from dpbench.releases import SufficientStatistics

DELTA = 1e-6


@pytest.fixture
def design(small_domain):
    return Design(small_domain, "grade")


def run(table, design, epsilon=1.0, seed=0, relation="add_remove", **parameters):
    return pace_ggm(table, Budget(epsilon, DELTA, relation), np.random.default_rng(seed), design=design, **parameters)


def wide(n=20_000, p=30, seed=0):
    """Independent features, five of which matter."""
    rng = np.random.default_rng(seed)
    X = np.clip(rng.normal(size=(n, p)) / 4, -1, 1)
    y = np.clip(X[:, :5].sum(axis=1) / 3 + rng.normal(0, 0.1, n), -1, 1)
    numbers = {**{f"x{j}": X[:, j] for j in range(p)}, "y": y}
    domain = Domain(tuple(Attribute.binned(name, -1, 1, 10) for name in numbers))
    codes = np.stack([domain[name].code(values) for name, values in numbers.items()], axis=1)
    return Table(domain, codes, numbers), Design(domain, "y", exact=True)


@pytest.mark.parametrize("relation", ["add_remove", "replace"])
def test_all_of_the_budget_is_spent_and_no_more(small_table, design, relation):
    cost = spent(run(small_table, design, relation=relation).ledger, DELTA)
    assert cost.mu == pytest.approx(gaussian_mu(1.0, DELTA), rel=1e-9)
    assert cost.epsilon <= 1 + 1e-9


@pytest.mark.parametrize("relation", ["add_remove", "replace"])
def test_with_a_large_budget_it_is_least_squares(small_table, design, relation):
    release = run(small_table, design, 1e5, relation=relation, rounds=2000)
    exact = release[SufficientStatistics].exact(small_table, design)
    assert release[SufficientStatistics].xtx == pytest.approx(exact.xtx, abs=5)
    assert release[SufficientStatistics].xty == pytest.approx(exact.xty, abs=5)


def test_features_of_one_attribute_never_meet_and_are_not_measured(small_table, design):
    """work=public and work=none."""
    release = run(small_table, design)
    assert design.columns[1:3] == ("work=public", "work=none")
    assert abs(release[SufficientStatistics].xtx[1, 2]) < 1
    assert [1, 2] not in release.diagnostics["entries"]
    assert "entry 1,2" not in {event.label for event in release.ledger.events}


def test_of_many_features_of_which_few_matter_it_keeps_more_than_adassp():
    """The paper's claim, for high dimensions and moderate budgets. It held for 18 of 20 seeds, so that three of five
    fail with a probability of about 1 %; these are fixed."""
    ahead = 0
    for seed in range(5):
        table, design = wide(seed=seed)
        X, y = design.encode(table)
        kept = []
        for mechanism in (pace_ggm, adassp):
            release = mechanism(table, Budget(1.0, DELTA), np.random.default_rng(seed), design=design)
            errors = y - X @ linear_statistics(release, design=design).coefficients
            kept.append(1 - np.mean(errors**2) / np.var(y))
        ahead += kept[0] > kept[1] + 0.1
    assert ahead >= 3


def test_too_few_rounds_for_the_diagonal_are_refused(small_table, design):
    with pytest.raises(UserError, match="6 entries of the diagonal spend the whole budget; raise rounds above 6"):
        run(small_table, design, rounds=2)
