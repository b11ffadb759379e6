"""The best-mixture error: by a linear programme with all queries, in its limits, and what is refused."""

import math

import numpy as np
import pytest
from inference.helpers import answers_of
from scipy.optimize import linprog

from dpbench.errors import UserError
from dpbench.inference.query_workload import QueryWorkload
from dpbench.mechanisms import best_mixture as module
from dpbench.mechanisms.best_mixture import best_mixture
from dpbench.mechanisms.workload import cliques_of
from dpbench.privacy.budget import Budget
from dpbench.releases import Distribution, SyntheticRows


def made(table, public, **settings):
    budget = Budget(math.inf, relation="replace")
    return best_mixture(table, budget, np.random.default_rng(0), public=public, **settings)


def queries_of(table):
    return QueryWorkload(table.domain.sizes, cliques_of(table.domain, 3))


def least_error(table, public):
    """By the dense programme with all queries at once."""
    queries = queries_of(table)
    rows = np.unique(public.codes, axis=0)
    q = np.stack([queries.of_rows(row[None]) for row in rows], axis=1)
    true, one = queries.of_rows(table.codes), np.ones((len(queries), 1))
    found = linprog(
        [*np.zeros(len(rows)), 1.0],
        A_ub=np.block([[q, -one], [-q, -one]]),
        b_ub=np.concatenate([true, -true]),
        A_eq=[[*np.ones(len(rows)), 0.0]],
        b_eq=[1.0],
    )
    return found.fun


def error(table, release):
    queries = queries_of(table)
    return np.abs(queries.of_rows(table.codes) - answers_of(release[Distribution].model, queries.cliques)).max()


@pytest.mark.parametrize("added", [3, 300])
def test_the_error_is_the_least_there_is(small_table, added, monkeypatch):
    monkeypatch.setattr(module, "ADDED", added)
    public = small_table.take(np.arange(15))
    release = made(small_table, public, tolerance=1e-5, programmes=200)
    least = least_error(small_table, public)
    assert least > 0.01
    assert error(small_table, release) == pytest.approx(least, abs=2e-5)
    assert release.diagnostics["error"] == pytest.approx(error(small_table, release))
    assert release.diagnostics["bound"] == pytest.approx(least, abs=2e-5)
    assert len(release[SyntheticRows].table) == len(small_table)


def test_rows_that_hold_the_private_ones_have_no_error(small_table):
    assert error(small_table, made(small_table, small_table)) < 1e-12


def test_a_query_that_no_public_row_has_bounds_the_error_from_below(small_table):
    code = small_table.codes[:, 2]
    public = small_table.take(np.flatnonzero(code == code[0]))
    missing = np.mean(code != code[0])
    assert made(small_table, public, workload=1).diagnostics["bound"] >= missing / 2


def test_after_so_many_programmes_it_is_the_best_distribution_so_far(small_table):
    public = small_table.take(np.arange(15))
    found = [made(small_table, public, programmes=k).diagnostics for k in (1, 3)]
    start = np.abs(queries_of(public).of_rows(public.codes) - queries_of(small_table).of_rows(small_table.codes)).max()
    least = least_error(small_table, public)
    assert start >= found[0]["error"] >= found[1]["error"] > least
    assert 0 < found[0]["bound"] <= found[1]["bound"] <= least + 1e-6


def test_a_worse_law_takes_the_place_of_no_better_one(small_table, monkeypatch):
    """With one query more in each programme, its solution is mostly worse than the public rows' own distribution."""
    monkeypatch.setattr(module, "ADDED", 1)
    public = small_table.take(np.arange(15))
    start = np.abs(queries_of(public).of_rows(public.codes) - queries_of(small_table).of_rows(small_table.codes)).max()
    errors = [start, *(error(small_table, made(small_table, public, programmes=k)) for k in range(1, 9))]
    assert np.all(np.diff(errors) <= 1e-12)


@pytest.mark.parametrize(
    ("columns", "settings", "message"),
    [
        (None, {}, "best_mixture needs public rows"),
        (["age", "sex"], {}, "best_mixture reweighs whole public rows, and these have no work, grade"),
        (["age", "work", "sex", "grade"], {"tolerance": 0.0}, "best_mixture: tolerance must be greater than 0"),
        (["age", "work", "sex", "grade"], {"programmes": 0}, "best_mixture: programmes must be at least 1"),
        (["age", "work", "sex", "grade"], {"rows": 0}, "best_mixture: rows must be at least 1"),
    ],
)
def test_what_is_refused(small_table, columns, settings, message):
    public = None if columns is None else small_table.project(columns)
    with pytest.raises(UserError, match=message):
        made(small_table, public, **settings)
