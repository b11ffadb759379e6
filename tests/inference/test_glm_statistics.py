"""The statistics of generalised linear models: their order, their sums, and the norms of equation (7)."""

import numpy as np
import pytest

from dpbench.errors import UserError
from dpbench.inference.glm_statistics import FAMILIES, blocks, sum_statistics, triangle, weights

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("d", [1, 2, 5])
def test_sums_are_those_of_the_rows_in_the_documented_order(family, d):
    X, y = RNG.normal(size=(40, d)), RNG.integers(0, 6, 40).astype(float)
    if family == "logistic":
        y = np.where(y > 2, 1.0, -1.0)
    pairs = [(i, j) for i in range(d) for j in range(i, d)]
    assert list(zip(*(one.tolist() for one in triangle(d)), strict=True)) == pairs
    plain = [[*x, *(x[i] * x[j] for i, j in pairs)] for x in X]
    by_hand = {
        "logistic": [[*(label * x), *row[d:]] for row, x, label in zip(plain, X, y, strict=True)],
        "poisson": [[*row, *(count * np.array(row))] for row, count in zip(plain, y, strict=True)],
    }[family]
    rows = np.array(by_hand)
    assert np.allclose(sum_statistics(X[:1], y[:1], family), rows[0], rtol=1e-14)
    assert np.allclose(sum_statistics(X, y, family), rows.sum(axis=0), rtol=1e-12, atol=1e-12)
    parts = blocks(family, d)
    assert [part.start for part in parts[1:]] == [part.stop for part in parts[:-1]]
    assert (parts[0].start, parts[-1].stop) == (0, rows.shape[1])
    assert len(weights(family, d)) == rows.shape[1]


@pytest.mark.parametrize("d", [1, 3])
def test_weighted_pairs_have_the_norm_of_the_papers_second_order_terms(d):
    x, z = RNG.normal(size=(2, d))
    one, two = (sum_statistics(row[None], np.ones(1), "logistic") * weights("logistic", d) for row in (x, z))
    first, second = blocks("logistic", d)
    assert np.sum((one - two)[first] ** 2) == pytest.approx(x @ x + z @ z - 2 * (x @ z))
    assert np.sum((one - two)[second] ** 2) == pytest.approx((x @ x) ** 2 + (z @ z) ** 2 - 2 * (x @ z) ** 2)


def test_an_unknown_family_is_named():
    with pytest.raises(UserError, match="unknown family 'binomial'"):
        blocks("binomial", 2)
