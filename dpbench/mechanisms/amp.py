"""Approximate minima perturbation of linear and logistic regression (Iyengar et al. 2019; Redberg et al. 2023)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve

from dpbench.data.domain import Floats
from dpbench.data.encode import Design
from dpbench.data.table import Table
from dpbench.errors import UserError, check_part, check_positive
from dpbench.mechanisms.dpsgd import loss_for
from dpbench.mechanisms.objpert import logistic_gradient, logistic_hessian
from dpbench.privacy.accounting import SOLVER_DELTA, check_calibration, gaussian_mu, glm_objective_epsilon
from dpbench.privacy.budget import Budget
from dpbench.privacy.events import GlmObjectivePerturbation
from dpbench.privacy.ledger import Ledger
from dpbench.privacy.noise import gaussian, perturbed_minimiser
from dpbench.releases import Coefficients, Release

ENOUGH = 1e-4  # of the slope along a step, how far beyond its minimum a step may end
MOST_STEPS = 200  # ten times what was seen to be needed: more means that rounding is in the way
LEAST_OFFSET, MOST_OFFSET = 1e-12, 8.0  # of log(1 + beta / lambda), lest rows or ridge vanish in double precision


def amp(
    train: Table,
    budget: Budget,
    rng: np.random.Generator,
    *,
    design: Design,
    calibration: str = "tight",
    loss: str | None = None,
    clip: float = 0.5,
    noise_factor: float = 1.3,
    tolerance: float = 1e-8,
    solver_share: float = 1e-3,
) -> Release:
    """The coefficients of least loss with a ridge and a random linear term, and noise for the solver's error.

    Logistic loss, or squared error with clipped gradients. Noise is drawn once, in place of once per moment or step.

    **Source** Iyengar, Near, Song, Thakkar, Thakurta and Wang 2019, "Towards Practical Differentially Private Convex
    Optimization" (AMP), with the privacy of Redberg, Koskela and Wang 2023, "Improving the Privacy and Practicality of
    Objective Perturbation for Differentially Private Linear Learners", arXiv 2401.00583, Algorithm 1 and Theorem 3.1.
    Read: the abstract of the second, and its authors' code (rredberg/better-objpert), whose formulas and factor 1.3
    these are; not the papers' texts.
    **Privacy** Add/remove. theta* minimises sum_i f(x_i.theta; y_i) + lambda/2 ||theta||^2 + b.theta, b ~ N(0, sigma^2
    I). f is convex, |f'| ||x|| <= L and f'' ||x||^2 <= beta: the exact minimiser costs
    `accounting.glm_objective_epsilon`, where it is proved, of the multiplier sigma / L and the offset J = log(1 + beta
    / lambda). Squared error (s - y)^2 / 2 has the slope s - y, clipped to +-L / ||x||, so that f is Huber's loss: L =
    `clip` ||X|| ||Y||, beta = ||X||^2. Logistic loss: L = ||X||, beta = ||X||^2 / 4; `objpert` costs less there.
    The solver ends at theta* + e with a gradient of l2 norm tau = `tolerance` L at most, so that ||e|| <= tau /
    lambda by strong convexity. Given theta*, neighbours change e by 2 tau / lambda at most; Gaussian noise for that
    spends `solver_share` of eps and `SOLVER_DELTA` of delta, by basic composition. A run whose solver does not get
    there fails, which is not paid for; none was seen to.
    sigma is `noise_factor` times that of the Gaussian mechanism, and lambda the least that (eps, delta) then allows,
    with the offset J = eps - the eps of sigma alone; J is `MOST_OFFSET` at most, which leaves some of a large eps.
    `tight`: lambda = beta / (e^J - 1). `paper`: the published condition, J = -log(1 - beta / lambda), so that lambda is
    larger by beta, which spends less than (eps, delta).
    **Shapes** X (n, p), y (n,) as `design` encodes them, ||x||_2 <= ||X||, |y| <= ||Y||; theta (p,).
    **Departures** 1. The authors raise lambda by 5 % until sigma is small enough; here it is solved for, and the two
    steps are composed by their eps, not by Renyi divergence. 2. tau is in units of L, and the output noise follows from
    it. 3. Newton's method in place of L-BFGS. 4. `clip` is 0.5: a record at theta = 0 is clipped if |y| ||x|| is more
    than half of its bound.

    `loss`: `squared` or `logistic`; None as in `dpsgd.loss_for`. Raises `UserError` for a parameter or an eps out of
    range, or a logistic loss of a target that is not -1 and +1, and `ArithmeticError` if the solver does not reach its
    tolerance.
    """
    check_calibration(calibration)
    check_positive("amp", clip=clip)
    check_part("amp: tolerance", tolerance)
    check_part("amp: solver_share", solver_share)
    squared = loss_for(design, loss) == "squared"
    bound = design.x_bound * (clip * design.y_bound if squared else 1.0)
    beta = design.x_bound**2 * (1.0 if squared else 0.25)
    multiplier, ratio = _calibrated(budget, calibration, noise_factor, solver_share)
    ridge, sigma, ledger = beta / ratio, multiplier * bound, Ledger()
    X, y = design.encode(train)
    lengths = np.maximum(np.linalg.norm(X, axis=1), np.finfo(float).tiny)
    objective = _Objective(X, y, ridge, bound / lengths if squared else None)
    theta = perturbed_minimiser(
        rng,
        ledger,
        objective.gradient,
        lambda b: _minimiser(objective, b, tolerance * bound),
        size=X.shape[1],
        sensitivity=bound,
        multiplier=multiplier,
        offset=math.log1p(ratio),
        label="b",
        kind=GlmObjectivePerturbation,
    )
    error = 2 * tolerance * bound / ridge
    solver_multiplier = 1 / gaussian_mu(solver_share * budget.epsilon, SOLVER_DELTA * budget.delta)
    theta = gaussian(rng, ledger, theta, sensitivity=error, multiplier=solver_multiplier, label="the solver's error")
    diagnostics = {"ridge": ridge, "noise_sd": sigma, "solver_noise_sd": error * solver_multiplier}
    return Release(train.domain, budget, ledger, (Coefficients(theta),), diagnostics)


def _calibrated(budget: Budget, calibration: str, noise_factor: float, solver_share: float) -> tuple[float, float]:
    """The noise multiplier, and beta / lambda. `UserError` where no ridge is enough for the noise."""
    epsilon, delta = (1 - solver_share) * budget.epsilon, (1 - SOLVER_DELTA) * budget.delta
    multiplier = noise_factor / gaussian_mu(epsilon, delta)
    if not multiplier > 0:
        raise UserError("amp needs a finite epsilon; for a fit without privacy run the mechanism exact_table")
    offset = epsilon - glm_objective_epsilon(multiplier, 0.0, delta)
    if offset < LEAST_OFFSET:
        raise UserError(
            f"amp: with noise_factor = {noise_factor:g} at epsilon = {budget.epsilon:g} no ridge is known to be "
            "enough; raise noise_factor, such as to 1.3, or epsilon"
        )
    offset = min(offset, MOST_OFFSET)
    return multiplier, -math.expm1(-offset) if calibration == "paper" else math.expm1(offset)


@dataclass(frozen=True)
class _Objective:
    """The objective without b. `limits` (n,) of the slopes of squared error; None for the logistic loss."""

    X: Floats
    y: Floats
    ridge: float
    limits: Floats | None

    def gradient(self, theta: Floats) -> Floats:
        if self.limits is None:
            return logistic_gradient(theta, self.X, self.y, self.ridge)
        slopes = np.clip(self.X @ theta - self.y, -self.limits, self.limits)
        gradient: Floats = slopes @ self.X + self.ridge * theta
        return gradient

    def hessian(self, theta: Floats) -> Floats:
        if self.limits is None:
            return logistic_hessian(theta, self.X, self.ridge)
        inside = self.X[np.abs(self.X @ theta - self.y) < self.limits]
        hessian: Floats = inside.T @ inside + self.ridge * np.eye(len(theta))
        return hessian


def _minimiser(objective: _Objective, b: Floats, tolerance: float) -> Floats:
    """The theta at which the gradient with b has an l2 norm of at most `tolerance`, by Newton's method from 0.

    The objective is convex, so that its slope along a step rises: a step that ends before the slope is above 0 has
    only gone down. It is halved until then. Raises `ArithmeticError` if `MOST_STEPS` do not suffice.
    """
    theta = np.zeros(len(b))
    gradient = objective.gradient(theta) + b
    for _ in range(MOST_STEPS):
        if np.linalg.norm(gradient) <= tolerance:
            return theta
        step: Floats = solve(objective.hessian(theta), -gradient, assume_a="pos")
        slope, size = float(gradient @ step), 1.0
        while True:
            gradient = objective.gradient(theta + size * step) + b
            if float(gradient @ step) <= -ENOUGH * slope:
                break
            size /= 2
        theta = theta + size * step
    raise ArithmeticError(
        f"amp: after {MOST_STEPS} steps the gradient has norm {np.linalg.norm(gradient):.3g}, not the {tolerance:.3g} "
        "asked for"
    )
