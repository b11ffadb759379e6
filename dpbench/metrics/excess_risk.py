"""Excess risk of a linear classifier trained on synthetic rows, and the bounds of it (excess risk, section 3).

Labels are -1 and +1, and L(theta, D) is the mean of log(1 + exp(-y x'theta)) over the rows D.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from dpbench.data.domain import Floats
from dpbench.errors import UserError
from dpbench.mechanisms.gen import count_marginals
from dpbench.metrics.evaluation import Evaluation, Score
from dpbench.metrics.marginals import marginal_distances
from dpbench.metrics.risk_bounds import Bound, general_bound, logistic_bound
from dpbench.models.logistic import phi
from dpbench.models.polynomials import polynomial_coefficients
from dpbench.releases import Coefficients, Release, SyntheticRows

GRID = np.linspace(-1.0, 1.0, 4001)  # over which a polynomial's distance from the loss is taken


def excess_risk(evaluation: Evaluation) -> Score:
    """L on the real training rows minus that of the same model without noise: the quantity of the theorems (section 3).

    The model without noise is `Evaluation.nonprivate`; for coefficients that a mechanism estimates itself it is maximum
    likelihood. It is always for the training rows, even where the mechanism used the test rows too, since the theorems
    are about the risk on these. It can be below 0, by chance, for a model with another loss.
    """
    return Score("excess_risk", _excess("excess_risk", evaluation, *evaluation.reference.train), "nats", "lower")


def excess_risk_test(evaluation: Evaluation) -> Score:
    """L on the test rows minus that of the same model without noise, as in `excess_risk` (Table 2: 'real data')."""
    return Score(
        "excess_risk_test", _excess("excess_risk_test", evaluation, *evaluation.reference.test), "nats", "lower"
    )


def risk_bound_general(evaluation: Evaluation, *, degree: int = 4) -> Score:
    """The bound of Theorem 3.1 for this run's synthetic rows, K = 1 and phi(0) = log 2; see `risk_bound_logistic`."""
    return _bound("risk_bound_general", general_bound, evaluation, degree)


def risk_bound_logistic(evaluation: Evaluation, *, degree: int = 4) -> Score:
    """The bound of Theorem 3.2 on `excess_risk`, for this run's synthetic rows D_s and training rows D_r.

    m is the number of the design's columns, each in [-1, 1] and a function of one attribute, so that nu is n times the
    largest l1 distance of the normalised marginals of up to `degree` attributes. tau is the larger of the norms of
    theta_s, the fit, and theta_r, the one without noise: both lie in this ball, so that nothing is projected.
    The paper's setting, rows and weights in the unit ball, is the same with x / sqrt(m) and tau = 1 /
    sqrt(m); its bound is scaled to these norms, not the fit. The term added is max(0, L(theta_s, D_s) - L(theta_r,
    D_s)), 0 for a theta_s that minimises L(., D_s): so the bound holds for any fit.

    The detail has the parts of the bound, and `steps`, pairs of a name and a number: the bound with its steps replaced,
    one after the other, by the values of the run, down to the measured value.

    - `promise`: the bound at the distance that the mechanism guarantees, with probability 0.95, for exactly the
      marginals of up to `degree` attributes: Gen by Lemma 3.4, which makes Corollary 3.6 of the theorem, and AIM by
      Theorem C.3, which is about the model before its last round. Other releases do not have this step;
    - `theorem`: the bound;
    - `polynomial`: the Bernstein polynomial's own distance and coefficients in place of Theorems 2.3 and 2.4;
    - `weights`: ||theta||_1^k in place of (m tau)^k, and max ||theta||_1 as the largest |x'theta|, if above 1;
    - `minimax`: the minimax polynomial in place of Bernstein's;
    - `risks`: |L(theta, D_r) - L(theta, D_s)| of both theta, without any polynomial or marginal;
    - `measured`: `excess_risk`.

    Raises `UserError` for a design whose features are not functions of the attributes' codes in [-1, 1], a degree below
    2 or above the number of attributes, or a release without rows.
    """
    return _bound("risk_bound_logistic", logistic_bound, evaluation, degree)


