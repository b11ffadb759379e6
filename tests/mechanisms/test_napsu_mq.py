"""NAPSU-MQ: its tables, its budget, the coverage of intervals, and what it refuses. `tests/audit` replays it."""

import math
import subprocess
import sys

import numpy as np
import pytest

from dpbench.data.domain import Attribute, Domain
from dpbench.data.encode import Design
from dpbench.data.table import Table
from dpbench.errors import UnconvergedError, UserError
from dpbench.mechanisms import napsu_mq as module
from dpbench.mechanisms.napsu_mq import napsu_mq
from dpbench.models.combined import linear_tables
from dpbench.models.sandwich import linear_rows_sandwich
from dpbench.privacy.accounting import gaussian_mu, spent, zcdp_rho
from dpbench.privacy.budget import Budget
from dpbench.releases import Distribution, Marginals, SyntheticRows, SyntheticTables

DELTA = 1e-5
DOMAIN = Domain(
    (Attribute.discrete("x", range(4)), Attribute.categorical("g", "abc"), Attribute.discrete("y", range(5)))
)
DESIGN = Design(DOMAIN, "y")
CELLS = np.indices((4, 3, 5)).reshape(3, -1).T
SHORT = {"tables": 6, "warmup": 30, "leapfrogs": 8}


def population():
    """Probabilities (60,) of x, g and y = 0.6 + 0.6 x + shift_g + N(0, 1) on whole numbers, and its least squares."""
    x, g, y = CELLS.T
    p = np.exp(-((y - (0.6 + 0.6 * x + np.array([0.0, 0.7, -0.4])[g])) ** 2) / 2).reshape(12, 5)
    p = p / p.sum(axis=1, keepdims=True) * (1 + (x * (g + 1)).reshape(12, 5)[:, :1] / 4)
    w = p.ravel() / p.sum()
    X, y = DESIGN.encode(Table(DOMAIN, CELLS))
    return w, np.linalg.solve((X.T * w) @ X, (X.T * w) @ y)


def table(rows, seed):
    return Table(DOMAIN, CELLS[np.random.default_rng(seed).choice(60, rows, p=population()[0])])


def made(train, epsilon=1.0, relation="add_remove", seed=0, **settings):
    return napsu_mq(train, Budget(epsilon, DELTA, relation), np.random.default_rng(seed), **{**SHORT, **settings})


@pytest.mark.parametrize("relation", ["add_remove", "replace"])
def test_with_little_noise_all_that_is_released_has_the_marginals_of_the_data(relation):
    train = table(4000, 0)
    release = made(train, 1000.0, relation)
    for pair in [("x", "g"), ("x", "y"), ("g", "y")]:
        true = train.marginal(pair) / len(train)
        answers = release[Marginals].tables[pair]
        np.testing.assert_allclose(answers / answers.sum(), true, atol=0.01)
        np.testing.assert_allclose(release[SyntheticRows].table.marginal(pair) / len(train), true, atol=0.01)
    for one in release[SyntheticTables]:
        assert np.abs(one.marginal(("x", "y")) / len(one) - train.marginal(("x", "y")) / len(train)).sum() < 0.12


def test_tables_differ_by_more_than_their_rows_where_there_is_noise():
    """Of 2,000 rows at epsilon 0.3 the noise is several times the sampling error."""
    release = made(table(2000, 1), 0.3, tables=20)
    ys = np.array([one.column("y").mean() for one in release[SyntheticTables]])
    alone = release[SyntheticTables].table.column("y").std() / math.sqrt(release[SyntheticTables].size)
    assert ys.std() > 2 * alone


