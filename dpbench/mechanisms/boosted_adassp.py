"""BoostedAdaSSP: gradient boosting of ridge regressions on one noisy X'X, with clipped residuals (Tang et al. 2023)."""

from __future__ import annotations

import math

import numpy as np

from dpbench.data.domain import Floats
from dpbench.data.encode import Design
from dpbench.data.table import Table
from dpbench.errors import NoEstimateError, check_part
from dpbench.mechanisms.fitting import check_settings
from dpbench.mechanisms.ssp import perturb_symmetric
from dpbench.privacy.accounting import gaussian_mu
from dpbench.privacy.budget import Budget
from dpbench.privacy.ledger import Ledger
from dpbench.privacy.noise import gaussian
from dpbench.privacy.sensitivity import of_least_eigenvalue, of_triangle
from dpbench.releases import Coefficients, Release


def boosted_adassp(
    train: Table,
    budget: Budget,
    rng: np.random.Generator,
    *,
    design: Design,
    rounds: int = 5,
    failure: float = 0.05,
) -> Release:
    """T rounds theta += H^-1 g_t from theta = 0: H is AdaSSP's noisy X'X with its ridge, the same in all rounds, and
    g_t is X'r_t with noise, r_t the residuals of theta clipped to [-||Y||, ||Y||].

    A round is AdaSSP with the residuals as targets. It takes off what the rounds before left of the ridge's bias: in a
    direction of eigenvalue lambda (ridge / (lambda + ridge))^T of it is left.

    **Source** Tang, Aydore, Kearns, Rho, Roth, Wang, Wang and Wu 2023, "Improved Differentially Private Regression via
    Gradient Boosting", arXiv 2303.03451, Algorithm 2. The rounds of the public code, 100, need 5.8 times the noise of
    AdaSSP. `rounds` is 5 here: 3 % of the bias is left where an eigenvalue is as large as the ridge, for 1.5 times the
    noise.
    **Privacy** Add/remove. 2 + T Gaussian steps of equal multiplier sqrt(2 + T) / mu, mu the largest Gaussian-DP
    parameter that (eps, delta) allows: lambda_min of X'X and its upper triangle as in `adassp`, and T vectors g_t, of
    sensitivity ||X|| ||Y|| whatever theta is: a record adds x r with |r| <= ||Y||.
    **Shapes** X (n, p), y (n,) as `design` encodes them, ||x||_2 <= ||X||, |y| <= ||Y||; theta (p,).
    **Departures** 1. The ridge is that of `adassp`, which makes H positive definite with probability 1 - `failure`; the
    public codes' is smaller, and diverges. 2. The public codes take mu for the standard deviation of the noise, which
    at epsilon = 1 is a small part of what is needed. 3. Rounds that diverge are an error, by `check_descent`.

    Raises `UserError` for a parameter out of range, `NoEstimateError` if H is not positive definite or the rounds
    diverge.
    """
    check_settings("boosted_adassp", tolerance=None, rounds=rounds)
    check_part("boosted_adassp: failure", failure)
    bound, relation = design.y_bound, budget.relation
    multiplier = math.sqrt(2 + rounds) / gaussian_mu(budget.epsilon, budget.delta)
    eigen_sensitivity, xx_sensitivity = of_least_eigenvalue(design), of_triangle(design, relation)
    xy_sensitivity = design.x_bound * bound
    ledger = Ledger()
    X, y = design.encode(train)
    xx, p = X.T @ X, X.shape[1]

    least = max(float(np.linalg.eigvalsh(xx)[0]), 0.0)
    noisy = gaussian(rng, ledger, least, sensitivity=eigen_sensitivity, multiplier=multiplier, label="lambda_min(X'X)")
    lambda_min = max(float(noisy) - math.sqrt(math.log(6 / budget.delta)) * multiplier * eigen_sensitivity, 0.0)
    margin = math.sqrt(p * math.log(2 * p**2 / failure)) * multiplier * xx_sensitivity
    ridge = max(0.0, margin - lambda_min)
    H = perturb_symmetric(rng, ledger, xx, sensitivity=xx_sensitivity, multiplier=multiplier) + ridge * np.eye(p)
    if np.linalg.eigvalsh(H)[0] <= 0:
        raise NoEstimateError("the noisy X'X with its ridge is not positive definite; raise epsilon or lower failure")
    theta, gradients = np.zeros(p), []
    for _ in range(rounds):
        gradient = X.T @ np.clip(y - X @ theta, -bound, bound)
        noisy = gaussian(
            rng, ledger, gradient, sensitivity=xy_sensitivity, multiplier=multiplier, label="X'r of a round"
        )
        theta = theta + np.linalg.solve(H, noisy)
        gradients.append(noisy)
    sd, advice = multiplier * xy_sensitivity, "lower rounds or failure, or raise epsilon"
    check_descent(gradients[0], gradients[-1], sd, failure, steps="rounds", advice=advice)
    return Release(train.domain, budget, ledger, (Coefficients(theta),), {"lambda_min": lambda_min, "ridge": ridge})


def check_descent(first: Floats, last: Floats, sd: float, failure: float, *, steps: str, advice: str) -> None:
    """Raises `NoEstimateError` if the last gradient is longer than the first, that at theta = 0, by more than noise.

    The norm of the noise of each is at most sd sqrt(p + 2 sqrt(p l) + 2 l), l = log(2 / failure), with probability
    1 - failure / 2 (Laurent and Massart 2000, Lemma 1). So of runs that lead to a shorter gradient at most the part
    `failure` is refused.
    """
    p, log = len(first), math.log(2 / failure)
    noise = sd * math.sqrt(p + 2 * math.sqrt(p * log) + 2 * log)
    if np.linalg.norm(last) > np.linalg.norm(first) + 2 * noise:
        raise NoEstimateError(
            f"the {steps} diverge: the last gradient is longer than the one at 0, by more than noise; {advice}"
        )
