"""The queries of a workload, answered on rows, on a histogram and on mixtures: by hand, and all in agreement."""

import tracemalloc
from itertools import combinations, product

import numpy as np
import pytest

from dpbench.inference import InferenceError, products, query_workload
from dpbench.inference.mixture import MixtureModel
from dpbench.inference.products import softmax
from dpbench.inference.query_workload import QueryWorkload

from .helpers import answers_of

SIZES = {"a": 3, "b": 2, "c": 4, "d": 2}
STARTS = np.array([0, 3, 5, 9])
WORKLOADS = {
    "all triples": tuple(combinations(SIZES, 3)),
    "some pairs": (("c", "d"), ("a", "c"), ("a", "b")),
    "mixed": (("a", "b", "c", "d"), ("b",), ("d",), ("a", "d"), ("b", "c", "d")),
    "one": (("b", "d"),),
}


def codes(n=50, seed=0):
    rng = np.random.default_rng(seed)
    return np.stack([rng.integers(0, size, n) for size in SIZES.values()], axis=1)


def histogram(rows):
    table = np.zeros(tuple(SIZES.values()))
    np.add.at(table, tuple(rows.T), 1 / len(rows))
    return table


def by_definition(workload, rows):
    """Definition 1: the part of the rows that have the query's levels, one query at a time."""
    columns = dict(zip(SIZES, rows.T, strict=True))
    wanted = (workload.cell(query) for query in range(len(workload)))
    return [np.mean(np.all([columns[name] == v for name, v in cell.items()], axis=0)) for cell in wanted]


@pytest.mark.parametrize("name", WORKLOADS)
def test_rows_and_histograms_are_answered_as_the_queries_are_defined(name):
    workload, rows = QueryWorkload(SIZES, WORKLOADS[name]), codes()
    expected = by_definition(workload, rows)
    np.testing.assert_allclose(workload.of_rows(rows), expected, rtol=1e-15)
    np.testing.assert_allclose(workload.of_histogram(histogram(rows)), expected, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("name", WORKLOADS)
def test_a_mixture_of_products_is_answered_as_its_own_histogram(name):
    workload = QueryWorkload(SIZES, WORKLOADS[name])
    logits = np.random.default_rng(1).normal(size=(7, 11))
    distributions = softmax(logits.T, STARTS).T
    parts = np.split(distributions, STARTS[1:], axis=1)
    table = np.einsum("ka,kb,kc,kd->abcd", *parts) / len(distributions)
    np.testing.assert_allclose(workload.of_products(distributions), workload.of_histogram(table), rtol=1e-12)
    model = MixtureModel(SIZES, 30.0, 1, 0.0, logits)
    np.testing.assert_allclose(answers_of(model, workload.cliques), workload.of_products(distributions), rtol=1e-12)


@pytest.mark.parametrize("name", WORKLOADS)
@pytest.mark.parametrize("most", [1, 20, 60])
def test_a_mixture_is_answered_alike_in_blocks_of_any_size(name, most, monkeypatch):
    workload, distributions = QueryWorkload(SIZES, WORKLOADS[name]), np.random.default_rng(1).random((7, 11))
    whole = workload.of_products(distributions)
    monkeypatch.setattr(query_workload, "BLOCK", most)
    np.testing.assert_allclose(workload.of_products(distributions), whole, rtol=1e-12)


def test_what_a_large_marginal_is_answered_with_takes_no_more_memory_than_blocks(monkeypatch):
    """300^2 cells of 20 components have 14 MB; a block has 1/2 MB, and the answers 1.4 MB."""
    sizes, logits = {"a": 2, "b": 300, "c": 300}, np.random.default_rng(0).normal(size=(20, 602))
    workload, model = QueryWorkload(sizes, (("a", "b", "c"),)), MixtureModel(sizes, 1.0, 1, 0.0, logits)
    distributions = np.concatenate(list(model.products.values()), axis=1)
    for module in (query_workload, products):
        assert 8 * module.BLOCK <= 2**27
        monkeypatch.setattr(module, "BLOCK", 2**16)
    for answers in (lambda: workload.of_products(distributions), lambda: answers_of(model, workload.cliques)):
        tracemalloc.start()
        found = answers()
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert found.sum() == pytest.approx(1) and peak < 7e6


def test_the_queries_are_in_row_major_order_by_hand():
    workload = QueryWorkload(SIZES, (("b",), ("a", "d")))
    assert len(workload) == 8
    assert [workload.cell(query) for query in (0, 1, 2, 7)] == [{"b": 0}, {"b": 1}, {"a": 0, "d": 0}, {"a": 2, "d": 1}]
    rows = np.array([[0, 0, 3, 1], [0, 1, 2, 1], [2, 1, 0, 0], [2, 1, 1, 1]])
    np.testing.assert_array_equal(workload.of_rows(rows), [0.25, 0.75, 0, 0.5, 0, 0, 0.25, 0.25])


def test_the_overlap_of_a_query_with_itself_holds_what_it_counts():
    workload, table = QueryWorkload(SIZES, WORKLOADS["mixed"]), histogram(codes())
    sums = [table[workload.overlap(query, query)].sum() for query in range(len(workload))]
    np.testing.assert_allclose(sums, workload.of_histogram(table), rtol=1e-12, atol=1e-15)


def test_an_overlap_holds_what_both_queries_count():
    workload, table = QueryWorkload(SIZES, WORKLOADS["mixed"]), np.arange(48.0).reshape(tuple(SIZES.values()))
    counted = np.zeros((len(workload), *table.shape), dtype=bool)
    for query in range(len(workload)):
        counted[query][workload.overlap(query, query)] = True
    for query, other in product(range(40, len(workload)), repeat=2):
        both = workload.overlap(query, other)
        expected = table[counted[query] & counted[other]]
        assert (both is None) == (not expected.size)
        assert both is None or sorted(np.ravel(table[both])) == sorted(expected)


@pytest.mark.parametrize("cliques", [(), ((),), (("a", "z"),), (("b", "a"),), (("a",), ("a",))])
def test_what_is_no_workload_is_refused(cliques):
    with pytest.raises(InferenceError):
        QueryWorkload(SIZES, cliques)
