"""What the mechanism itself released: coefficients, or answers to queries."""

import pickle

import numpy as np
import pytest

from dpbench.data.encode import Design
from dpbench.errors import ContractError, NoEstimateError
from dpbench.models.fit import check_fit
from dpbench.models.released import released_answers, released_coefficients
from dpbench.privacy.budget import Budget
from dpbench.privacy.ledger import Ledger
from dpbench.releases import Coefficients, Release


def test_the_fit_is_what_was_released_and_a_release_without_is_refused(small_domain):
    design, theta = Design(small_domain, "grade"), np.arange(5.0)
    release = Release(small_domain, Budget(1.0), Ledger(), (Coefficients(theta),))
    assert np.array_equal(released_coefficients(release, design=design).coefficients, theta)
    with pytest.raises(ContractError, match="holds no coefficients; it offers nothing"):
        released_coefficients(Release(small_domain, Budget(1.0), Ledger()), design=design)


def test_answers_need_no_model_and_predict_nothing(small_domain):
    release = Release(small_domain, Budget(1.0), Ledger())
    fit = check_fit(released_answers(release, design=Design(small_domain, "grade")))
    pickle.dumps(fit)
    with pytest.raises(NoEstimateError, match="model=released_answers predicts nothing"):
        fit.predict(np.zeros((3, 5)))
