"""Errors of released marginals by hand."""

import math
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from dpbench.data.encode import Design, pairs
from dpbench.data.table import Split
from dpbench.errors import ContractError, UserError
from dpbench.metrics import queries
from dpbench.metrics.evaluation import Evaluation, Reference
from dpbench.models.fit import Fit
from dpbench.privacy.budget import Budget
from dpbench.privacy.ledger import Ledger
from dpbench.releases import Marginals, Release, SyntheticRows


def evaluation(train, released):
    marginals = Marginals({clique: released.marginal(clique) for clique in pairs(released.domain)})
    release = Release(train.domain, Budget(math.inf), Ledger(), (marginals,))
    return Evaluation(Fit(np.zeros(1)), release, Reference(Split(train, train), Design(train.domain, "grade")))


def test_workload_error_by_hand(small_table):
    train = small_table.take(np.arange(2000))
    half = evaluation(train, train.take(np.arange(1000)))
    tables = half.release[Marginals].tables
    expected = [np.abs(train.marginal(c) - tables[c]).sum() / 2000 for c in pairs(train.domain)]
    assert queries.workload_error_mean(half).value == pytest.approx(np.mean(expected))
    assert queries.workload_error_max(half).value == pytest.approx(max(expected))
    assert min(expected) >= 0.5 - 1e-12
    assert queries.workload_error_max(evaluation(train, train)).value == 0


def test_a_release_without_marginals_has_no_workload_error(small_table):
    made = evaluation(small_table, small_table)
    bare = Release(small_table.domain, Budget(math.inf), Ledger())
    with pytest.raises(ContractError, match="holds no marginals"):
        queries.workload_error_mean(Evaluation(made.fit, bare, made.reference))


# --- marginals of rows -----------------------------------------------------------------------------------------------


def of_rows(train, released, protocol="split", test=None):
    release = Release(train.domain, Budget(math.inf), Ledger(), (SyntheticRows(released),))
    split = Split(train, train if test is None else test, protocol=protocol)
    return Evaluation(Fit(np.zeros(1)), release, Reference(split, Design(train.domain, "grade")))


@pytest.mark.parametrize("degree", [1, 2, 3])
def test_the_error_of_rows_is_that_of_the_tables_of_their_counts(small_table, degree):
    train, released = small_table.take(np.arange(2000)), small_table.take(np.arange(1500, 2900))
    cliques = list(combinations(train.domain.names, degree))
    expected = [np.abs(train.marginal(r) / 2000 - released.marginal(r) / 1400).sum() for r in cliques]
    found = queries.row_marginals_error(of_rows(train, released), degree=degree, max_cells=None)
    assert found.value == pytest.approx(np.mean(expected))
    assert queries.row_marginals_error(of_rows(train, train), degree=degree).value == 0


def test_large_marginals_are_left_out_and_it_is_said_where_none_is_left(small_table):
    train, released = small_table.take(np.arange(2000)), small_table.take(np.arange(1000))
    pairs_of = {r: train.domain.shape(r)[0] * train.domain.shape(r)[1] for r in combinations(train.domain.names, 2)}
    least = min(pairs_of.values())
    (only,) = [r for r, cells in pairs_of.items() if cells == least]
    found = queries.row_marginals_error(of_rows(train, released), degree=2, max_cells=least)
    assert found.value == pytest.approx(np.abs(train.marginal(only) / 2000 - released.marginal(only) / 1000).sum())
    with pytest.raises(UserError, match="all marginals of 2 attributes have over 1 cells"):
        queries.row_marginals_error(of_rows(train, released), degree=2, max_cells=1)
    with pytest.raises(UserError, match="degree of marginals must be between 1 and"):
        queries.row_marginals_error(of_rows(train, released), degree=len(train.domain.names) + 1)


def test_errors_are_of_the_rows_that_the_mechanism_saw(small_table):
    train, test = small_table.take(np.arange(1000)), small_table.take(np.arange(1000, 1250))
    both = small_table.take(np.arange(1250))
    assert queries.row_marginals_error(of_rows(train, both, "authors", test), degree=2).value == 0
    assert queries.row_marginals_error(of_rows(train, both, "split", test), degree=2).value > 0
    marginals = Marginals({clique: both.marginal(clique) for clique in pairs(both.domain)})
    release = Release(both.domain, Budget(math.inf), Ledger(), (marginals,))
    leaked = Reference(Split(train, test, protocol="authors"), Design(both.domain, "grade"))
    assert queries.workload_error_max(Evaluation(Fit(np.zeros(1)), release, leaked)).value == 0


def test_errors_of_marginals_are_parts_of_the_rows_that_the_mechanism_saw(small_table):
    train, test = small_table.take(np.arange(1000)), small_table.take(np.arange(1000, 1250))
    nothing = Marginals({clique: 0 * train.marginal(clique) for clique in pairs(train.domain)})
    release = Release(train.domain, Budget(math.inf), Ledger(), (nothing,))
    for protocol in ("split", "authors"):
        reference = Reference(Split(train, test, protocol=protocol), Design(train.domain, "grade"))
        assert queries.workload_error_mean(Evaluation(Fit(np.zeros(1)), release, reference)).value == pytest.approx(1)


def test_selected_marginals_are_those_of_several_attributes_that_were_measured_each_once(small_table):
    train, released = small_table.take(np.arange(2000)), small_table.take(np.arange(1500, 2900))
    a, b, c = train.domain.names[:3]
    measured = [(a,), (b,), (a, b), (b, c), (a, b)]
    made = of_rows(train, released)

    def error(cliques):
        parts = (*made.release.parts, Marginals({}, tuple((clique, 1.0) for clique in cliques)))
        return queries.selected_marginals_error(replace(made, release=replace(made.release, parts=parts))).value

    one, other = (np.abs(train.marginal(r) / 2000 - released.marginal(r) / 1400).sum() for r in [(a, b), (b, c)])
    assert error(measured) == pytest.approx((one + other) / 2)
    with pytest.raises(UserError, match="no marginal of two attributes or more was measured"):
        error([(a,), (b,)])
