"""The scores of dependence: their values by hand or by search, and their sensitivities on every small table."""

import math
from itertools import product

import numpy as np
import pytest

from dpbench.mechanisms.dependence import SCORES, closeness, from_independence, information, of_independence


def tables(n, shape):
    """Every table of n rows."""
    cells = math.prod(shape)
    for counts in product(range(n + 1), repeat=cells):
        if sum(counts) == n:
            yield np.array(counts, dtype=float).reshape(shape)


def neighbours(h, relation):
    """The tables with a record added, or with one replaced."""
    for to in np.ndindex(h.shape):
        more = h.copy()
        more[to] += 1
        if relation == "add_remove":
            yield more
        else:
            for gone in zip(*np.nonzero(h), strict=True):
                replaced = more.copy()
                replaced[gone] -= 1
                yield replaced


@pytest.mark.parametrize(
    ("name", "relation", "shape"),
    [
        ("R", "add_remove", (2, 3)),
        ("R", "replace", (2, 3)),
        ("I", "replace", (2, 2)),
        ("I", "replace", (3, 3)),
        ("F", "add_remove", (3, 2)),
        ("F", "replace", (3, 2)),
    ],
)
def test_no_record_changes_a_score_by_more_than_its_sensitivity(name, relation, shape):
    score, binary = SCORES[name], max(shape) <= 2 or name == "F"
    for n in range(4 if shape == (3, 3) else 5):
        bound = score.sensitivity(relation, n, binary)
        for h in tables(n, shape):
            before = score.of(h)
            for after in map(score.of, neighbours(h, relation)):
                assert abs(after - before) <= bound + 1e-12, (h, bound)


def test_the_bounds_are_nearly_attained():
    """n equal records and one that differs from them in both attributes."""
    n = 1000
    equal, one_more = np.array([[n, 0.0], [0, 0]]), np.array([[n, 0.0], [0, 1]])
    assert from_independence(equal) == 0
    assert from_independence(one_more) == pytest.approx(4 * n / (n + 1))
    assert of_independence("add_remove", n) == 4
    replaced = np.array([[n - 1, 0.0], [0, 1]])
    bound = SCORES["I"].sensitivity("replace", n, True)
    assert bound > information(replaced) > 0.99 * bound
    assert closeness(np.array([[1.0, 0.0]])) - closeness(np.array([[0.0, 0.0]])) == -0.5


def test_values_by_hand():
    h = np.array([[30.0, 10.0], [10.0, 50.0]])
    assert from_independence(h) == pytest.approx(4 * (30 - 40 * 40 / 100))
    assert information(h) == pytest.approx(
        sum(c * math.log(c * 100 / (a * b)) for c, a, b in [(30, 40, 40), (10, 40, 60), (10, 60, 40), (50, 60, 60)])
    )
    assert closeness(h) == -20, "30 of 50 keep the first level"
    assert closeness(np.array([[50.0, 0.0], [0.0, 50.0]])) == 0
    for score in SCORES.values():
        assert score.of(np.zeros((2, 2))) == 0


def test_the_best_assignment_is_found():
    rng = np.random.default_rng(0)
    for _ in range(30):
        h = rng.integers(0, 20, size=(5, 2)).astype(float)
        n = h.sum()
        best = -math.inf
        for assigned in product([0, 1], repeat=5):
            kept = [sum(row[level] for row, to in zip(h, assigned, strict=True) if to == level) for level in (0, 1)]
            best = max(best, -sum(max(n / 2 - k, 0) for k in kept))
        assert closeness(h) == best
