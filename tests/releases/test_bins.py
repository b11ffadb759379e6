"""Sums of bins: storing, and the same bins without noise."""

from dataclasses import replace

import numpy as np
import pytest

from dpbench.data.domain import Attribute, Domain
from dpbench.data.encode import Design
from dpbench.data.table import Table
from dpbench.errors import ContractError
from dpbench.grid.tiny_tables import tiny_table
from dpbench.mechanisms.binagg import binagg
from dpbench.privacy.budget import Budget
from dpbench.releases import BinSums

TABLE = tiny_table()
DESIGN = Design(TABLE.domain, "y", exact=True)


def bins_of(epsilon, **settings):
    return binagg(TABLE, Budget(epsilon, 1e-5), np.random.default_rng(0), design=DESIGN, **settings)[BinSums]


def test_bins_come_back():
    part = bins_of(5.0)
    back = BinSums.from_parts(TABLE.domain, *part.to_parts())
    assert all(np.array_equal(getattr(back, name), value) for name, value in vars(part).items())
    assert back.counts.dtype == np.int64


def test_without_noise_they_are_what_the_mechanism_tends_to():
    """At epsilon = 1e8 the noisy sums are those of the rows, in the same bins."""
    noisy = bins_of(1e8, theta=20.0)
    exact = noisy.exact(TABLE, DESIGN)
    kept = [
        np.flatnonzero((exact.lower == low).all(axis=1) & (exact.upper == high).all(axis=1))
        for low, high in zip(noisy.lower, noisy.upper, strict=True)
    ]
    order = np.concatenate(kept)
    assert len(order) == len(noisy.counts) > 5
    assert np.array_equal(exact.counts[order], noisy.counts)
    np.testing.assert_allclose(exact.sums[order], noisy.sums, atol=5e-3)
    np.testing.assert_allclose(exact.targets[order], noisy.targets, atol=5e-3)
    assert not exact.sums_sd.any() and exact.targets_sd == 0


def test_a_row_on_an_edge_is_in_the_upper_bin_and_on_the_top_of_the_box_in_the_last():
    domain = Domain((Attribute.discrete("x", [0, 1, 2]), Attribute.discrete("y", [0, 1])))
    design = Design(domain, "y", intercept=False, scaled=False)
    table = Table(domain, np.array([[0, 1], [1, 1], [2, 1], [2, 0]]))
    nothing = np.zeros((2, 1))
    part = BinSums(
        np.array([[0.0], [1.0]]), np.array([[1.0], [2.0]]), np.ones(2, int), nothing, np.zeros(2), nothing, 1.0
    )
    exact = part.exact(table, design)
    assert (exact.counts.tolist(), exact.sums.ravel().tolist(), exact.targets.tolist()) == ([1, 3], [0, 5], [1, 2])
    only = part.exact(table.take(np.array([0])), design)
    assert only.lower.tolist() == [[0.0]]
    assert part.exact(table.take(np.array([], dtype=int)), design).sums.shape == (0, 1)


def test_arrays_of_another_number_of_bins_are_refused():
    part = bins_of(5.0)
    with pytest.raises(ContractError, match="counts of the bins must have the shape"):
        replace(part, counts=part.counts[1:]).check(TABLE.domain)
