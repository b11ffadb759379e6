"""Budgets refuse what is no budget."""

import math

import pytest

from dpbench.errors import UserError
from dpbench.privacy.budget import Budget


@pytest.mark.parametrize("epsilon", [0, -1, math.nan])
def test_epsilon_must_be_positive(epsilon):
    with pytest.raises(UserError, match="epsilon must be greater than 0"):
        Budget(epsilon)


@pytest.mark.parametrize("delta", [0, 1, -0.1, 2])
def test_delta_must_lie_inside_its_range(delta):
    with pytest.raises(UserError, match="delta must lie between 0 and 1"):
        Budget(1.0, delta)
