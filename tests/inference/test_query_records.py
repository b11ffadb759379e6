"""The best record for a weighted sum of queries: both ways of searching agree with trying all."""

import math
from itertools import product

import numpy as np
import pytest

from dpbench.inference.query_records import Search

SIZES = {"a": 3, "b": 2, "c": 4, "d": 5}
BY_HIGHS = Search(max_cells=1)


def value(x, cells, weights, linear):
    codes = dict(zip(SIZES, x, strict=True))
    held = (w for cell, w in zip(cells, weights, strict=True) if all(codes[name] == v for name, v in cell.items()))
    return math.fsum(held) + sum(float(linear[name][code]) for name, code in codes.items())


def problem(seed):
    rng = np.random.default_rng(seed)
    names = list(SIZES)
    chosen = [sorted(rng.choice(4, rng.integers(1, 5), replace=False)) for _ in range(12)]
    cells = [{names[j]: int(rng.integers(SIZES[names[j]])) for j in places} for places in chosen]
    linear = {name: rng.normal(scale=0.3, size=size) for name, size in SIZES.items()}
    return cells, rng.choice([-2.0, -1.0, 1.0, 1.5, 3.0], 12), linear


@pytest.mark.parametrize("search", [Search(), BY_HIGHS])
@pytest.mark.parametrize("seed", range(8))
def test_no_record_is_better(search, seed):
    given = problem(seed)
    x, best = search.best(SIZES, *given)
    largest = max(value(other, *given) for other in product(*map(range, SIZES.values())))
    assert best
    assert value(x, *given) == pytest.approx(largest, abs=1e-6)


@pytest.mark.parametrize("search", [Search(), BY_HIGHS])
def test_attributes_of_no_query_follow_the_linear_terms_alone(search):
    linear = {name: np.arange(size) * -0.1 for name, size in SIZES.items()} | {"d": np.array([0.0, 0, 0, 1, 0])}
    x, best = search.best(SIZES, [{"a": 2, "c": 1}], np.array([5.0]), linear)
    assert (x.tolist(), best) == ([2, 0, 1, 3], True)


def test_no_queries_are_a_problem_too():
    linear = {name: -np.arange(size, dtype=float) for name, size in SIZES.items()}
    for search in (Search(), BY_HIGHS):
        assert search.best(SIZES, [], np.zeros(0), linear)[0].tolist() == [0, 0, 0, 0]


def test_a_search_that_runs_out_of_time_says_so_and_has_a_record():
    rng = np.random.default_rng(0)
    sizes = {f"x{j}": 20 for j in range(30)}
    cells = [{f"x{j}": int(rng.integers(20)) for j in rng.choice(30, 3, replace=False)} for _ in range(400)]
    linear = {name: np.zeros(20) for name in sizes}
    x, best = Search(seconds=1e-3).best(sizes, cells, np.ones(400), linear)
    assert not best
    assert x.shape == (30,) and (x >= 0).all() and (x < 20).all()
