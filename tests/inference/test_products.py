"""Products of distributions side by side: their tables by definition, their derivatives by differences."""

import numpy as np
import pytest

from dpbench.inference import products
from dpbench.inference.products import large_table, softmax, softmax_slope, table, table_slopes

STARTS = np.array([0, 3])


def test_softmax_sums_to_one_within_each_attribute():
    distribution = softmax(np.array([[1.0, 2, 3, 900, 900], [0, 0, 0, -5, 5]]).T, STARTS)
    np.testing.assert_allclose(np.add.reduceat(distribution, STARTS), 1.0)
    np.testing.assert_allclose(distribution[3:, 0], 0.5)
    np.testing.assert_allclose(distribution[:3, 0], np.exp([1, 2, 3]) / np.exp([1, 2, 3]).sum())


def test_the_slope_of_softmax_is_that_of_differences():
    rng = np.random.default_rng(0)
    logits, slope, step = rng.normal(size=(5, 2)), rng.normal(size=(5, 2)), 1e-6 * rng.normal(size=(5, 2))
    change = np.vdot(slope, softmax(logits + step, STARTS) - softmax(logits - step, STARTS))
    assert change == pytest.approx(2 * np.vdot(softmax_slope(softmax(logits, STARTS), slope, STARTS), step), rel=1e-5)


@pytest.mark.parametrize("widths", [(1,), (3,), (3, 2), (2, 1, 1), (2, 3, 4), (3, 2, 2, 2)])
@pytest.mark.parametrize("most", [1, 25, 10_000])
def test_a_table_is_the_same_in_parts_of_any_size(widths, most, monkeypatch):
    parts = [np.random.default_rng(1).random((5, width)) for width in widths]
    whole = table(parts)
    monkeypatch.setattr(products, "BLOCK", most)
    np.testing.assert_allclose(large_table(parts), whole, rtol=1e-12)


@pytest.mark.parametrize("widths", [(3,), (3, 2), (2, 3, 4), (2, 3, 2, 3)])
def test_a_table_is_the_mean_of_the_products_and_its_slopes_are_those_of_differences(widths):
    rng = np.random.default_rng(1)
    parts = [rng.random((5, width)) for width in widths]
    by_hand = np.zeros(widths)
    for k in range(5):
        cells = np.ones(())
        for part in parts:
            cells = np.multiply.outer(cells, part[k])
        by_hand += cells / 5
    np.testing.assert_allclose(table(parts), by_hand)
    slope = rng.normal(size=widths)
    for j, found in enumerate(table_slopes(parts, slope)):
        step = rng.normal(size=parts[j].shape)  # the table is linear in each part
        moved = table([part + step if i == j else part for i, part in enumerate(parts)])
        assert np.vdot(found, step) == pytest.approx(np.vdot(slope, moved - by_hand))
