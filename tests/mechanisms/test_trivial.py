"""Trivial answers: what each knows of the rows, and that it says so."""

import math
from itertools import combinations

import numpy as np
import pytest

from dpbench.data.domain import Attribute, Domain
from dpbench.data.encode import pairs
from dpbench.data.table import Table
from dpbench.errors import UserError
from dpbench.mechanisms.trivial import KNOWN, max_entropy, public_rows, real_rows, zero
from dpbench.privacy.accounting import spent
from dpbench.privacy.budget import Budget
from dpbench.releases import Distribution, Marginals, SyntheticRows

BUDGET = Budget(math.inf, relation="replace")


def made(mechanism, table, **parameters):
    return mechanism(table, BUDGET, np.random.default_rng(0), **parameters)


def model_of(table, known):
    return made(max_entropy, table, known=known)[Distribution].model


def test_zero_answers_every_query_by_0_and_reads_nothing(small_table):
    release = made(zero, small_table, workload=2)
    assert tuple(release[Marginals].tables) == pairs(small_table.domain)
    assert not any(table.any() for table in release[Marginals].tables.values())
    assert not release.ledger.events and spent(release.ledger, 1e-5).epsilon == 0


def test_without_marginals_the_distribution_is_uniform(small_table):
    whole = small_table.domain.names
    answer = model_of(small_table, "nothing").answer([whole])[whole]
    assert answer == pytest.approx(np.full(answer.shape, len(small_table) / answer.size))


def test_attributes_alone_are_independent(small_table):
    whole = small_table.domain.names
    answer = model_of(small_table, "attributes").answer([whole])[whole] / len(small_table)
    one = [small_table.marginal((name,)) / len(small_table) for name in whole]
    assert answer == pytest.approx(np.einsum("i,j,k,l->ijkl", *one))


def test_the_tree_is_the_likeliest_of_all(small_table):
    """By hand: of the 16 trees of four attributes, each with the pairs' exact marginals."""
    names, n = small_table.domain.names, len(small_table)
    one = {name: small_table.marginal((name,)) / n for name in names}
    seen = small_table.marginal(names) / n

    def tree(edges):
        found = np.einsum("i,j,k,l->ijkl", *one.values())
        for a, b in edges:
            ratio = small_table.marginal((a, b)) / n / np.outer(one[a], one[b])
            found = found * ratio.reshape([s if x in (a, b) else 1 for x, s in zip(names, found.shape, strict=True)])
        return found

    def likelihood(distribution):
        return float((seen[seen > 0] * np.log(distribution[seen > 0])).sum())

    trees = [edges for edges in combinations(pairs(small_table.domain), 3) if connected(edges)]
    assert len(trees) == 16
    best = max(map(tree, trees), key=likelihood)
    assert model_of(small_table, "tree").answer([names])[names] / n == pytest.approx(best, abs=1e-12)


def connected(edges):
    reached = set(edges[0])
    for _ in edges:
        reached |= {name for edge in edges if reached & set(edge) for name in edge}
    return len(reached) == 4


def test_levels_and_pairs_that_no_row_has_stay_without_mass():
    """Two attributes that determine each other, and one that has one level only."""
    domain = Domain(tuple(Attribute.categorical(name, range(3)) for name in "abc"))
    codes = np.array([[0, 1, 2]] * 30 + [[1, 0, 2]] * 10)
    model = model_of(Table(domain, codes), "tree")
    assert model.answer([("a", "b", "c")])["a", "b", "c"] == pytest.approx(Table(domain, codes).marginal(domain.names))
    single = Table(domain.project(["a"]), codes[:, :1])  # it has no pairs
    one = made(max_entropy, single, known="tree", workload=1)[Distribution].model
    assert one.answer([("a",)])["a",] == pytest.approx([30, 10, 0])


@pytest.mark.parametrize("known", KNOWN)
def test_rows_and_marginals_are_of_the_distribution(small_table, known):
    release = made(max_entropy, small_table, known=known, workload=1)
    rows = release[SyntheticRows].table
    assert len(rows) == len(small_table)
    for (name,), table in release[Marginals].tables.items():
        assert rows.marginal((name,)) == pytest.approx(table, abs=1)  # rounded, not drawn
    kinds = {event.kind for event in release.ledger.events}
    assert kinds == {"exact"} and release.ledger.events[0].label == "number of rows"
    assert spent(release.ledger, 1e-5).epsilon == math.inf


def test_real_rows_are_some_of_the_rows_each_once(small_table):
    numbered = Domain((Attribute.discrete("row", range(50)),))
    table = Table(numbered, np.arange(50)[:, None], {"row": np.arange(50.0)})
    release = made(real_rows, table, rows=20)
    rows = release[SyntheticRows].table
    assert len(set(rows.column("row"))) == 20
    assert np.array_equal(rows.numbers["row"], rows.column("row"))
    assert sorted(made(real_rows, table)[SyntheticRows].table.column("row")) == list(range(50))  # of 1,000
    assert spent(release.ledger, 1e-5).epsilon == math.inf


def test_public_rows_answer_by_their_own_frequencies(small_table):
    """Only their number is the private ones'. Other rows answer otherwise; fewer attributes are refused."""
    public = small_table.take(np.arange(40))
    release = public_rows(small_table, Budget(math.inf), np.random.default_rng(0), public=public)
    pair = tuple(small_table.domain.names[:2])
    found = release[Distribution].model.answer([pair])[pair]
    np.testing.assert_allclose(found, public.marginal(pair) * len(small_table) / 40)
    assert not np.allclose(found, small_table.marginal(pair))
    assert len(release[SyntheticRows].table) == len(small_table)
    assert any("public rows, which no budget protects" in told for told in release.nonprivate_inputs)
    with pytest.raises(UserError, match="public_rows"):
        public_rows(small_table, Budget(math.inf), np.random.default_rng(0), public=public.project(pair))


def test_bad_input(small_table):
    with pytest.raises(UserError, match="unknown known 'trees'; did you mean 'tree'"):
        made(max_entropy, small_table, known="trees")
    with pytest.raises(UserError, match="k between 1 and 4"):
        made(zero, small_table, workload=5)
    with pytest.raises(UserError, match=r"the largest pair has .* MB, the limit is 0\.0001 MB"):
        made(max_entropy, small_table, known="tree", max_model_mb=0.0001)
    with pytest.raises(UserError, match="rows must be at least 1, not 0"):
        made(real_rows, small_table, rows=0)
