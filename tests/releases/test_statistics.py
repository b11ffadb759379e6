"""Sufficient statistics: the covariance of their noise."""

import numpy as np
import pytest

from dpbench.data.encode import Design, second_moments
from dpbench.mechanisms.ssp import ssp
from dpbench.privacy.budget import Budget
from dpbench.releases import SufficientStatistics


def test_the_covariance_is_that_of_the_noise_in_its_order(small_table, small_domain):
    """2,000 draws; each variance within 6 standard errors, each correlation too (error rate below 1e-6)."""
    design = Design(small_domain.project(["age", "sex", "grade"]), "grade")
    table, runs = small_table.project(["age", "sex", "grade"]), 2000
    xtx, xty = second_moments(*design.encode(table))
    upper = np.triu_indices(3)
    errors = []
    for seed in range(runs):
        found = ssp(table, Budget(1.0), np.random.default_rng(seed), design=design)[SufficientStatistics]
        errors.append(np.concatenate([(found.xtx - xtx)[upper], found.xty - xty]))
    assert found.covariance.shape == (9, 9)
    root = np.sqrt(np.diag(found.covariance))
    correlation = np.cov(errors, rowvar=False) / np.outer(root, root)
    np.testing.assert_allclose(np.diag(correlation), 1, atol=6 * np.sqrt(2 / runs))
    np.testing.assert_allclose(correlation - np.diag(np.diag(correlation)), 0, atol=6 / np.sqrt(runs))
    assert root[:6] == pytest.approx(found.xtx_sd)
    assert root[6:] == pytest.approx(found.xty_sd)
