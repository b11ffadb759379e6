"""How good a posterior is: its distance from the one without noise, its predictions, and its calibration.

For fits with draws whose notes give the `family` and the `largest_norm` of their prior (`models.bayesian_rows`).
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit, logsumexp

from dpbench.data.domain import Floats
from dpbench.metrics.classification import auc_of
from dpbench.metrics.evaluation import Evaluation, Score
from dpbench.models.fit import Fit

LEVELS = 101  # quantiles of a marginal posterior that a score keeps, evenly from 0 to 1
RANKED = 99  # draws among which the truth is ranked: 100 ranks
PREDICTING = 1000  # draws that predictions are the mean over


def ks_distance(evaluation: Evaluation) -> Score:
    """Mean over the coefficients of the Kolmogorov-Smirnov distance from the non-private posterior (Bayesian GLM, 4.3).

    That is the largest distance of the distribution functions of the two marginal posteriors, the non-private one being
    that of the same family and prior given the rows that the mechanism used. 0 means equal, 1 disjoint; two sets of
    4,000 independent draws of one distribution are 0.02 apart. `detail`: the distance of each coefficient, and the
    quantiles of both posteriors at `levels`.
    """
    from scipy.stats import ks_2samp  # takes half a second to import

    draws, exact = _draws(evaluation), _nonprivate(evaluation).draws
    assert exact is not None
    distances = [float(ks_2samp(one, two).statistic) for one, two in zip(draws.T, exact.T, strict=True)]
    levels = np.linspace(0, 1, LEVELS)
    detail = {
        "columns": list(evaluation.reference.design.columns),
        "distances": distances,
        "levels": levels.tolist(),
        "posterior": np.quantile(draws, levels, axis=0).T.tolist(),
        "nonprivate": np.quantile(exact, levels, axis=0).T.tolist(),
    }
    return Score("ks_distance", float(np.mean(distances)), "", "lower", detail)


def posterior_mean_error(evaluation: Evaluation) -> Score:
    """||m - m*||_2, the means of the posterior and of the non-private one (see `ks_distance`)."""
    error = np.linalg.norm(evaluation.coefficients("posterior_mean_error") - _nonprivate(evaluation).coefficients)
    return Score("posterior_mean_error", float(error), "", "lower")


def predictive_auc(evaluation: Evaluation) -> Score:
    """Area under the ROC curve on the test rows of the predictive probability of +1, the mean over the draws.

    For a fit without draws it is that of its coefficients, as `auc`.
    """
    _, y, chances = _predicted(evaluation)
    return Score("predictive_auc", auc_of(chances, y), "", "higher")


def predictive_log_loss(evaluation: Evaluation) -> Score:
    """Mean of -log p(y | x) on the test rows, p being the mean over the draws of 1 / (1 + exp(-y x'theta)).

    For a fit without draws it is that of its coefficients, as `log_loss`.
    """
    scores, y, _ = _predicted(evaluation)
    log = logsumexp(-np.logaddexp(0.0, -y[:, None] * scores), axis=1) - np.log(scores.shape[1])
    return Score("predictive_log_loss", float(-log.mean()), "nats", "lower")


def coverage_50(evaluation: Evaluation) -> Score:
    """Share of the population's coefficients that lie in their credible intervals of level 0.5 (see `_covered`)."""
    return _covered(evaluation, "coverage_50", 0.5)


def coverage_80(evaluation: Evaluation) -> Score:
    """Share of the population's coefficients that lie in their credible intervals of level 0.8 (see `_covered`)."""
    return _covered(evaluation, "coverage_80", 0.8)


def coverage_95(evaluation: Evaluation) -> Score:
    """Share of the population's coefficients that lie in their credible intervals of level 0.95 (see `_covered`)."""
    return _covered(evaluation, "coverage_95", 0.95)


def credible_width(evaluation: Evaluation) -> Score:
    """Median over the coefficients of the width of their credible intervals of level 0.95."""
    lower, upper = _interval(evaluation, 0.95)
    return Score("credible_width", float(np.median(upper - lower)), "", "lower")


def sbc_rank(evaluation: Evaluation) -> Score:
    """Mean over the coefficients of the rank of the truth among 99 draws, over 99 (Talts et al. 2018).

    Over repetitions whose parameters and rows come from the model itself (dataset=simulation_glm dataset.prior=true),
    each of the `ranks` of `detail`, 0 to 99, is uniform if the posterior is calibrated; their mean is 0.5. The draws
    are evenly spaced, so that they are nearly independent.
    """
    truth = evaluation.reference.truth
    if truth is None:
        raise ValueError("sbc_rank needs rows whose parameters are known, such as dataset=simulation_glm")
    draws = _draws(evaluation)
    ranks = (_thinned(draws, RANKED) < truth).sum(axis=0)
    detail = {"columns": list(evaluation.reference.design.columns), "ranks": ranks.tolist(), "draws": RANKED}
    return Score("sbc_rank", float(ranks.mean() / RANKED), "", "none", detail)


def chain_r_hat(evaluation: Evaluation) -> Score:
    """The largest R-hat of the chains; from 1.01 on they have not mixed well. `detail`: the sampler's diagnostics."""
    notes = evaluation.fit.notes
    names = ("ess_bulk", "ess_tail", "divergences", "chains", "draws")
    if "r_hat" not in notes:
        raise ValueError("this model has no chains; leave chain_r_hat out of its metrics")
    return Score("chain_r_hat", float(notes["r_hat"]), "", "lower", {name: notes.get(name) for name in names})


def _covered(evaluation: Evaluation, name: str, level: float) -> Score:
    """How many of the population's coefficients are in their equal-tailed intervals.

    For simulated rows these are the coefficients that they were drawn with. For real ones they are the mean of the
    posterior given the entire table of the split, without noise; see `metrics.coverage.coverage` on samples from it.
    """
    truth = evaluation.reference.truth
    if truth is None:
        truth = _nonprivate(evaluation, whole=True).coefficients
    lower, upper = _interval(evaluation, level)
    inside = (lower <= truth) & (truth <= upper)
    detail = {"columns": list(evaluation.reference.design.columns), "inside": inside.tolist()}
    return Score(name, float(inside.mean()), "", "none", detail)


def _interval(evaluation: Evaluation, level: float) -> tuple[Floats, Floats]:
    lower, upper = np.quantile(_draws(evaluation), [(1 - level) / 2, (1 + level) / 2], axis=0)
    return lower, upper


def _draws(evaluation: Evaluation) -> Floats:
    """The draws (s, p) of the fit."""
    if evaluation.fit.draws is None:
        raise ValueError("this model has no draws; leave out the metrics of posteriors")
    return np.asarray(evaluation.fit.draws, dtype=float)


def _thinned(draws: Floats, most: int) -> Floats:
    """At most this many draws, evenly spaced."""
    kept: Floats = draws[np.linspace(0, len(draws) - 1, min(most, len(draws))).round().astype(int)]
    return kept


def _nonprivate(evaluation: Evaluation, *, whole: bool = False) -> Fit:
    """The posterior of the fit's family and prior given the rows that the mechanism used, or the entire table."""
    notes = evaluation.fit.notes
    if not {"family", "largest_norm"} <= set(notes):
        raise ValueError("this model does not give the family and largest_norm of its prior: it has no posterior")
    return evaluation.reference.posterior(notes["family"], notes["largest_norm"], whole=whole)


def _predicted(evaluation: Evaluation) -> tuple[Floats, Floats, Floats]:
    """The scores x'theta (m, s) of the test rows for each draw, y (m,), and the mean probability of +1 (m,)."""
    if not evaluation.reference.design.binary:
        raise ValueError("predictive metrics need a target of two levels")
    X, y = evaluation.reference.test
    fit = evaluation.fit
    scores = fit.predict(X)[:, None] if fit.draws is None else X @ _thinned(_draws(evaluation), PREDICTING).T
    return scores, y, expit(scores).mean(axis=1)