def _bound(name: str, theorem: Callable[..., Bound], evaluation: Evaluation, degree: int) -> Score:
    reference, synthetic = evaluation.reference, evaluation.release[SyntheticRows].table
    if reference.design.exact or not reference.design.scaled:
        raise UserError(f"{name} needs features in [-1, 1] from the codes: leave out design.exact and design.scaled")
    (X, y), (Xs, ys) = reference.train, reference.design.encode(synthetic)
    distances = marginal_distances(reference.split.train, synthetic, degree)
    theta_s, theta_r = evaluation.coefficients(name), _nonprivate(evaluation)
    m, norm, distance = len(theta_r), max(map(float, map(np.linalg.norm, (theta_s, theta_r)))), float(distances.max())
    known = {"degree": degree, "features": m, "norm": norm, "rows": len(y)}
    bound = theorem(**known, distance=len(y) * distance)
    promised = _promised(evaluation.release, degree)

    (real_s, real_r), (made_s, made_r) = (
        [_risk(theta, *rows) for theta in (theta_s, theta_r)] for rows in ((X, y), (Xs, ys))
    )
    optimisation = max(0.0, made_s - made_r)
    sums = [float(np.abs(theta).sum()) for theta in (theta_s, theta_r)]
    widest, narrower = max(norm * math.sqrt(m), 1.0), max(*sums, 1.0)
    steps = {} if promised is None else {"promise": theorem(**known, distance=promised).total}
    steps |= {
        "theorem": bound.total,
        "polynomial": _by_polynomial("bernstein", degree - 1, widest, 2 * [m * norm], distance),
        "weights": _by_polynomial("bernstein", degree - 1, narrower, sums, distance),
        "minimax": _by_polynomial("minimax", degree - 1, narrower, sums, distance),
        "risks": abs(real_s - made_s) + abs(real_r - made_r),
    }
    detail = {
        **known,
        **{"distance": distance, "promised_distance": promised if promised is None else promised / len(y)},
        **{"approximation": bound.approximation, "marginal": bound.marginal, "optimisation": optimisation},
        "steps": [*([step, value + optimisation] for step, value in steps.items()), ["measured", real_s - real_r]],
    }
    return Score(name, bound.total + optimisation, "nats", "none", detail)


def _promised(release: Release, degree: int) -> float | None:
    """The largest distance, in rows, of a marginal of up to `degree` attributes that the mechanism guarantees, if
    any.
    """
    found = release.diagnostics
    all_of_them = count_marginals(degree, len(release.domain.names) - 1)
    return found.get("promised_distance") if found.get("marginals") == all_of_them else None


def _by_polynomial(construction: str, degree: int, radius: float, sums: list[float], distance: float) -> float:
    """4 sup |P - loss| on [-radius, radius] + sum_k |a_k| (s_1^k + s_2^k) distance for the `sums` s_1 and s_2.

    The constant a_0 is the same in both means.
    """

    def loss(x: Floats) -> Floats:
        return -phi(radius * x)

    c = polynomial_coefficients(loss, degree, 1.0, construction)  # a_k radius^k
    error = np.abs(np.polynomial.polynomial.polyval(GRID, c) - loss(GRID)).max()
    powers = np.arange(1, degree + 1)
    return float(4 * error + distance * sum(np.abs(c[1:]) @ (one / radius) ** powers for one in sums))


def _excess(name: str, evaluation: Evaluation, X: Floats, y: Floats) -> float:
    theta_s, theta_r = evaluation.coefficients(name), _nonprivate(evaluation)
    return _risk(theta_s, X, y) - _risk(theta_r, X, y)


def _nonprivate(evaluation: Evaluation) -> Floats:
    """The coefficients (p,) of the same model without noise, for the training rows, whatever rows the mechanism
    used.
    """
    reference, design = evaluation.reference.of_training, evaluation.reference.design
    if not design.binary:
        raise ValueError(f"the target {design.target!r} is not one of two levels; leave out excess_risk and its bounds")
    if evaluation.model is None or evaluation.release.get(Coefficients) is not None:
        return reference.likelihood
    return replace(evaluation, reference=reference).nonprivate.coefficients


def _risk(theta: Floats, X: Floats, y: Floats) -> float:
    return float(-phi(y * (X @ theta)).mean())