@pytest.mark.slow
@pytest.mark.parametrize("relation", ["add_remove", "replace"])
def test_intervals_cover_and_those_of_rows_taken_for_real_do_not(relation):
    """100 tables of 2,000 rows at epsilon 1, the defaults, level 0.95, four coefficients.

    If each is covered in 95 of 100, fewer than 340 of 400 are with a probability below 1e-6, even if those of one table
    were covered or not together (fewer than 85 of 100: 1e-4).
    """
    truth, hits, naive = population()[1], 0, 0
    for seed in range(100):
        release = napsu_mq(table(2000, seed), Budget(1.0, DELTA, relation), np.random.default_rng([7, seed]))
        combined = linear_tables(release, design=DESIGN, level=0.95).intervals
        as_real = linear_rows_sandwich(release, design=DESIGN, rng=np.random.default_rng(0), level=0.95).intervals
        hits += int(((combined[:, 0] <= truth) & (truth <= combined[:, 1])).sum())
        naive += int(((as_real[:, 0] <= truth) & (truth <= as_real[:, 1])).sum())
    assert hits >= 340
    assert naive < hits - 20


@pytest.mark.parametrize("relation", ["add_remove", "replace"])
@pytest.mark.parametrize("calibration", ["paper", "tight"])
def test_all_marginals_share_the_budget_alike(relation, calibration):
    release = made(table(300, 2), 0.7, relation, calibration=calibration)
    events = release.ledger.events
    assert [one.label for one in events] == ["marginal x,g", "marginal x,y", "marginal g,y"]
    assert {one.sensitivity for one in events} == {1.0 if relation == "add_remove" else math.sqrt(2)}
    paper = calibration == "paper"
    total = math.fsum(one.rho if paper else one.mu**2 for one in events)
    assert total == pytest.approx(zcdp_rho(0.7, DELTA) if paper else gaussian_mu(0.7, DELTA) ** 2)
    assert spent(release.ledger, DELTA).epsilon <= 0.7 * (1 + 1e-9)
    assert [sd for _, sd in release[Marginals].noise] == [release.diagnostics["sigma"]] * 3


def test_the_number_of_rows_is_public_estimated_or_chosen():
    train = table(300, 3)
    assert made(train, relation="replace")[SyntheticTables].size == 300
    assert len({made(train, 0.5, seed=seed)[SyntheticTables].size for seed in range(4)}) == 4
    release = made(train, rows=40)
    assert release[SyntheticTables].size == len(release[SyntheticRows].table) == 40
    assert release[Distribution].model.total == pytest.approx(300, abs=100)


def test_few_rows_and_none_and_an_attribute_of_one_level_are_no_obstacle(small_table):
    assert len(made(table(3, 4), 0.1)[SyntheticRows].table) >= 1
    assert len(made(table(0, 4), 0.1)[SyntheticRows].table) >= 1
    single = Domain((Attribute.categorical("a", "u"), Attribute.categorical("b", "u")))
    release = made(Table(single, np.zeros((5, 2), dtype=np.int64)), relation="replace", workload=[["a"], ["a", "b"]])
    assert release[SyntheticTables].size == 5


def test_jax_and_torch_are_not_imported():
    code = "import sys, dpbench.mechanisms.napsu_mq; sys.exit('jax' in sys.modules or 'torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_chain_that_does_not_move_is_no_estimate(monkeypatch):
    monkeypatch.setattr(module, "LEAST_ACCEPTANCE", 1.1)
    with pytest.raises(UnconvergedError, match="hardly moves"):
        made(table(100, 5))


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"max_model_mb": 1e-4}, r"each of the 60 cells of the domain, 0.000458 MB.*the 2 attributes of fewest levels"),
        ({"max_model_mb": 5e-4}, r"matrices of 35 x 35 parameters, 0.00935 MB each.*: 8 parameters would fit"),
        ({"tables": 1}, "tables must be at least 2"),
        ({"rows": 0}, "rows must be at least 1"),
        ({"leapfrogs": 0}, "leapfrogs must be at least 1"),
        ({"scale": 0.0}, "scale must be"),
        ({"workload": [["x", "y"], ["y", "x"]]}, "2 times"),
        ({"epsilon": math.inf}, "finite epsilon"),
        ({"calibration": "exact"}, "unknown calibration"),
        ({"noise": "pink"}, "unknown noise"),
    ],
)
def test_invalid_settings_are_named(settings, said):
    with pytest.raises(UserError, match=said):
        made(table(50, 6), **settings)
