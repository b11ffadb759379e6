"""Objective perturbation for logistic regression (DD-SSP, Appendix E, Algorithm 6; Kifer, Smith and Thakurta 2012)."""

from __future__ import annotations

import math

import numpy as np
from scipy.linalg import solve
from scipy.special import expit

from dpbench.data.domain import Floats
from dpbench.data.encode import Design
from dpbench.data.table import Table
from dpbench.errors import UserError, check_part
from dpbench.privacy.accounting import SOLVER_DELTA, check_calibration, gaussian_mu
from dpbench.privacy.budget import Budget
from dpbench.privacy.ledger import Ledger
from dpbench.privacy.noise import gaussian, perturbed_minimiser
from dpbench.releases import Coefficients, Release

ROUNDING = float(np.finfo(float).eps)
ARMIJO = 1e-4  # Nocedal and Wright (2006), section 3.1
MOST_STEPS = 100  # ten times what Newton's method was seen to take: more means that rounding is in the way


def objpert(
    train: Table,
    budget: Budget,
    rng: np.random.Generator,
    *,
    design: Design,
    calibration: str = "tight",
    tolerance: float = 1e-10,
    solver_share: float = 1e-3,
) -> Release:
    """The coefficients of least logistic loss with a ridge and a random linear term, and noise for the solver's error.

    **Source** DD-SSP, Algorithm 6, with l(theta; z) = log(1 + exp(-y x.theta)), r = 0 and F = R^p; n cancels there.
    **Privacy** Add/remove. theta* minimises sum_i l(theta; z_i) + Delta/2 ||theta||^2 + b.theta, b ~ N(0, sigma^2 I).
    One record's gradient has l2 norm ||X|| at most, its Hessian ||X||^2/4: the cost is `accounting.objective_epsilon`
    of the multiplier sigma / ||X|| and the offset J = log(1 + ||X||^2 / (4 Delta)), by a theorem that is proved there:
    for the logistic loss, neighbours that add or remove a record and Delta >= ||X||^2 / eps, the exact minimiser theta*
    over all of R^p is (eps, delta)-DP with the noise of the Gaussian mechanism for the sensitivity ||X||.
    The solver ends at a theta = theta* + e whose gradient has l2 norm tau = `tolerance` sigma at most, so that ||e|| <=
    tau / Delta, as the objective is Delta-strongly convex. What is released is theta with Gaussian noise: given theta*,
    neighbours change e by 2 tau / Delta at most, and the noise spends `solver_share` of eps and `SOLVER_DELTA` of
    delta. The two costs add up (basic composition). A run whose solver does not reach tau fails, which depends on the
    rows and is not paid for; none was seen to.
    `paper`: Delta = ||X||^2 / (2 eps), sigma = ||X|| sqrt(8 log(2/delta) + 4 eps) / eps, as published, which spends
    less than (eps, delta), with the noise for the solver's error too. `tight`: of the rest (eps', delta') of (eps,
    delta), Delta = ||X||^2 / eps', twice the published one (from there on the change of variables costs nothing), and
    sigma = ||X|| / mu, mu the largest Gaussian-DP parameter that (eps', delta') allows.
    **Shapes** X (n, p), y (n,) as `design` encodes them, ||x||_2 <= ||X||, y = -1 or +1; theta (p,).
    **Departures** 1. The noise for the solver's error, which Iyengar et al. (2019) add too.

    Raises `UserError` for a target that is not -1 and +1, a parameter or an eps out of range, and `ArithmeticError` if
    the solver does not reach its tolerance.
    """
    check_calibration(calibration)
    if not design.binary:
        raise UserError(f"objpert needs a target of two levels, -1 and +1; {design.target!r} has other values")
    check_part("objpert: tolerance", tolerance)
    check_part("objpert: solver_share", solver_share)
    offset, multiplier = _calibrated(budget, calibration, solver_share)
    ledger = Ledger()
    X, y = design.encode(train)
    # line 1
    ridge = design.x_bound**2 / 4 / math.expm1(offset)
    sigma = multiplier * design.x_bound
    # lines 2, 3
    theta = perturbed_minimiser(
        rng,
        ledger,
        lambda theta: logistic_gradient(theta, X, y, ridge),
        lambda b: minimiser(X, y, ridge=ridge, b=b, tolerance=tolerance * sigma),
        size=X.shape[1],
        sensitivity=design.x_bound,
        multiplier=multiplier,
        offset=offset,
        label="b",
    )
    error = 2 * tolerance * sigma / ridge
    solver_multiplier = 1 / gaussian_mu(solver_share * budget.epsilon, SOLVER_DELTA * budget.delta)
    theta = gaussian(rng, ledger, theta, sensitivity=error, multiplier=solver_multiplier, label="the solver's error")
    diagnostics = {"ridge": ridge, "noise_sd": sigma, "solver_noise_sd": error * solver_multiplier}
    return Release(train.domain, budget, ledger, (Coefficients(theta),), diagnostics)


