"""The non-private references: statistics, marginals and rows."""

import math

import numpy as np
import pytest

from dpbench.data.domain import Attribute, Domain
from dpbench.data.encode import Design, pairs, second_moments
from dpbench.data.table import Table
from dpbench.errors import UserError
from dpbench.mechanisms.exact import exact, exact_table
from dpbench.privacy.accounting import spent
from dpbench.privacy.budget import Budget
from dpbench.releases import Marginals, Release, SufficientStatistics, SyntheticRows


def test_exact_table_holds_the_table_and_says_so(small_table, small_domain):
    release = exact_table(small_table, Budget(math.inf), np.random.default_rng(0))
    assert release.offers == ("marginals", "rows")
    assert tuple(release[Marginals].tables) == pairs(small_domain)
    for pair, table in release[Marginals].tables.items():
        assert np.array_equal(table, small_table.marginal(pair))
    assert np.array_equal(release[SyntheticRows].table.codes, small_table.codes)
    assert release[SyntheticRows].table.codes.dtype == np.int64


def test_everything_in_the_release_stands_in_the_ledger_at_an_infinite_cost(small_table, small_domain):
    release = exact_table(small_table, Budget(math.inf), np.random.default_rng(0))
    assert {event.kind for event in release.ledger.events} == {"exact"}
    assert [event.label for event in release.ledger.events] == [f"marginal {a},{b}" for a, b in pairs(small_domain)] + [
        "rows"
    ]
    assert spent(release.ledger, 1e-5).epsilon == math.inf


def test_what_is_stored_is_read_back(small_table):
    release = exact_table(small_table, Budget(math.inf), np.random.default_rng(0))
    again = Release.from_parts(*release.to_parts())
    assert np.array_equal(again[SyntheticRows].table.codes, small_table.codes)
    assert all(
        np.array_equal(again[Marginals].tables[pair], table) for pair, table in release[Marginals].tables.items()
    )
    assert again.ledger.events == release.ledger.events


def test_other_workloads(small_table):
    rng = np.random.default_rng(0)
    assert len(exact_table(small_table, Budget(math.inf), rng, workload=3)[Marginals].tables) == 4
    chosen = exact_table(small_table, Budget(math.inf), rng, workload=[["grade", "age"]])
    assert list(chosen[Marginals].tables) == [("age", "grade")]
    with pytest.raises(UserError, match="workload=9"):
        exact_table(small_table, Budget(math.inf), rng, workload=9)


def test_tables_that_memory_cannot_hold_are_refused_before_they_are_made():
    domain = Domain(tuple(Attribute.categorical(name, range(100_000)) for name in ("a", "b")))
    table = Table(domain, np.zeros((3, 2), dtype=np.int64))
    with pytest.raises(UserError, match=r"exact_table: the workload's marginals have 7.63e\+04 MB"):
        exact_table(table, Budget(math.inf), np.random.default_rng(0))


def test_exact_reads_without_noise_and_says_so(small_table, small_domain):
    design = Design(small_domain, "grade")
    release = exact(small_table, Budget(math.inf), np.random.default_rng(0), design=design)
    xtx, xty = second_moments(*design.encode(small_table))
    assert np.array_equal(release[SufficientStatistics].xtx, xtx)
    assert np.array_equal(release[SufficientStatistics].xty, xty)
    assert release[SufficientStatistics].yty == pytest.approx((design.encode(small_table)[1] ** 2).sum())
    assert spent(release.ledger, 1e-5).epsilon == math.inf
