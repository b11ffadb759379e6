"""PMW-Pub and PEP-Pub: distributions on public rows, by hand, in their limit, and what they refuse."""

import math

import numpy as np
import pytest
from inference.helpers import answers_of

from dpbench.data.domain import Attribute, Domain
from dpbench.data.table import Table
from dpbench.errors import UserError
from dpbench.inference.query_workload import QueryWorkload
from dpbench.mechanisms.adaptive import Asked
from dpbench.mechanisms.mwem import Mwem
from dpbench.mechanisms.pep import Pep
from dpbench.mechanisms.pep_pub import pep_pub
from dpbench.mechanisms.pmw_pub import pmw_pub
from dpbench.mechanisms.supports import PublicRows, WholeDomain, reweighed
from dpbench.mechanisms.workload import cliques_of
from dpbench.privacy.accounting import spent
from dpbench.privacy.budget import Budget
from dpbench.releases import Distribution, SyntheticRows

DELTA = 1e-7
METHODS = [pmw_pub, pep_pub]
DOMAIN = Domain((Attribute.categorical("a", "uv"), Attribute.categorical("b", "rst")))
QUERIES = QueryWorkload(DOMAIN.sizes, (("a", "b"), ("b",)))
PUBLIC = Table(DOMAIN, np.array([[0, 0], [1, 2], [0, 0], [1, 0]]))


def support(start="public"):
    return PublicRows.of("pmw_pub", QUERIES, PUBLIC, start)


def asked(queries, answers):
    return Asked(np.array(queries), np.ones(len(queries)), np.array(answers), 1, 0.1)


def made(method, table, public, epsilon=1.0, seed=0, **settings):
    budget, rng = Budget(epsilon, DELTA, "replace"), np.random.default_rng(seed)
    return method(table, budget, rng, public=public, **settings)


def error(table, release):
    queries = QueryWorkload(table.domain.sizes, cliques_of(table.domain, 3))
    return np.abs(queries.of_rows(table.codes) - answers_of(release[Distribution].model, queries.cliques)).max()


def test_the_support_is_each_row_once_with_its_frequency_or_the_same_for_all():
    rows = support()
    assert rows.codes.tolist() == [[0, 0], [1, 0], [1, 2]]
    assert rows.initial().tolist() == [0.5, 0.25, 0.25]
    np.testing.assert_allclose(support("uniform").initial(), [1 / 3] * 3)
    np.testing.assert_allclose(rows.answers(rows.initial()), [0.5, 0, 0, 0.25, 0, 0.25, 0.75, 0, 0.25])


def test_overlaps_of_rows_are_those_of_the_whole_domain():
    rows, whole = support(), WholeDomain(QUERIES)
    for query in range(len(QUERIES)):
        for other in range(len(QUERIES)):
            table = np.zeros((2, 3), dtype=bool)
            cells = whole.overlap(query, other)
            if cells is not None:
                table[cells] = True
            expected = [bool(table[tuple(row)]) for row in rows.codes]
            found = rows.overlap(query, other)
            assert (found is None) == (not any(expected))
            assert found is None or np.isin(range(3), found).tolist() == expected


def test_one_round_of_pmw_pub_by_hand():
    """(1, 2) is measured as 3/4 where the public rows have 1/4."""
    D = Mwem(support(), past=False, rate=1.0).update(support().initial(), asked([5], [0.75]))
    grown = 0.25 * math.exp(0.5)
    np.testing.assert_allclose(D, np.array([0.5, 0.25, grown]) / (0.75 + grown))


def test_one_round_of_pep_pub_by_hand():
    """The others keep their proportion."""
    D = Pep(support(), 25, 0.0).update(support().initial(), asked([5], [0.7]))
    np.testing.assert_allclose(D, [0.2, 0.1, 0.7])


def test_queries_that_no_or_all_public_rows_answer_alike_change_nothing():
    start = PublicRows.of("pep_pub", QUERIES, Table(DOMAIN, np.array([[0, 0], [1, 0]])), "public")
    for family in (Pep(start, 25, 0.0), Mwem(start, past=True, rate=1.0)):
        np.testing.assert_allclose(family.update(start.initial(), asked([7, 6], [0.6, 0.3])), [0.5, 0.5])
    D = Pep(start, 25, 0.0).update(start.initial(), asked([7, 6, 0], [0.6, 0.3, 0.8]))
    np.testing.assert_allclose(D, [0.8, 0.2])


@pytest.mark.parametrize(("repeated", "answer"), [("mean", 0.5), ("newest", 0.7)])
def test_pmw_pub_takes_the_mean_of_a_repeated_query_or_its_newest_answer(repeated, answer):
    """(1, 2), which has 1/4 of the public rows, is measured as 0.3, then as 0.7."""
    family = Mwem(support(), past=False, rate=1.0, repeated=repeated)
    grown = 0.25 * math.exp(answer - 0.25)
    D = family.update(family.initial(), asked([5, 5], [0.3, 0.7]))
    np.testing.assert_allclose(D, np.array([0.5, 0.25, grown]) / (0.75 + grown))


