"""What a model may return."""

import numpy as np
import pytest

from dpbench.errors import ContractError
from dpbench.models.fit import Fit, check_fit


@pytest.mark.parametrize(
    ("fit", "message"),
    [
        (np.zeros(2), "not numpy.ndarray"),
        (Fit(np.zeros(3)), "must have the shape (2,)"),
        (Fit(np.array([1.0, np.nan])), "must be finite"),
        (Fit(), "must have the shape (2,)"),
        (Fit(np.zeros(2), intervals=np.zeros((3, 2))), "the intervals of the fit must have the shape (2, 2)"),
        (Fit(np.zeros(2), covariance=np.zeros(2)), "the covariance of the fit must have the shape (2, 2)"),
        (Fit(np.zeros(2), draws=np.zeros((9, 3))), "the draws of the fit must have the shape (9, 2)"),
        (Fit(np.zeros(2), notes={"a": np.float32(1)}), "numpy.float32"),
        (Fit(predictor=5), "must be a function"),
    ],
)
def test_what_is_no_fit(fit, message):
    with pytest.raises(ContractError) as caught:
        check_fit(fit, 2)
    assert message in str(caught.value)


def test_a_right_fit_passes():
    assert check_fit(Fit(np.zeros(2)), 2)
    assert check_fit(Fit(np.zeros(2), covariance=np.eye(2), draws=np.zeros((9, 2))), 2)
