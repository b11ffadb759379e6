"""DualQuery: a round by hand, its number of rounds, its limit without noise, and what it refuses."""

import numpy as np
import pytest

from dpbench.data.domain import Attribute, Domain
from dpbench.data.table import Table
from dpbench.errors import UserError
from dpbench.inference.query_records import Search
from dpbench.inference.query_workload import QueryWorkload
from dpbench.mechanisms.adaptive import Asked
from dpbench.mechanisms.dualquery import DualQuery, Records, dualquery, growing_rounds, weighted_cells
from dpbench.mechanisms.workload import cliques_of
from dpbench.privacy.accounting import spent, zcdp_rho
from dpbench.privacy.budget import Budget
from dpbench.releases import Marginals, SyntheticRows

DELTA = 1e-7
QUERIES = QueryWorkload({"a": 2, "b": 3}, (("a", "b"), ("b",)))


def asked(queries, signs, newest):
    return Asked(np.array(queries), np.array(signs, dtype=float), np.full(len(queries), np.nan), newest, None)


def made(table, epsilon=1.0, seed=0, **settings):
    return dualquery(table, Budget(epsilon, DELTA, "replace"), np.random.default_rng(seed), **settings)


def error(table, release):
    queries = QueryWorkload(table.domain.sizes, cliques_of(table.domain, 3))
    return np.abs(queries.of_rows(table.codes) - queries.of_rows(release[SyntheticRows].table.codes)).max()


def test_a_round_by_hand():
    """Of the round's own queries only: b = 1 twice and (1, 1) once, (0, 1) negated, so x = (1, 1)."""
    family = DualQuery(QUERIES, Search(), np.random.default_rng(0))
    D = family.update(family.initial(), asked([6, 6, 7, 7, 4, 1], [1, 1, 1, 1, 1, -1], 4))
    assert D.rows.tolist() == [[1, 1]]
    assert family.answers(family.initial()).tolist() == [0] * 9
    np.testing.assert_allclose(family.answers(Records(np.array([[1, 1], [0, 1]]))), [0, 0.5, 0, 0, 0.5, 0, 0, 1, 0])


def test_the_signs_of_a_query_are_summed_up_and_those_that_cancel_left_out():
    cells, weights = weighted_cells(QUERIES, np.array([4, 7, 4, 1, 1, 7]), np.array([1.0, 1, 1, 1, -1, 1]))
    assert cells == [{"a": 1, "b": 1}, {"b": 1}] and weights.tolist() == [2, 2]


def test_ties_are_broken_at_random():
    family = DualQuery(QUERIES, Search(), np.random.default_rng(0))
    found = {tuple(family.update(family.initial(), asked([7], [1], 1)).rows[0]) for _ in range(30)}
    assert found == {(0, 1), (1, 1)}


def test_ties_are_not_broken_if_the_first_is_asked_for():
    family = DualQuery(QUERIES, Search(), None)
    assert {tuple(family.update(family.initial(), asked([7], [1], 1)).rows[0]) for _ in range(30)} == {(0, 1)}


def test_the_rounds_are_as_many_as_rho_allows_by_hand():
    """Round t costs s (2 eta (t - 1) / n)^2 / 8: with s = 8, eta / n = 1/2 this is (t - 1)^2."""
    for rho, count in ((1.0, 2), (4.99, 2), (5.0, 3), (13.9, 3), (14.0, 4)):
        assert len(growing_rounds(rho, 10, eta=5.0, samples=8, most=None)) == count
    plan = growing_rounds(100.0, 10, eta=5.0, samples=8, most=3)
    assert [one.epsilon for one in plan] == [0, 1, 2]


def test_where_rho_pays_for_the_free_round_alone_eta_is_lowered():
    """Else the release would look at no row."""
    plan = growing_rounds(0.25, 10, eta=5.0, samples=8, most=None)
    assert [one.epsilon for one in plan] == [0, pytest.approx(0.5)]
    assert sum(one.picks * one.epsilon**2 / 8 for one in plan) == pytest.approx(0.25)


