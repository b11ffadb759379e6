"""Coefficients, and the covariance of their noise."""

import numpy as np
import pytest

from dpbench.errors import ContractError
from dpbench.grid.tiny_tables import tiny_table
from dpbench.releases import Coefficients

DOMAIN = tiny_table().domain


@pytest.mark.parametrize("covariance", [None, np.diag([1.0, 2.0])])
def test_coefficients_come_back_with_their_covariance(covariance):
    part = Coefficients(np.array([1.0, -2.0]), covariance)
    part.check(DOMAIN)
    back = Coefficients.from_parts(DOMAIN, *part.to_parts())
    assert np.array_equal(back.values, part.values)
    assert (back.covariance is None) if covariance is None else np.array_equal(back.covariance, covariance)


@pytest.mark.parametrize(
    ("values", "covariance", "message"),
    [
        (np.array([1.0, np.inf]), None, "must be finite"),
        (np.zeros((2, 1)), None, r"must have the shape \(2,\)"),
        (np.zeros(2), np.eye(3), r"the covariance of the coefficients must have the shape \(2, 2\)"),
    ],
)
def test_what_is_refused(values, covariance, message):
    with pytest.raises(ContractError, match=message):
        Coefficients(values, covariance).check(DOMAIN)
