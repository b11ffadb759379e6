"""Calibration against the joint by definition: the normaliser and the marginals of every factor."""

import numpy as np
import pytest

from dpbench.inference.model import oracle_of

from .helpers import marginal, random_cliques, random_sizes


@pytest.mark.parametrize("seed", range(6))
def test_the_normaliser_and_the_marginals_are_those_of_the_joint(seed):
    rng = np.random.default_rng(seed)
    sizes = random_sizes(rng, 5, 4)
    cliques = list(dict.fromkeys([*((name,) for name in sizes), *random_cliques(rng, list(sizes), 4, [2, 3])]))
    oracle = oracle_of(sizes, cliques)
    theta = rng.normal(0, 2, oracle.size)
    logs = np.zeros(tuple(sizes.values()))
    for clique, table in zip(cliques, oracle.split(theta), strict=True):
        logs = logs + table.reshape([n if name in clique else 1 for name, n in sizes.items()])
    log_z, mu = oracle.calibrate(theta, 70.0)
    assert log_z == pytest.approx(np.log(np.exp(logs).sum()))
    joint = np.exp(logs) * 70 / np.exp(logs).sum()
    for clique, table in zip(cliques, oracle.split(mu), strict=True):
        np.testing.assert_allclose(table, marginal(joint, list(sizes), clique), rtol=1e-9, atol=1e-12)
