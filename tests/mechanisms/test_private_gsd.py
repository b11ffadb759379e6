"""Private-GSD: its rows, its budget, and what it refuses. `tests/audit` replays it."""

import math
from itertools import combinations

import numpy as np
import pytest

from dpbench.data.table import Table
from dpbench.errors import UserError
from dpbench.mechanisms.private_gsd import private_gsd
from dpbench.privacy.accounting import gaussian_mu, spent, zcdp_rho
from dpbench.privacy.budget import Budget
from dpbench.releases import SyntheticRows
from mechanisms.test_privbayes import chain
from mechanisms.test_rap_pp import MIXED, mixed

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


def test_almost_without_noise_numbers_are_those_of_the_rows_to_less_than_a_bin():
    """Bins are 25 wide. A third of the heights are 150.3; quantiles are found to 0.5, means by class and the
    correlation with weight, 0.87, as 32 intervals show them.
    """
    table = mixed()
    height = np.where(np.arange(len(table)) % 3, table.numbers["height"], 150.3)
    table = Table(
        MIXED,
        np.column_stack([MIXED["height"].code(height), table.codes[:, 1:]]),
        {**table.numbers, "height": height},
    )
    rows = made(table, 1e6, levels=[1, 3, 5], alone=[7, 10], generations=3000)[SyntheticRows].table
    found = rows.numbers["height"]
    share = np.mean(np.abs(found - 150.3) < 0.1)
    assert share == pytest.approx(np.mean(np.abs(height - 150.3) < 0.1), abs=0.01) and share > 1 / 3
    q = np.linspace(0.05, 0.95, 19)
    assert np.quantile(found, q) == pytest.approx(np.quantile(height, q), abs=0.5)
    for level in (0, 1):
        one, other = (some.numbers["height"][some.column("class") == level] for some in (table, rows))
        assert other.mean() == pytest.approx(one.mean(), abs=1)
    one, other = (np.corrcoef(some.numbers["height"], some.numbers["weight"])[0, 1] for some in (table, rows))
    assert other == pytest.approx(one, abs=0.05)
    assert np.array_equal(rows.column("height"), MIXED["height"].code(found))


@pytest.mark.parametrize("relation", ["add_remove", "replace"])
def test_each_level_of_a_marginal_is_measured_with_the_same_part_of_the_budget(relation):
    """A record is in one cell of each: 5 pairs with numbers at two levels, 1 without, and 2 numbers at one more."""
    release = made(mixed(400), 0.7, relation, levels=[2, 4], alone=[9], generations=5)
    events = release.ledger.events
    assert [one.label for one in events][:3] == [
        "marginal height in 4,class",
        "marginal height in 16,class",
        "marginal height in 4,weight in 4",
    ]
    assert len(events) == 13 and {one.sensitivity for one in events} == {1.0 if relation == "add_remove" else 2**0.5}
    assert math.fsum(one.mu**2 for one in events) == pytest.approx(gaussian_mu(0.7, DELTA) ** 2)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"population": 0}, "population must be at least 1"),
        ({"generations": 0}, "generations must be at least 1"),
        ({"rows": 0}, "rows must be at least 1"),
        ({"tolerance": 0.0}, "tolerance must be greater than 0"),
        ({"levels": [0]}, "levels must be different whole numbers"),
        ({"alone": [5]}, "need levels"),
        ({"epsilon": math.inf}, "finite epsilon"),
        ({"calibration": "exact"}, "unknown calibration"),
        ({"noise": "pink"}, "unknown noise"),
    ],
)
def test_invalid_settings_are_named(small_table, settings, said):
    with pytest.raises(UserError, match=said):
        made(small_table, **settings)
