"""AdaSSP: its ridge, and a huge budget."""

import math

import numpy as np
import pytest

from dpbench.data.encode import Design
from dpbench.mechanisms.adassp import adassp
from dpbench.privacy.accounting import spent
from dpbench.privacy.budget import Budget
from dpbench.releases import SufficientStatistics

DELTA = 1e-5


@pytest.fixture
def design(small_domain):
    return Design(small_domain, "grade")


def test_ridge_of_adassp_shrinks_with_the_budget_and_makes_the_matrix_positive(small_table, design):
    """With failure = 0.05 the matrix may be indefinite in 5% of the draws: more than 12 of 100 has odds below 1e-3."""
    ridges = []
    for epsilon in (0.05, 0.5, 5.0):
        releases = [
            adassp(small_table, Budget(epsilon, DELTA), np.random.default_rng(seed), design=design)[
                SufficientStatistics
            ]
            for seed in range(100)
        ]
        lowest = [np.linalg.eigvalsh(s.xtx + s.ridge * np.eye(len(s.xty)))[0] for s in releases]
        assert sum(value <= 0 for value in lowest) <= 12
        ridges.append(np.mean([s.ridge for s in releases]))
    assert ridges[0] > ridges[1] > ridges[2]


def test_the_noise_of_the_public_code_falls_on_the_cross_products(small_table, design):
    """Where the text divides (eps, delta) in thirds, the code has 1/3, 0.95 * 2/3 and 0.05 * 2/3 of them."""
    noise, spent_epsilon = {}, {}
    for calibration in ("paper", "authors"):
        made = adassp(small_table, Budget(1.0, DELTA), np.random.default_rng(0), design=design, calibration=calibration)
        noise[calibration] = {event.label: event.multiplier for event in made.ledger.events}
        spent_epsilon[calibration] = spent(made.ledger, DELTA).epsilon
    ratios = [noise["authors"][label] / noise["paper"][label] for label in noise["paper"]]
    parts = (1 / 3, 0.95 * 2 / 3, 0.05 * 2 / 3)
    expected = [math.sqrt(math.log(2 / (s * DELTA)) / math.log(6 / DELTA)) / (3 * s) for s in parts]
    assert ratios == pytest.approx(expected)
    assert spent_epsilon["paper"] < spent_epsilon["authors"] < 1
