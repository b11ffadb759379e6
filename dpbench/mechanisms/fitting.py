"""What mechanisms that fit a graphical model to noisy marginals share: the engine, and what is refused beforehand."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from importlib import import_module

from dpbench.errors import UserError, unknown
from dpbench.inference import MOST_SIGMA, MarkovModel
from dpbench.privacy.accounting import zcdp_rho
from dpbench.privacy.budget import Budget

LEAST_SIGMA = 1e-9  # the spacing of float64 near a count of some millions: less noise than that is none
LARGEST_EPSILON = 1e100  # its square stays within float64
ENGINES = {"native": "dpbench.inference", "mbi": "dpbench.inference.mbi_engine"}


def estimator(engine: str, *, iterations: int, tolerance: float | None) -> Callable[..., MarkovModel]:
    """`estimate(sizes, measurements, warm_start=None)` of the engine. Raises `UserError` for an unknown name."""
    if engine not in ENGINES:
        raise unknown("engine", engine, ENGINES)
    return partial(import_module(ENGINES[engine]).estimate, iterations=iterations, tolerance=tolerance)


def rho_of(mechanism: str, budget: Budget) -> float:
    """The rho that (eps, delta) allows (tight zCDP conversion). Raises `UserError` if it is 0 or infinite."""
    if not budget.epsilon <= LARGEST_EPSILON:
        raise UserError(f"{mechanism} needs a finite epsilon; use a large one, such as 1e6, to see its limit")
    rho = zcdp_rho(budget.epsilon, budget.delta)
    if not 0 < rho < math.inf:
        raise UserError(
            f"{mechanism}: epsilon = {budget.epsilon:g} and delta = {budget.delta:g} give rho = {rho:g}, outside the "
            "range of the arithmetic"
        )
    return rho


def check_settings(mechanism: str, *, tolerance: float | None, **counts: int | None) -> None:
    """Raises `UserError` for a tolerance that is not positive or a count below 1."""
    if tolerance is not None and not tolerance > 0:
        raise UserError(f"{mechanism}: tolerance must be greater than 0, not {tolerance}")
    for name, count in counts.items():
        if count is not None and count < 1:
            raise UserError(f"{mechanism}: {name} must be at least 1, not {count}")


def check_sigma(mechanism: str, *sigmas: float) -> None:
    """Raises `UserError` for a noise scale outside the range of the arithmetic."""
    for sigma in sigmas:
        if not LEAST_SIGMA <= sigma <= MOST_SIGMA:
            raise UserError(f"{mechanism}: this epsilon gives sigma = {sigma:g}, outside the range of the arithmetic")


def check_model(mechanism: str, what: str, mb: float, max_model_mb: float) -> None:
    """Raises `UserError` for a model over its limit; `what` says which model is meant."""
    if mb > max_model_mb:
        raise UserError(
            f"{mechanism}: {what} has {mb:.3g} MB, the limit is {max_model_mb:g} MB; "
            f"raise mechanism.{mechanism}.max_model_mb or declare fewer bins"
        )
