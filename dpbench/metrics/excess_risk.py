"""Excess risk of a linear classifier trained on synthetic rows, and the bounds of it (excess risk, section 3).

Labels are -1 and +1, and L(theta, D) is the mean of log(1 + exp(-y x'theta)) over the rows D.

**The bounds** hold for synthetic data that preserve marginals.

Excess risk is Zhou et al. 2024. Real rows D_r and synthetic rows D_s have features x in [-1, 1]^m and labels y of -1
and +1; w_r and w_s minimise L(w, D) = mean of loss(y x'w) over ||w||_2 <= tau, on D_r and D_s. The paper
gives the bounds in O-notation; the constants here are those of its proofs (appendix A).

| paper | here | |
| --- | --- | --- |
| d | degree | the marginals of up to d attributes, the label among them, are near |
| m | features | without the label |
| tau | norm | 1/sqrt(m) for rows and weights in the unit ball |
| n | rows | of D_r, and of D_s |
| nu | distance | the largest l1 distance of such a marginal, in rows |
| K, phi(0) | lipschitz, at_zero | of the loss; 1 and log 2 for the logistic one |

The guarantees of Mechanism 1 and AIM for nu are `mechanisms.gen.gen_distance` (Lemma 3.4) and
`mechanisms.selection_bound.unselected_distance` (Theorem C.3). With the former the theorems are Corollaries 3.5 and
3.6, for eps < 1 and the noise of Lemma 3.3; Corollary 3.6 has 3 m where Theorem 3.2, which it follows from, has 2 m.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from dpbench.data.domain import Floats
from dpbench.errors import UserError
from dpbench.mechanisms.gen import count_marginals
from dpbench.metrics.evaluation import Evaluation, Score
from dpbench.metrics.marginals import marginal_distances
from dpbench.models.logistic import phi
from dpbench.models.polynomials import polynomial_coefficients
from dpbench.releases import Coefficients, Release, SyntheticRows

LOG_2 = math.log(2)
DIVERGENCE = "the bounds need marginals of at least two attributes: degree must be at least 2, not {}"
GRID = np.linspace(-1.0, 1.0, 4001)  # over which a polynomial's distance from the loss is taken


@dataclass(frozen=True)
class Bound:
    """A bound of L(w_s, D_r) - L(w_r, D_r), in its two parts (appendix A.1).

    `approximation`: 4 times the distance of the loss from its polynomial. `marginal`: twice the change of the
    polynomial's mean due to the distance of the marginals. The proof goes from L(w_s, D_r) to L(w_s, D_s), to L(w_r,
    D_s), which is no less, and to L(w_r, D_r), with four steps between loss and polynomial and two between the two sets
    of rows.
    """

    approximation: float
    marginal: float

    @property
    def total(self) -> float:
        """The bound."""
        return self.approximation + self.marginal


def general_bound(
    *,
    degree: int,
    features: int,
    norm: float,
    rows: float,
    distance: float,
    lipschitz: float = 1.0,
    at_zero: float = LOG_2,
) -> Bound:
    """Theorem 3.1, of a loss that is continuous and K-Lipschitz: by a Bernstein polynomial of degree d - 1.

    On [-R, R], R = max(tau sqrt(m), 1), the polynomial is within 5/4 omega(2 R / sqrt(d - 1)) <= 5/2 K R / sqrt(d - 1)
    of the loss (Theorem 2.3, (1)), and the mean of a monomial of degree k < d moves by no more than
    (m max(1, tau))^(d - 1) nu / n, times the sum of the |coefficients|, which is at most (phi(0) + K R) 3^(d - 1) (2):

        4 * 5/2 K R / sqrt(d - 1)  +  2 (phi(0) + K R) (3 m max(1, tau))^(d - 1) nu / n.

    **Departures** Each is slack in the proof, and kept. 1. (2) gives (1 + 1/R)^(d - 1), at most 2^(d - 1), where the
    theorem has 3^(d - 1). 2. The weights of the m^k products of k features have the sum ||w||_1^k <= (tau sqrt(m))^k,
    where the proof has (m tau)^k: with tau = 1/sqrt(m) the factor m^(d - 1) could go. 3. A Bernstein polynomial of a
    K-Lipschitz function is within K R / sqrt(d - 1) of it. The proof takes w'_r and w'_s over all of R^m; they must be
    the minimisers within the ball, outside of which the polynomial is not an approximation. Of D_s only the marginals'
    share of its rows matters: for another number of rows n_s, nu is n times the distance of h_r / n and h_s / n_s.

    >>> bound = general_bound(degree=4, features=9, norm=1 / 3, rows=1e9, distance=1.0)
    >>> round(bound.approximation, 4), round(bound.marginal * 1e6, 4)
    (5.7735, 66.6524)
    """
    _check(degree, features, norm, rows, distance)
    R = max(norm * math.sqrt(features), 1.0)
    size = (at_zero + lipschitz * R) * (3 * features * max(1.0, norm)) ** (degree - 1)
    return Bound(4 * 2.5 * lipschitz * R / math.sqrt(degree - 1), 2 * size * distance / rows)


def logistic_bound(*, degree: int, features: int, norm: float, rows: float, distance: float) -> Bound:
    """Theorem 3.2, of the logistic loss, whose derivative is continuous and 1/4-Lipschitz.

    On [-R, R], R = max(tau sqrt(m), 1), the Bernstein polynomial of degree d - 1 is within 3/4 R^2 / (d - 1) of the
    loss (Theorem 2.4), which is at most log 2 + R:

        4 * 3/4 R^2 / (d - 1)  +  2 (log 2 + R) (2 m max(1, tau))^(d - 1) nu / n.

    **Departures** 1. The first term is of the order R^2 / (d - 1), not tau sqrt(m) / (d - 1). Theorem 2.4 is for
    [0, 1]: as a function on it the loss has the derivative 2 R phi'(-R + 2 R t), with the Lipschitz constant
    (2 R)^2 / 4. The proof multiplies 1/4 by the interval's length once, and uses tau sqrt(m) as its length. What it
    then has is less than the distance that the paper has in Figure 1 (0.545 at d - 1 = 4 and R = 5, against 0.23).
    At tau = 1/sqrt(m), where R = 1, the orders are the same. 2. The theorem drops log 2 from the second term, which
    would be 0 at tau = 0. Slack is that of `general_bound`; the factor of the coefficients is 2^(d - 1), as (2) gives.

    >>> bound = logistic_bound(degree=4, features=9, norm=1 / 3, rows=1e9, distance=1.0)
    >>> round(bound.approximation, 4), round(bound.marginal * 1e6, 4)
    (1.0, 19.7489)
    """
    _check(degree, features, norm, rows, distance)
    R = max(norm * math.sqrt(features), 1.0)
    size = (LOG_2 + R) * (2 * features * max(1.0, norm)) ** (degree - 1)
    return Bound(4 * 0.75 * R**2 / (degree - 1), 2 * size * distance / rows)


def lower_bound(rows: float) -> float:
    """Theorem 4.1, second part: gamma / 16 with gamma = 1 / log(n)^3, which is Omega(1 / log(n)^3).

    For every method that makes synthetic rows from marginals within 1/n of those of a distribution, there is a
    distribution of rows separable by a hyperplane with margin gamma on which the excess risk is at least this, under a
    2-Lipschitz loss (appendix B, (8)).

    **Departures** 1. The proof needs gamma^(1/6) <= 1/4, that is n >= e^16, 8.9 million rows. 2. Definition B.1 has
    gamma = (m / 2)^(-5 / (10 - 2 r)), r = 5/6, so that m = 2 log(n)^5; Theorem B.3 needs m >= 2 gamma^(-2 - 2 r / 5) =
    2 log(n)^7 features (10 + 2 r in place of 10 - 2 r), 537 million of them at n = e^16. No run has so many: for our
    runs it is a rate, not a bound.

    >>> round(lower_bound(math.e**16) * 16**4, 9)
    1.0
    """
    return 1 / (16 * math.log(rows) ** 3)


def _check(degree: int, features: int, norm: float, rows: float, distance: float) -> None:
    if degree < 2:
        raise UserError(DIVERGENCE.format(degree))
    if not (features >= 1 and norm >= 0 and rows > 0 and distance >= 0):
        raise UserError(
            "the bounds need features of at least 1, rows above 0, and a norm and a distance of at least 0; they are "
            f"{features}, {rows:g}, {norm:g} and {distance:g}"
        )


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
