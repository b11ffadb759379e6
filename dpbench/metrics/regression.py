"""Metrics of regression. The target is scaled to [-1, 1] over its declared bounds (DD-SSP, G.1), if the design is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dpbench.data.domain import Floats
from dpbench.errors import UserError
from dpbench.metrics.evaluation import Evaluation, Score


def mse(evaluation: Evaluation) -> Score:
    """Mean squared error on the test rows, on the scaled target (DD-SSP, Figure 3a)."""
    return Score("mse", _mse(evaluation), "scaled target^2" if evaluation.reference.design.scaled else "", "lower")


def excess_mse(evaluation: Evaluation) -> Score:
    """Mean squared error on the test rows minus that of the same model without noise (`Evaluation.nonprivate`).

    It is the error that privacy adds to that of the model itself. By chance it can be below 0.
    """
    exact = _mse(replace(evaluation, fit=evaluation.nonprivate))
    unit = "scaled target^2" if evaluation.reference.design.scaled else ""
    return Score("excess_mse", _mse(evaluation) - exact, unit, "lower")


def mse_unit(evaluation: Evaluation) -> Score:
    """Mean squared error on the test rows, in the square of the target's own unit."""
    design = evaluation.reference.design
    unit = design.domain[design.target].unit or design.target
    return Score("mse_unit", _mse(evaluation) * design.target_scale**2, f"{unit}^2", "lower")


def r2(evaluation: Evaluation) -> Score:
    """1 - MSE / variance of the target, on the test rows (NaN if the target is constant there)."""
    _, y = evaluation.reference.test
    constant = np.ptp(y) == 0  # its variance may come out as a rounding error
    return Score("r2", float("nan") if constant else 1 - _mse(evaluation) / float(np.var(y)), "", "higher")


def gain_kept(evaluation: Evaluation) -> Score:
    """(m - MSE) / (m - e) on the test rows: how much is kept of the gain of least squares over the mean of the target.

    m is the MSE of the mean of the target, and e that of least squares, both on the rows that the mechanism used and
    without noise: the same for all methods on a split. 1 is as good as least squares, 0 as the mean; below 0 the mean
    is better. NaN where least squares gains nothing, or the target is constant there.
    """
    X, y = evaluation.reference.test
    of_mean = float(np.mean((y - evaluation.reference.target_mean) ** 2))
    gain = of_mean - float(np.mean((y - X @ evaluation.reference.coefficients) ** 2))
    none = gain <= 0 or np.ptp(y) == 0  # the gain may come out as a rounding error
    return Score("gain_kept", float("nan") if none else (of_mean - _mse(evaluation)) / gain, "", "higher")


def rel_mse(evaluation: Evaluation) -> Score:
    """||y - prediction||^2 / ||y||^2 on the test rows (BinAgg, section 5.2.1)."""
    return Score("rel_mse", _relative(evaluation, *evaluation.reference.test), "", "lower")


def rel_mse_train(evaluation: Evaluation) -> Score:
    """||y - prediction||^2 / ||y||^2 on the training rows (BinAgg, Table 2)."""
    return Score("rel_mse_train", _relative(evaluation, *evaluation.reference.train), "", "lower")


def mse_of_variance(evaluation: Evaluation) -> Score:
    """MSE on the test rows over the variance of their target, 1 - R^2 (NaN if the target is constant there)."""
    return Score("mse_of_variance", 1 - r2(evaluation).value, "", "lower")


def coefficient_error(evaluation: Evaluation) -> Score:
    """||theta - beta||_2 / ||beta||_2, beta the coefficients that the rows were simulated with (BinAgg, Figure 1)."""
    truth = evaluation.reference.truth
    if truth is None:
        raise UserError("coefficient_error needs simulated rows, such as dataset=simulation; see coefficient_distance")
    error = np.linalg.norm(evaluation.coefficients("coefficient_error") - truth) / np.linalg.norm(truth)
    return Score("coefficient_error", float(error), "", "lower")


def coefficient_distance(evaluation: Evaluation) -> Score:
    """||theta - theta_exact||_2 / ||theta_exact||_2, theta_exact least squares on the rows that the mechanism used.

    It is least squares whatever the model is. `excess_mse` compares a fit with the same model without noise.
    """
    exact = evaluation.reference.coefficients
    distance = np.linalg.norm(evaluation.coefficients("coefficient_distance") - exact) / np.linalg.norm(exact)
    return Score("coefficient_distance", float(distance), "", "lower")


def xtx_error(evaluation: Evaluation) -> Score:
    """Relative error, in the Frobenius norm, of the X'X of the fit, compared with that of the rows used."""
    return Score("xtx_error", _moment_error(evaluation, 0), "", "lower")


def xty_error(evaluation: Evaluation) -> Score:
    """Relative error, in the l2 norm, of the X'y of the fit, compared with that of the rows used."""
    return Score("xty_error", _moment_error(evaluation, 1), "", "lower")


def _mse(evaluation: Evaluation) -> float:
    X, y = evaluation.reference.test
    return float(np.mean((y - evaluation.fit.predict(X)) ** 2))


def _relative(evaluation: Evaluation, X: Floats, y: Floats) -> float:
    return float(np.sum((y - evaluation.fit.predict(X)) ** 2) / np.sum(y**2))


def _moment_error(evaluation: Evaluation, which: int) -> float:
    if evaluation.fit.moments is None:
        raise ValueError("this model has no second moments; leave xtx_error and xty_error out of its metrics")
    true = evaluation.reference.seen_moments[which]
    return float(np.linalg.norm(evaluation.fit.moments[which] - true) / np.linalg.norm(true))
