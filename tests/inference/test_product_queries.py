"""Product queries: their answers against those of the whole workload, their derivatives against differences."""

import numpy as np
import pytest

from dpbench.inference import product_queries
from dpbench.inference.product_queries import ProductQueries, softmax, softmax_slope
from dpbench.inference.query_workload import QueryWorkload

SIZES = {"a": 2, "b": 3, "c": 4}
WORKLOAD = QueryWorkload(SIZES, (("a", "b", "c"), ("b",), ("a", "c")))
LEVELS, K = 9, 5


def distributions(seed=0):
    return np.random.default_rng(seed).uniform(-1, 1, (LEVELS, K))


def answers(queries, distributions):
    return queries.answers(queries.entries(distributions))


def derivative(f, x, step=1e-6):
    found = np.zeros_like(x)
    for place in np.ndindex(x.shape):
        moved = x.copy()
        moved[place] += step
        found[place] = (f(moved) - f(x)) / step
    return found


def test_the_answers_are_those_of_the_workload_whatever_the_marginal():
    every = ProductQueries(WORKLOAD.columns(np.arange(len(WORKLOAD))), LEVELS)
    np.testing.assert_allclose(answers(every, distributions()), WORKLOAD.of_products(distributions().T), atol=1e-12)
    some = np.array([30, 3, 25, 3])
    few = ProductQueries(WORKLOAD.columns(some), LEVELS)
    np.testing.assert_allclose(answers(few, distributions()), WORKLOAD.of_products(distributions().T)[some], atol=1e-12)


def test_a_query_by_hand():
    """(b = 1) and (a = 1, b = 2, c = 3), of two components."""
    both = ProductQueries(WORKLOAD.columns(np.array([25, 23])), LEVELS)
    two = np.zeros((LEVELS, 2))
    two[3] = 0.2, 0.6  # b = 1
    two[1], two[4], two[8] = (0.5, 0.1), (0.4, 0.2), (0.3, 1.0)
    assert answers(both, two) == pytest.approx([0.4, (0.06 + 0.02) / 2])


def test_the_derivative_is_that_of_the_answers():
    asked = ProductQueries(WORKLOAD.columns(np.array([0, 7, 7, 25, 28, 33])), LEVELS)
    slopes = np.array([1.0, -2.0, 0.5, 3.0, 1.0, -1.0])
    expected = derivative(lambda x: float(slopes @ answers(asked, x)), distributions())
    np.testing.assert_allclose(asked.slope(asked.entries(distributions()), slopes), expected, atol=1e-6)


@pytest.mark.parametrize("most", [1, 30, 10_000])
def test_the_derivative_of_many_queries_is_the_sum_of_those_of_some(most, monkeypatch):
    """All have 33 * 3 * 5 entries; no more than `most`, or those of one query, are taken at a time."""
    taken, entries = [], ProductQueries.entries
    monkeypatch.setattr(product_queries, "BLOCK", most)
    monkeypatch.setattr(
        ProductQueries, "entries", lambda *given: (found := entries(*given), taken.append(found.size))[0]
    )
    asked, slopes = ProductQueries(WORKLOAD.columns(np.arange(len(WORKLOAD))), LEVELS), np.linspace(-1, 2, 35)
    found = asked.slope_at(distributions(), slopes)
    assert max(taken) <= max(most, 15)
    np.testing.assert_allclose(found, asked.slope(asked.entries(distributions()), slopes), atol=1e-12)


def test_the_derivative_of_the_softmax():
    slope, sizes = distributions(1), list(SIZES.values())
    expected = derivative(lambda x: float((slope * softmax(x, sizes)).sum()), distributions())
    np.testing.assert_allclose(softmax_slope(softmax(distributions(), sizes), slope, sizes), expected, atol=1e-5)
    np.testing.assert_allclose(softmax(1e4 * distributions(), sizes)[2:5].sum(axis=0), 1)


def test_single_precision_is_kept():
    asked, small = ProductQueries(WORKLOAD.columns(np.array([0, 33])), LEVELS), distributions().astype(np.float32)
    assert (
        asked.slope(asked.entries(small), np.ones(2)).dtype == softmax(small, list(SIZES.values())).dtype == np.float32
    )
    np.testing.assert_allclose(answers(asked, small), answers(asked, distributions()), atol=1e-6)
