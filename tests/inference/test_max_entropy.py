"""Maximum-entropy distributions: their queries, means and covariances against sums over all cells."""

from itertools import combinations

import numpy as np
import pytest

from dpbench.inference.max_entropy import MaxEntropy, contrasts
from dpbench.inference.measurements import Measurement
from dpbench.inference.residuals import Residuals

SIZES = {"a": 3, "b": 2, "c": 1, "d": 4}
PAIRS = tuple(combinations(SIZES, 2))
CELLS = np.indices(tuple(SIZES.values())).reshape(len(SIZES), -1).T


def queries(family):
    """b of each cell (cells, k), query by query."""
    columns = []
    for r in family.subsets:
        product = np.ones((len(CELLS), 1))
        for name in r:
            own = contrasts(SIZES[name]).T[CELLS[:, list(SIZES).index(name)]]
            product = (product[:, :, None] * own[:, None, :]).reshape(len(CELLS), -1)
        columns.append(product)
    return np.concatenate(columns, axis=1)


@pytest.mark.parametrize("cliques", [PAIRS, (("a", "b", "d"),), (("a",), ("b", "d"))])
def test_distribution_mean_and_covariance_are_sums_over_all_cells(cliques):
    family = MaxEntropy(SIZES, cliques)
    b, theta = queries(family), np.random.default_rng(0).normal(size=family.parameters)
    p = np.exp(b @ theta)
    p /= p.sum()
    found = family.distribution(theta)
    np.testing.assert_allclose(found.ravel(), p, rtol=1e-12)
    np.testing.assert_allclose(family.mean(found), p @ b, atol=1e-14)
    np.testing.assert_allclose(family.covariance(found), np.cov(b.T, aweights=p, ddof=0), atol=1e-14)


def test_the_queries_are_of_full_rank_and_as_many_as_the_marginals_leave_free():
    family = MaxEntropy(SIZES, PAIRS)
    b = queries(family)
    assert b.shape[1] == family.parameters == 2 + 1 + 3 + 2 * 1 + 2 * 3 + 1 * 3
    assert np.linalg.matrix_rank(np.column_stack([b, np.ones(len(b))])) == family.parameters + 1


def test_statistics_are_the_sums_of_the_queries_over_the_rows():
    family, rng = MaxEntropy(SIZES, PAIRS), np.random.default_rng(1)
    counts = rng.poisson(5, tuple(SIZES.values())).astype(float)
    drop = [tuple(i for i, name in enumerate(SIZES) if name not in r) for r in PAIRS]
    tables = [Measurement(r, counts.sum(axis=axes), 2.0) for r, axes in zip(PAIRS, drop, strict=True)]
    s, variances = family.statistics(Residuals.of(SIZES, tables))
    np.testing.assert_allclose(s, counts.ravel() @ queries(family), atol=1e-12)
    single = family.subsets.index(("a",))  # measured three times, with noise summed over 2, 1 and 4 cells
    assert variances[family.starts[single]] == pytest.approx(4 / (1 / 2 + 1 / 1 + 1 / 4))


def test_noise_of_statistics_has_the_stated_variances():
    """1,000 repetitions: a ratio outside of 4.5 standard errors of 1 has a probability of 1e-5 for each of 12."""
    sizes = {"a": 3, "b": 3}
    family, rng = MaxEntropy(sizes, (("a", "b"), ("a",))), np.random.default_rng(2)

    def noisy():
        tables = [
            Measurement(("a", "b"), rng.normal(0, 2.0, (3, 3)), 2.0),
            Measurement(("a",), rng.normal(size=3), 1.0),
        ]
        return family.statistics(Residuals.of(sizes, tables))

    drawn = np.array([noisy()[0] for _ in range(1000)])
    ratio = drawn.var(axis=0) / noisy()[1]
    assert np.abs(ratio - 1).max() < 4.5 * np.sqrt(2 / 1000)
    assert np.abs(np.corrcoef(drawn.T) - np.eye(8)).max() < 4.5 / np.sqrt(1000)