def _calibrated(budget: Budget, calibration: str, solver_share: float) -> tuple[float, float]:
    """The offset J and the noise multiplier. `UserError` if Delta and ||X||^2/4 are too far apart for doubles."""
    epsilon, delta = budget.epsilon, budget.delta
    share = 2 if calibration == "paper" else 4  # J = log(1 + epsilon / share)
    if calibration == "tight":
        epsilon, delta = (1 - solver_share) * epsilon, (1 - SOLVER_DELTA) * delta
    offset = math.log1p(epsilon / share)
    if not ROUNDING <= offset <= -math.log(ROUNDING):
        raise UserError(
            f"objpert: epsilon must lie between {share * ROUNDING:.2g} and {share / ROUNDING:.2g}, where neither its "
            "ridge nor the data vanish compared with the other in double precision; it is "
            f"{epsilon:g}. For a fit without "
            "privacy run the mechanism exact_table with the model logistic_rows"
        )
    if calibration == "paper":
        return offset, math.sqrt(8 * math.log(2 / delta) + 4 * epsilon) / epsilon
    return offset, 1 / gaussian_mu(epsilon, delta)


def minimiser(X: Floats, y: Floats, *, ridge: float, b: Floats, tolerance: float) -> Floats:
    """argmin sum_i log(1 + exp(-y_i x_i.theta)) + ridge/2 ||theta||^2 + b.theta of X (n, p) and y (n,) of -1 and +1.

    Newton's method from 0; a step is halved until the l2 norm of the gradient falls, and the last is `tolerance` at
    most. A ridge above 0 makes the minimum theta (p,) unique and finite for any rows: of one label, separated by a
    hyperplane, or none.

    Raises `ArithmeticError` if 100 steps do not reach it.
    """
    theta, steps = np.zeros(X.shape[1]), 0
    gradient = logistic_gradient(theta, X, y, ridge) + b
    while (norm := float(np.linalg.norm(gradient))) > tolerance:
        if steps == MOST_STEPS:
            raise ArithmeticError(
                f"objpert: after {steps} steps the gradient has norm {norm:.3g}, not the {tolerance:.3g} asked for"
            )
        step: Floats = solve(logistic_hessian(theta, X, ridge), -gradient, assume_a="pos")
        size = 1.0
        while size > ROUNDING:
            gradient = logistic_gradient(theta + size * step, X, y, ridge) + b
            if np.linalg.norm(gradient) <= (1 - ARMIJO * size) * norm:
                break
            size /= 2
        theta, steps = theta + size * step, steps + 1
    return theta


def logistic_gradient(theta: Floats, X: Floats, y: Floats, ridge: float) -> Floats:
    """Of sum_i log(1 + exp(-y_i x_i.theta)) + ridge/2 ||theta||^2, (p,)."""
    gradient: Floats = -X.T @ (y * expit(-y * (X @ theta))) + ridge * theta
    return gradient


def logistic_hessian(theta: Floats, X: Floats, ridge: float) -> Floats:
    """Of the same, (p, p)."""
    scores = X @ theta
    weights = expit(scores) * expit(-scores)
    hessian: Floats = (X * weights[:, None]).T @ X + ridge * np.eye(len(theta))
    return hessian
