"""FEM: a round by hand, its noise, its limit without privacy, and what it refuses."""

import numpy as np
import pytest

from dpbench.errors import UserError
from dpbench.inference.query_records import Search
from dpbench.inference.query_workload import QueryWorkload
from dpbench.mechanisms.adaptive import Asked
from dpbench.mechanisms.dualquery import Records
from dpbench.mechanisms.fem import Fem, fem
from dpbench.mechanisms.workload import cliques_of
from dpbench.privacy.accounting import spent
from dpbench.privacy.budget import Budget
from dpbench.releases import SyntheticRows

DELTA = 1e-7
QUERIES = QueryWorkload({"a": 2, "b": 3}, (("a", "b"), ("b",)))


def family(samples=400, scale=1e-9):
    return Fem(QUERIES, samples, scale, Search(), np.random.default_rng(0))


def asked(queries, signs):
    return Asked(np.array(queries), np.array(signs, dtype=float), np.full(len(queries), np.nan), 1, None)


def made(table, epsilon=1.0, seed=0, **settings):
    return fem(table, Budget(epsilon, DELTA, "replace"), np.random.default_rng(seed), **settings)


def error(table, rows):
    queries = QueryWorkload(table.domain.sizes, cliques_of(table.domain, 3))
    return np.abs(queries.of_rows(table.codes) - queries.of_rows(rows)).max()


def test_a_round_by_hand():
    """Of all queries so far: b = 1 twice, (1, 1) negated; almost without noise x = (0, 1)."""
    one = family(samples=3)
    D = one.update(Records(np.zeros((3, 2), dtype=np.int64)), asked([7, 7, 4], [1, 1, -1]))
    assert D.rows.tolist() == [[0, 0]] * 3 + [[0, 1]] * 3
    np.testing.assert_allclose(one.answers(D), [0, 1, 0, 0, 0, 0, 0, 1, 0])  # of the newest alone


def test_the_noise_has_its_scale():
    """b = 1 is given up for another level where its noise exceeds the least of the others' by 1.

    With X of mean 1 and Y, the least of two, of mean 1/2: P(X > Y + 1) = e^-1 P(X > Y) = e^-1 2/3. Three standard
    errors, so that it fails for 0.3% of all seeds.
    """
    one = family(samples=4000, scale=1.0)
    D = one.update(one.initial(), asked([7], [1]))
    expected = 1 - 2 / 3 * np.exp(-1)
    assert np.mean(D.rows[-4000:, 1] == 1) == pytest.approx(expected, abs=3 * np.sqrt(expected * (1 - expected) / 4000))


def test_it_starts_from_uniform_records():
    one = family()
    assert np.abs(one.answers(one.initial())[:6] - 1 / 6).max() < 0.08


def test_searches_that_were_ended_are_counted_over_all_rounds(monkeypatch):
    monkeypatch.setattr(Search, "best", lambda self, sizes, *rest: (np.zeros(len(sizes), dtype=np.int64), False))
    one = Fem(QUERIES, 3, 1.0, Search(), np.random.default_rng(0))
    D = Records(np.zeros((3, 2), dtype=np.int64))
    for _ in range(4):
        D = one.update(D, asked([7], [1]))
    assert D.unfinished == 12


def test_almost_without_privacy_the_error_is_far_below_that_of_the_start(small_table):
    """Its own precision: that of T averages of s records. The uniform law's error is 0.14."""
    rows = made(small_table, 1e6, rounds=100, samples=30)[SyntheticRows].table
    assert len(rows) == 3000
    assert error(small_table, rows.codes) < 0.06


def test_no_more_is_spent_than_asked_and_nothing_is_measured(small_table):
    for calibration in ("tight", "paper"):
        ledger = made(small_table, 0.7, samples=2, rounds=9, per_round=3, calibration=calibration).ledger
        assert [(type(event).__name__, event.count) for event in ledger.events] == [("ExponentialMechanism", 3)] * 9
        assert spent(ledger, DELTA).epsilon <= 0.7 * (1 + 1e-9)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"samples": 0}, "fem: samples must be at least 1"),
        ({"rounds": 0}, "fem: rounds must be at least 1"),
        ({"per_round": 0}, "fem: per_round must be at least 1"),
        ({"scale": 0.0}, "scale must be greater than 0"),
        ({"workload": {"degree": 0}}, "k between 1 and 4"),
    ],
)
def test_what_is_refused(small_table, settings, message):
    with pytest.raises(UserError, match=message):
        made(small_table, **settings)
