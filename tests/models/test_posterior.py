"""Fits from the draws of chains: what is computed, what is kept, and when there is none."""

import numpy as np
import pytest

from dpbench.errors import UnconvergedError, UserError
from dpbench.models.fit import check_fit
from dpbench.models.posterior_fit import posterior_fit

DRAWS = np.random.default_rng(0).normal(size=(4, 2500, 3)) * [1.0, 2.0, 0.5] + [0.0, 1.0, -1.0]


def test_the_mean_the_intervals_and_the_covariance_are_those_of_all_draws():
    fit = check_fit(posterior_fit(DRAWS, level=0.8, divergences=2, notes={"of": "us"}), 3)
    flat = DRAWS.reshape(-1, 3)
    assert fit.coefficients == pytest.approx(flat.mean(axis=0))
    assert fit.covariance == pytest.approx(np.cov(flat.T))
    for interval, quantiles in zip(fit.intervals, np.quantile(flat, [0.1, 0.9], axis=0).T, strict=True):
        assert interval == pytest.approx(quantiles)
    notes = fit.notes
    assert (notes["of"], notes["divergences"], notes["chains"], notes["draws"]) == ("us", 2, 4, 2500)
    assert 1 <= notes["r_hat"] < 1.01
    assert 8000 < notes["ess_bulk"] < 12_000


def test_a_thousand_draws_of_each_chain_are_kept_in_single_precision():
    fit = posterior_fit(DRAWS)
    assert (fit.draws.shape, fit.draws.dtype) == ((4000, 3), np.float32)
    kept = fit.draws.reshape(4, 1000, 3)
    assert np.array_equal(kept[:, [0, -1]], DRAWS[:, [0, -1]].astype(np.float32))
    places = [np.flatnonzero(DRAWS[0, :, 0].astype(np.float32) == one)[0] for one in kept[0, :, 0]]
    assert set(np.diff(places)) <= {2, 3}
    assert posterior_fit(DRAWS[:, :300]).draws.shape == (1200, 3)


def test_chains_that_disagree_stand_still_or_leave_the_numbers_are_unconverged():
    apart = DRAWS + np.arange(4)[:, None, None]
    with pytest.raises(UnconvergedError, match=r"R-hat is .* must be below 1.1; of 10000 draws .* 7 divergences"):
        posterior_fit(apart, divergences=7)
    still = DRAWS.copy()
    still[..., 1] = 0.3
    with pytest.raises(UnconvergedError, match="R-hat is inf"):
        posterior_fit(still)
    lost = DRAWS.copy()
    lost[0, 5, 1] = np.nan
    with pytest.raises(UnconvergedError, match="1 of 10000 draws are not finite"):
        posterior_fit(lost)
    with pytest.raises(UserError, match="level"):
        posterior_fit(DRAWS, level=95)
