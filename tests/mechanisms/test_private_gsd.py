"""Private-GSD: its rows, its budget, and what it refuses. `tests/audit` replays it."""

import math
from itertools import combinations

import numpy as np
import pytest

from dpbench.errors import UserError
from dpbench.mechanisms.private_gsd import private_gsd
from dpbench.privacy.accounting import gaussian_mu, spent, zcdp_rho
from dpbench.privacy.budget import Budget
from dpbench.releases import SyntheticRows
from mechanisms.test_privbayes import chain

DELTA = 1e-5
SHORT = {"rows": 1000, "population": 200, "generations": 1000}


def made(table, epsilon=1.0, relation="add_remove", seed=0, **settings):
    return private_gsd(table, Budget(epsilon, DELTA, relation), np.random.default_rng(seed), **{**SHORT, **settings})


@pytest.mark.parametrize("relation", ["add_remove", "replace"])
def test_rows_have_the_pairs_where_there_is_budget_and_nearly_so_where_there_is_less(relation):
    table = chain()

    def worst(epsilon):
        rows = made(table, epsilon, relation)[SyntheticRows].table
        pairs = combinations(table.domain.names, 2)
        return max(np.abs(rows.marginal(r) / len(rows) - table.marginal(r) / len(table)).sum() for r in pairs)

    near = worst(1000.0)
    assert near < 0.08
    assert near < worst(0.05) < 1.0


@pytest.mark.parametrize("relation", ["add_remove", "replace"])
@pytest.mark.parametrize("calibration", ["paper", "tight"])
def test_all_marginals_share_the_budget_alike(small_table, relation, calibration):
    release = made(small_table, 0.7, relation, calibration=calibration, generations=5)
    events = release.ledger.events
    assert len(events) == 6 and len({one.label for one in events}) == 6
    assert {one.sensitivity for one in events} == {1.0 if relation == "add_remove" else math.sqrt(2)}
    paper = calibration == "paper"
    total = math.fsum(one.rho if paper else one.mu**2 for one in events)
    assert total == pytest.approx(zcdp_rho(0.7, DELTA) if paper else gaussian_mu(0.7, DELTA) ** 2)
    assert spent(release.ledger, DELTA).epsilon <= 0.7 * (1 + 1e-9)


def test_an_attribute_that_is_not_measured_is_uniform(small_table):
    rows = made(small_table, workload=[["age"]], rows=600)[SyntheticRows].table
    assert len(set(rows.marginal(("work",)).tolist())) == 1


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"population": 0}, "population must be at least 1"),
        ({"generations": 0}, "generations must be at least 1"),
        ({"rows": 0}, "rows must be at least 1"),
        ({"tolerance": 0.0}, "tolerance must be greater than 0"),
        ({"epsilon": math.inf}, "finite epsilon"),
        ({"calibration": "exact"}, "unknown calibration"),
        ({"noise": "pink"}, "unknown noise"),
    ],
)
def test_invalid_settings_are_named(small_table, settings, said):
    with pytest.raises(UserError, match=said):
        made(small_table, **settings)