@pytest.mark.parametrize(
    ("method", "family", "options"),
    [
        (pmw_pub, lambda support, **options: Mwem(support, True, 1.0, **options), {"repeated": "newest"}),
        (pep_pub, lambda support, **options: Pep(support, 25, 0.0, **options), {"repeated": "all"}),
        (pep_pub, lambda support, **options: Pep(support, 25, 0.0, **options), {"increase": 1}),
        (pep_pub, lambda support, **options: Pep(support, 25, 0.0, **options), {"clipped": "odds"}),
    ],
)
def test_an_option_changes_the_release_as_it_changes_the_family(method, family, options, small_table):
    """From the same noise: 30 measurements of 23 queries, of which some repeat and some are negative."""
    public, cliques = small_table.take(np.arange(60)), cliques_of(small_table.domain, [["age", "work"], ["grade"]])
    held = PublicRows.of("", QueryWorkload(small_table.domain.sizes, cliques), public, "public")
    distributions = []
    for chosen in ({}, options):
        budget, settings = Budget(0.3, DELTA, "replace"), {"rounds": 30, "rows": None, "alpha": 0.5}
        expected = reweighed(
            method.__name__, small_table, budget, np.random.default_rng(1), held, family(held, **chosen),
            per_round=1, calibration="tight", **settings,
        )  # fmt: skip
        release = made(method, small_table, public, 0.3, 1, workload=cliques, **settings, **chosen)
        distributions.append(release[Distribution].model.distribution)
        np.testing.assert_array_equal(distributions[-1], expected[Distribution].model.distribution)
    assert np.abs(distributions[0] - distributions[1]).max() > 1e-4


@pytest.mark.parametrize(("method", "bound"), [(pmw_pub, 0.006), (pep_pub, 0.003)])
def test_almost_without_noise_the_workload_is_recovered_on_rows_that_can(small_table, method, bound):
    """Half of the private rows, reweighed: the start's error is 0.013."""
    public = small_table.take(np.arange(0, len(small_table), 2))
    release = made(method, small_table, public, 1e6, rounds=150)
    assert error(small_table, release) < bound
    held = {tuple(row) for row in public.codes}
    assert {tuple(row) for row in release[SyntheticRows].table.codes} <= held


@pytest.mark.parametrize("method", METHODS)
def test_the_start_that_is_asked_for_is_that_of_the_release(method, small_table):
    """Almost nothing is learned from one round at a tiny epsilon."""
    public = small_table.take(np.arange(100))
    distributions = {
        start: made(method, small_table, public, 1e-6, rounds=1, start=start)[Distribution].model.distribution
        for start in ("public", "uniform")
    }
    assert not np.allclose(distributions["public"], distributions["uniform"])


@pytest.mark.parametrize("method", METHODS)
def test_the_budget_is_kept_and_the_public_rows_are_named(small_table, method):
    public = small_table.take(np.arange(40))
    for calibration in ("tight", "paper"):
        release = made(method, small_table, public, 0.7, calibration=calibration)
        assert spent(release.ledger, DELTA).epsilon <= 0.7 * (1 + 1e-9)
    assert "public rows, which no budget protects" in release.nonprivate_inputs[0]


@pytest.mark.parametrize(
    ("method", "settings", "message"),
    [
        (pmw_pub, {"repeated": "all"}, "unknown repeated 'all'"),
        (pmw_pub, {"rate": 0.0}, "pmw_pub: rate must be greater than 0"),
        (pep_pub, {"repeated": "newest"}, "unknown repeated 'newest'"),
        (pep_pub, {"clipped": "answer"}, "unknown clipped 'answer'"),
        (pep_pub, {"increase": 0}, "pep_pub: increase must be at least 1"),
        (pep_pub, {"gamma": -0.1}, "pep_pub: gamma must be at least 0"),
    ],
)
def test_an_option_that_there_is_not_is_refused(small_table, method, settings, message):
    with pytest.raises(UserError, match=message):
        made(method, small_table, small_table.take(np.arange(40)), **settings)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("columns", "settings", "message"),
    [
        (None, {}, "needs public rows: set dataset.public_data"),
        (["age", "sex"], {}, "have no work, grade"),
        (["age", "work", "sex", "grade"], {"start": "private"}, "unknown start 'private'"),
        (["age", "work", "sex", "grade"], {"rounds": 0}, "rounds must be at least 1"),
    ],
)
def test_what_is_refused(small_table, method, columns, settings, message):
    public = None if columns is None else small_table.project(columns)
    with pytest.raises(UserError, match=message):
        made(method, small_table, public, **settings)
