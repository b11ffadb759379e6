"""Where an estimate begins."""

import numpy as np
import pytest

from dpbench.inference import Measurement
from dpbench.inference.measurements import fold
from dpbench.inference.model import oracle_of
from dpbench.inference.residuals import on_simplex
from dpbench.inference.starts import carried, divergence, independent, matched

SIZES = {"a": 2, "b": 3, "c": 2}
PAIR = np.array([[10.0, 20, 30], [20, 10, 10]])


def start(measurements):
    target = fold(SIZES, measurements)
    return target, oracle_of(SIZES, target.cliques)


def test_the_cold_start_is_independent_with_the_measured_marginals():
    target, oracle = start(
        [Measurement(("a", "b"), PAIR, 0.01), Measurement(("b", "c"), np.full((3, 2), 100 / 6), 5.0)]
    )
    _, mu = oracle.calibrate(independent(target), target.total)
    table = oracle.split(mu)[0]
    expected = np.outer(target.tables[0].sum(axis=1), target.tables[0].sum(axis=0)) / target.total
    np.testing.assert_allclose(table, expected, rtol=1e-6)


def test_old_potentials_go_to_the_first_clique_that_holds_theirs():
    target, oracle = start([Measurement(("a", "b"), PAIR, 1.0), Measurement(("b", "c"), np.ones((3, 2)), 1.0)])
    old = {("a", "b"): PAIR, ("b",): np.array([1.0, 2, 3]), ("a", "c"): np.ones((2, 2))}
    tables = oracle.split(carried(target, old))
    np.testing.assert_array_equal(tables[0], PAIR + np.array([1.0, 2, 3]))
    np.testing.assert_array_equal(tables[1], 0.0)  # no measured clique holds ("a", "c"): it is left out


def test_one_clique_is_matched_to_its_table_on_the_simplex():
    noisy = np.array([[-4.0, 50, 20], [20, 0, 4]])
    target, oracle = start([Measurement(("a", "b"), noisy, 3.0), Measurement(("b", "c"), np.full((3, 2), 15.0), 3.0)])
    theta = independent(target)
    _, mu = oracle.calibrate(theta, target.total)
    theta[oracle.spans[0]] += matched(target, 0, oracle.split(mu)[0]).ravel()
    _, mu = oracle.calibrate(theta, target.total)
    table = oracle.split(mu)[0]
    np.testing.assert_allclose(table, on_simplex(target.tables[0], target.total), atol=0.5)
    assert table.min() > 0.01  # a cell without a count keeps a tenth of its noise


def test_the_divergence_is_that_of_the_worst_clique():
    target, oracle = start([Measurement(("a", "b"), PAIR, 1.0), Measurement(("c",), np.array([25.0, 75.0]), 1.0)])
    flat = np.concatenate([np.full(6, target.total / 6), target.tables[1].ravel()])
    share = target.tables[0]
    assert divergence(oracle, target, flat) == pytest.approx(np.sum(share * np.log(share / (target.total / 6))))
