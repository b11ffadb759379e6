"""Shared sums equal those of numpy, one scope at a time."""

import numpy as np
import pytest

from dpbench.inference.sums import Addition, Summation, summed
from dpbench.inference.trees import bits

SHAPES = [(2, 12, 8, 2, 3, 6), (3, 1, 4, 40, 2), (5,), (1, 1), (2, 2, 2, 2, 2, 2, 2), (300, 7, 2)]


def masks_of(rng, shape, count):
    """Random scopes, nothing and everything among them."""
    return [0, 2 ** len(shape) - 1, *rng.integers(0, 2 ** len(shape), count).tolist()]


def sizes(mask, shape):
    return [shape[i] for i in bits(mask)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("seed", range(4))
def test_sums_onto_many_scopes_are_those_of_numpy(shape, seed):
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(shape)).tolist()
    buffer = np.empty([shape[i] for i in order])
    ascending = buffer.transpose(np.argsort(order))
    summation = Summation(buffer, order, shape)
    outs = {mask: np.empty(sizes(mask, shape)) for mask in masks_of(rng, shape, 12)}
    for mask, out in outs.items():
        summation.emit(mask, out)
    for _ in range(2):  # the plan is made once, and the values change
        buffer[...] = rng.random(buffer.shape)
        summation.write()
        for mask, out in outs.items():
            gone = tuple(i for i in range(len(shape)) if not mask >> i & 1)
            np.testing.assert_allclose(out, ascending.sum(axis=gone), rtol=1e-13)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("seed", range(4))
def test_a_table_is_the_sum_of_its_inputs_which_are_left_alone(shape, seed):
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(shape)).tolist()
    target = np.empty([shape[i] for i in order])
    addition = Addition(target, order, shape)
    tables = [(mask, rng.normal(size=sizes(mask, shape))) for mask in masks_of(rng, shape, 1 + 4 * seed)[seed % 3 :]]
    for mask, table in tables:
        addition.attach(mask, table)
    for _ in range(2):
        before = [table.copy() for _, table in tables]
        addition.fill()
        wide = [table.reshape([n if mask >> i & 1 else 1 for i, n in enumerate(shape)]) for mask, table in tables]
        expected = sum(wide, np.zeros(shape)).transpose(order)
        np.testing.assert_allclose(target, expected, rtol=1e-12, atol=1e-12)
        for (_, table), old in zip(tables, before, strict=True):
            np.testing.assert_array_equal(table, old)
            table[...] = old + 1


def test_a_sum_of_nothing_is_zero_and_later_terms_and_scopes_count():
    target, out = np.ones((2, 3)), np.empty(3)
    addition, summation = Addition(target, [0, 1], (2, 3)), Summation(target, [0, 1], (2, 3))
    addition.fill()
    assert not target.any()
    addition.attach(0b10, np.arange(3.0))
    addition.fill()
    summation.write()
    summation.emit(0b10, out)
    summation.write()
    assert out.tolist() == [0, 2, 4]


def test_logarithms_of_zero_stay_so():
    target = np.empty((2, 3))
    addition = Addition(target, [0, 1], (2, 3))
    addition.attach(0b01, np.array([-np.inf, 1.0]))
    addition.attach(0b10, np.zeros(3))
    addition.fill()
    assert target.tolist() == [[-np.inf] * 3, [1.0] * 3]


@pytest.mark.parametrize("shape", [*SHAPES, (12, 2, 30, 4), (4000, 2), (2, 3, 900), (3000, 5, 1)])
def test_one_sum_is_that_of_numpy_whatever_the_order_in_memory(shape):
    rng = np.random.default_rng(0)
    for axes in [(), *(tuple(np.flatnonzero(rng.random(len(shape)) < 0.5).tolist()) for _ in range(12))]:
        order = rng.permutation(len(shape))
        table = rng.random([shape[i] for i in order]).transpose(np.argsort(order))
        whole = table.copy()
        np.testing.assert_allclose(summed(table, axes), whole.sum(axis=axes), rtol=1e-13)
        np.testing.assert_array_equal(table, whole)
