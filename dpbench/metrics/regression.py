"""Metrics of linear regression. The target is scaled to [-1, 1] over its declared bounds (Paper 0, G.1)."""

from __future__ import annotations

import numpy as np

from dpbench.metrics.evaluation import Evaluation, Score


def mse(evaluation: Evaluation) -> Score:
    """Mean squared error on the test rows, on the scaled target (Paper 0, Figure 3a)."""
    return Score("mse", _mse(evaluation), "scaled target^2", "lower")


def mse_unit(evaluation: Evaluation) -> Score:
    """Mean squared error on the test rows, in the square of the target's own unit."""
    design = evaluation.reference.design
    unit = design.domain[design.target].unit or design.target
    return Score("mse_unit", _mse(evaluation) * design.target_scale**2, f"{unit}^2", "lower")


def r2(evaluation: Evaluation) -> Score:
    """1 - MSE / variance of the target, on the test rows (NaN if the target is constant there)."""
    variance = float(np.var(evaluation.reference.test[1]))
    return Score("r2", 1 - _mse(evaluation) / variance if variance else float("nan"), "", "higher")


def coefficient_distance(evaluation: Evaluation) -> Score:
    """||theta - theta_exact||_2 / ||theta_exact||_2, theta_exact the non-private fit on the same training rows."""
    exact = evaluation.reference.coefficients
    distance = np.linalg.norm(evaluation.fit.coefficients - exact) / np.linalg.norm(exact)
    return Score("coefficient_distance", float(distance), "", "lower")


def xtx_error(evaluation: Evaluation) -> Score:
    """Relative error, in the Frobenius norm, of the X'X that the model was solved from."""
    return Score("xtx_error", _moment_error(evaluation, 0), "", "lower")


def xty_error(evaluation: Evaluation) -> Score:
    """Relative error, in the l2 norm, of the X'y that the model was solved from."""
    return Score("xty_error", _moment_error(evaluation, 1), "", "lower")


def _mse(evaluation: Evaluation) -> float:
    X, y = evaluation.reference.test
    return float(np.mean((y - X @ evaluation.fit.coefficients) ** 2))


def _moment_error(evaluation: Evaluation, which: int) -> float:
    if evaluation.fit.moments is None:
        raise ValueError("this model has no second moments; leave xtx_error and xty_error out of its metrics")
    true = evaluation.reference.train_moments[which]
    return float(np.linalg.norm(evaluation.fit.moments[which] - true) / np.linalg.norm(true))