def test_the_longest_published_run_has_119_rows():
    """ADULT's n at epsilon = 1, delta = 1/n^2, eta = 2, s = 25."""
    n = 43_944
    assert len(growing_rounds(zcdp_rho(1.0, n**-2), n, eta=2.0, samples=25, most=None)) == 119


def test_the_ledger_holds_all_rounds_but_the_first_and_no_more_than_the_budget(small_table):
    for calibration in ("tight", "paper"):
        release = made(small_table, 0.7, calibration=calibration)
        events = release.ledger.events
        assert {type(event).__name__ for event in events} == {"ExponentialMechanism"}
        assert [event.count for event in events] == [25] * (release.diagnostics["rounds"] - 1)
        assert spent(release.ledger, DELTA).epsilon <= 0.7 * (1 + 1e-9)


def test_almost_without_noise_the_workload_is_recovered_to_the_precision_of_its_rows(small_table):
    release = made(small_table, 1e6, rounds=300, eta=4.0)
    assert len(release[SyntheticRows].table) == 300
    assert error(small_table, release) < 0.015


def test_marginals_are_those_of_the_rows_as_counts_of_n(small_table):
    release = made(small_table)
    rows = release[SyntheticRows].table
    for clique, table in release[Marginals].tables.items():
        np.testing.assert_allclose(table, rows.marginal(clique) * len(small_table) / len(rows))


def test_a_domain_that_no_memory_holds_is_searched_by_integer_programming():
    domain = Domain(tuple(Attribute.categorical(f"x{j}", range(10)) for j in range(20)))
    rng = np.random.default_rng(0)
    table = Table(domain, np.repeat(rng.integers(0, 10, (500, 1)), 20, axis=1))  # all attributes are equal
    release = made(table, 5.0, workload={"degree": 2, "marginals": 12}, rounds=15)
    queries = QueryWorkload(domain.sizes, cliques_of(domain, {"degree": 2, "marginals": 12}))
    found = queries.of_rows(release[SyntheticRows].table.codes)
    true = queries.of_rows(table.codes)
    uniform = np.full(len(queries), 0.01)
    assert release.diagnostics["unfinished"] == 0
    assert np.abs(found - true).mean() < np.abs(uniform - true).mean()


def test_searches_that_were_ended_are_counted(small_table, monkeypatch):
    best = Search.best
    monkeypatch.setattr(Search, "best", lambda *given: (best(*given)[0], False))
    release = made(small_table, rounds=4)
    assert release.diagnostics["unfinished"] == len(release[SyntheticRows].table) == 4


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"samples": 0}, "dualquery: samples must be at least 1"),
        ({"rounds": 0}, "dualquery: rounds must be at least 1"),
        ({"rounds": 1}, "dualquery: rounds must be at least 2"),
        ({"eta": 0.0}, "eta must be greater than 0"),
        ({"seconds": 0.0}, "seconds must be greater than 0"),
        ({"workload": 5}, "k between 1 and 4"),
    ],
)
def test_what_is_refused(small_table, settings, message):
    with pytest.raises(UserError, match=message):
        made(small_table, **settings)


@pytest.mark.parametrize(("max_cells", "ended"), [(1, True), (1000, False)])
def test_a_trial_records_the_searches_that_its_time_limit_ended(bench, max_cells, ended):
    """By HiGHS, which gets no time, or by trying all cells of the domain."""
    settings = ["mechanism=[dualquery]", "model=[released_answers]", "metric=[query_error_max]", "relation=replace"]
    limits = [f"mechanism.dualquery.max_cells={max_cells}", "mechanism.dualquery.seconds=1e-9"]
    assert bench.run(*settings, *limits, "mechanism.dualquery.rounds=4", "repetitions=1") == 0
    (trial,) = bench.trials().values()
    assert trial["status"] == "done" and ("unfinished" in trial["notes"]) == ended
