"""What a metric may return, and the references that it sees."""

import math
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from dpbench.data.encode import Design
from dpbench.data.table import Split
from dpbench.errors import ContractError
from dpbench.grid.tiny_tables import tiny_table
from dpbench.mechanisms.binagg import binagg
from dpbench.mechanisms.mst import mst
from dpbench.mechanisms.ssp import ssp
from dpbench.metrics.evaluation import Evaluation, Reference, Score, check_score
from dpbench.metrics.regression import excess_mse, mse
from dpbench.models.bin_regression import bin_regression
from dpbench.models.estimators import random_forest
from dpbench.models.linear import linear_marginals, linear_statistics
from dpbench.models.released import released_coefficients
from dpbench.privacy.budget import Budget
from dpbench.privacy.ledger import Ledger
from dpbench.releases import Coefficients, Release, SyntheticRows


@pytest.mark.parametrize(
    ("score", "message"),
    [
        (0.5, "not float"),
        (Score("other", 0.5, "", "lower"), "must return a score with this name, not 'other'"),
        (Score("mse", "0.5", "", "lower"), "must be a float, not str"),
        (Score("mse", True, "", "lower"), "must be a float, not bool"),
        (Score("mse", 0.5, "", "down"), "its direction"),
        (Score("mse", 0.5, "", "lower", {"a": np.zeros(2)}), "the detail of mse"),
    ],
)
def test_what_is_no_score(score, message):
    with pytest.raises(ContractError) as caught:
        check_score(score, "mse")
    assert message in str(caught.value)


def test_a_right_score_passes():
    assert check_score(Score("mse", float("nan"), "", "lower"), "mse")


# --- the reference of a trial --------------------------------------------------------------------------------------

TRAIN, TEST = tiny_table(), tiny_table(seed=8)
DESIGN = Design(TRAIN.domain, "y")


def evaluation_of(mechanism, model, *, epsilon=2.0, seed=0, reference=None, **settings):
    release = mechanism(TRAIN, Budget(epsilon, 1e-5), np.random.default_rng(seed), **settings)
    fit = model(release)
    return Evaluation(fit, release, reference or Reference(Split(TRAIN, TEST), DESIGN), model)


def test_the_reference_is_the_same_model_without_noise():
    """Of rows a forest on the training rows, of statistics and marginals least squares, of bins their exact sums."""
    forest = partial(random_forest, design=DESIGN, rng=np.random.default_rng(3), trees=5)
    made = evaluation_of(mst, forest, iterations=50)
    exact = Release(TRAIN.domain, Budget(math.inf), Ledger(), (SyntheticRows(TRAIN),))
    wanted = random_forest(exact, design=DESIGN, rng=np.random.default_rng(3), trees=5)
    fresh = replace(made, model=partial(random_forest, design=DESIGN, rng=np.random.default_rng(3), trees=5))
    X, _ = DESIGN.encode(TEST)
    assert np.array_equal(fresh.nonprivate.predict(X), wanted.predict(X))
    least_squares = fresh.reference.coefficients
    for mechanism, model, settings in (
        (ssp, linear_statistics, {"design": DESIGN}),
        (mst, linear_marginals, {"iterations": 50}),
    ):
        found = evaluation_of(mechanism, partial(model, design=DESIGN), **settings).nonprivate
        np.testing.assert_allclose(found.coefficients, least_squares, atol=1e-8)


def test_the_reference_of_bins_is_the_regression_on_the_same_bins_without_noise():
    model = partial(bin_regression, design=DESIGN)
    made = evaluation_of(binagg, model, epsilon=50.0, design=DESIGN)
    many = evaluation_of(binagg, model, epsilon=1e6, design=DESIGN, theta=20.0)
    assert np.linalg.norm(made.nonprivate.coefficients - made.fit.coefficients) > 1e-3
    np.testing.assert_allclose(many.nonprivate.coefficients, many.fit.coefficients, atol=1e-3)


def test_coefficients_of_a_mechanism_are_compared_with_least_squares():
    theta = Release(TRAIN.domain, Budget(1.0), Ledger(), (Coefficients(np.zeros(len(DESIGN.columns))),))
    reference, model = Reference(Split(TRAIN, TEST), DESIGN), partial(released_coefficients, design=DESIGN)
    for given in (model, None):
        made = Evaluation(model(theta), theta, reference, given)
        assert np.array_equal(made.nonprivate.coefficients, reference.coefficients)


def test_the_reference_is_fitted_once_for_all_releases_of_one_outline():
    calls = []

    def model(release):
        calls.append(release)
        return linear_statistics(release, design=DESIGN)

    reference = Reference(Split(TRAIN, TEST), DESIGN)
    made = [evaluation_of(ssp, model, seed=seed, reference=reference, design=DESIGN) for seed in range(3)]
    assert len({one.nonprivate.coefficients.tobytes() for one in made}) == 1
    assert len(calls) == 3 + 1
    made = [
        evaluation_of(mst, partial(linear_marginals, design=DESIGN), reference=reference, workload=k, iterations=50)
        for k in (2, 3)
    ]
    assert made[0].nonprivate is not made[1].nonprivate


def test_the_excess_is_the_error_that_noise_adds():
    made = evaluation_of(ssp, partial(linear_statistics, design=DESIGN), design=DESIGN)
    exact = replace(made, fit=made.nonprivate)
    assert excess_mse(made).value == mse(made).value - mse(exact).value > 0
    assert excess_mse(exact).value == 0
