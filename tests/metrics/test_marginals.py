from itertools import combinations

import numpy as np
import pytest

from dpbench.data.domain import Attribute, Domain
from dpbench.data.table import Table
from dpbench.errors import UserError
from dpbench.metrics.marginals import marginal_distances


def table(sizes, rows, seed):
    rng = np.random.default_rng(seed)
    domain = Domain(tuple(Attribute.categorical(f"a{j}", range(size)) for j, size in enumerate(sizes)))
    return Table(domain, np.stack([rng.integers(0, size, rows) for size in sizes], axis=1))


@pytest.mark.parametrize("degree", [1, 2, 3, 5])
@pytest.mark.parametrize("rows", [(200, 300), (3, 7), (50, 1)])
def test_the_distances_are_those_of_the_dense_tables(degree, rows):
    sizes = [3, 2, 7, 4, 11]
    real, synthetic = table(sizes, rows[0], 0), table(sizes, rows[1], 1)
    by_hand = [
        np.abs(real.marginal(clique) / rows[0] - synthetic.marginal(clique) / rows[1]).sum()
        for clique in combinations(real.domain.names, degree)
    ]
    np.testing.assert_allclose(marginal_distances(real, synthetic, degree), by_hand, atol=1e-12)


def test_marginals_of_fewer_attributes_are_no_farther_apart():
    real, synthetic = table([4, 3, 5, 2], 60, 0), table([4, 3, 5, 2], 40, 1)
    largest = [marginal_distances(real, synthetic, degree).max() for degree in (1, 2, 3, 4)]
    assert largest == sorted(largest)


def test_a_workload_that_no_memory_holds_is_no_matter():
    real, synthetic = table([2000] * 5, 300, 0), table([2000] * 5, 300, 1)  # 16 * 10^12 cells a marginal
    assert marginal_distances(real, synthetic, 4) == pytest.approx(np.full(5, 2.0))
    assert marginal_distances(real, real, 5) == pytest.approx(np.zeros(1))


def test_marginals_of_too_many_cells_are_left_out():
    real, synthetic = table([3, 2, 7, 4], 60, 0), table([3, 2, 7, 4], 60, 1)
    cells = [a * b for a, b in combinations([3, 2, 7, 4], 2)]
    every = marginal_distances(real, synthetic, 2)
    for most in (5, 6, 14, 1000):
        kept = [distance for distance, count in zip(every, cells, strict=True) if count <= most]
        assert marginal_distances(real, synthetic, 2, max_cells=most).tolist() == kept


@pytest.mark.parametrize("degree", [0, 4])
def test_a_degree_beyond_the_attributes_is_refused(degree):
    with pytest.raises(UserError, match=f"degree={degree}: .* between 1 and 3"):
        marginal_distances(table([2, 2, 2], 5, 0), table([2, 2, 2], 5, 1), degree)


def test_a_table_without_rows_is_refused():
    with pytest.raises(UserError, match="without rows"):
        marginal_distances(table([2, 2], 5, 0), table([2, 2], 0, 1), 1)
