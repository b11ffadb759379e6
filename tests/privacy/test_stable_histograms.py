"""Histograms over unknown levels, and their cost. Statistical tests fix their seed and state their error rate."""

import math

import numpy as np
import pytest
from scipy.stats import norm

from dpbench.privacy.accounting import gaussian_delta, spent
from dpbench.privacy.budget import Budget
from dpbench.privacy.ledger import Ledger
from dpbench.privacy.stable_histograms import stable_cost, stable_histograms, stages

BUDGET = Budget(1.0, 1e-2)


def released(counts, stage, seed):
    return stable_histograms(np.random.default_rng(seed), Ledger(), stage, counts)


def test_all_stages_together_spend_the_budget():
    ledger, columns = Ledger(), {f"column {k}": {"a": 3} for k in range(4)}
    steps = stages(BUDGET, 4, {"kinds": 0.2, "values": 0.8})
    for stage in steps:
        stable_histograms(np.random.default_rng(0), ledger, stage, columns)
    cost = stable_cost(ledger, BUDGET)
    assert cost.epsilon == pytest.approx(1.0) and cost.delta == BUDGET.delta and cost.mu is None
    new = sum(stage.columns * stage.failure for stage in steps)
    mu = math.sqrt(sum(event.mu**2 for event in ledger.events))
    assert new + gaussian_delta(1.0, mu) == pytest.approx(BUDGET.delta), "the guarantee of the proof"
    shares = [event.mu**2 / mu**2 for event in ledger.events]
    assert shares == pytest.approx([0.05] * 4 + [0.2] * 4)
    assert spent(ledger, BUDGET.delta).epsilon < 1, "not all of delta is for the noise"


def test_a_level_of_one_row_passes_as_rarely_as_stated():
    """100,000 levels of one row, each released with probability 0.0025: within five standard errors (rate 1e-6)."""
    (stage,) = stages(BUDGET, 2, {"all": 1.0})
    found = released({"a": dict.fromkeys(range(100000), 1), "b": {}}, stage, seed=0)
    assert stage.failure == pytest.approx(0.0025)
    assert len(found["a"]) == pytest.approx(250, abs=5 * math.sqrt(250)) and found["b"] == {}


def test_what_is_released_is_above_the_threshold_with_the_noise_of_the_ledger():
    """40,000 counts far above the threshold: the standard deviation to 2 % (five standard errors)."""
    (stage,) = stages(BUDGET, 1, {"all": 1.0})
    found = released({"a": dict.fromkeys(range(40_000), 1000)}, stage, seed=1)["a"]
    assert len(found) == 40_000 and np.std(list(found.values())) == pytest.approx(stage.multiplier, rel=0.02)
    assert stage.threshold == pytest.approx(1 + stage.multiplier * norm.isf(stage.failure))
    near = released({"a": dict.fromkeys(range(1000), round(stage.threshold))}, stage, seed=2)["a"]
    assert 400 < len(near) < 600 and min(near.values()) > stage.threshold


def test_no_level_without_rows_is_released_and_other_histograms_need_another_stage():
    (stage,) = stages(BUDGET, 1, {"all": 1.0})
    assert released({"a": dict.fromkeys(range(100_000), 0)}, stage, seed=3) == {"a": {}}
    with pytest.raises(ValueError, match="for 1 histograms, not 2"):
        released({"a": {}, "b": {}}, stage, seed=4)
