"""Logistic regression of degree 4 from released 4-way marginals (DD-SSP, appendix F.3)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import combinations_with_replacement, permutations

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, inv

from dpbench.data.domain import Clique, Floats
from dpbench.data.encode import Design, marginal
from dpbench.errors import UserError, check_positive
from dpbench.models.fit import Fit
from dpbench.models.linear import RELATIVE_RANK_TOLERANCE, units
from dpbench.models.logistic import check_labels, phi
from dpbench.models.polynomials import polynomial_coefficients
from dpbench.releases import Marginals, Release

MB = 2**20
ARMIJO = 1e-4  # Nocedal and Wright (2006), section 3.1
BARRIER_STEP = 10.0  # Boyd and Vandenberghe (2004), section 11.3.1: 10 to 20 or so


def logistic_marginals_degree4(
    release: Release,
    *,
    design: Design,
    radius: float = 6.0,
    construction: str = "interpolation",
    tolerance: float = 1e-9,
    iterations: int = 500,
    max_moments_mb: float = 256.0,
) -> Fit:
    """DD-SSP of degree 4: the maximum of sum_i sum_{m <= 4} b_m (y_i x_i'theta)^m over the region where it is concave.

    The sums are exact functions of the 4-way marginals; b is `polynomial_coefficients(phi, 4, radius, construction)`.

    **Source** DD-SSP, appendix F.3; the sums from marginals as in F.1.
    **Privacy** Post-processing of the release.
    **Shapes** X'X (p, p), X'y (p,), sum_i x_i^(x4) (p, p, p, p), which may have `max_moments_mb` MB; theta (p,).
    **Departures** 1. sum_i y_i x_i^(x3) is not computed: phi(s) - s/2 is even, so that b3 = 0 by either construction.
    2. b4 > 0, so that the objective is unbounded, and the paper does not say which theta it means. Its Hessian
    2 b2 X'X + 12 b4 sum_i (x_i'theta)^2 x_i x_i' is negative semidefinite on a convex region about 0 (b2 < 0, and
    sum_i (x_i'theta)^2 (x_i'v)^2 is convex in theta, if the marginals are those of a table or a model), which holds
    every local maximum. The fit is the maximum over this region: the local maximum if there is one (`local_maximum` in
    the notes), else a point on the region's boundary.
    3. Directions without information on theta are left out as in `models.linear.solve`.

    The objective ends within `tolerance` nats a row of its maximum, or the notes say that `iterations` Newton steps
    were not enough (`converged`). They also hold the root of the mean of s^2 = (x'theta)^2 and, from the mean of s^4,
    Markov's bound on the share of the rows whose |s| is above `radius`, where the polynomial does not approximate phi.

    Raises `UserError` for a target that is not -1 and +1, marginals that are missing or moments over the limit.
    """
    marginals = release[Marginals].tables
    check_labels(design)
    check_positive("logistic_marginals_degree4", tolerance=tolerance, iterations=iterations)
    b = polynomial_coefficients(phi, 4, radius, construction)
    _check_size(len(design.columns), max_moments_mb)
    xtx, xty = design.moments(marginals)
    n = float(marginal(marginals, ()))
    unit = units(xtx, design.scaled)
    values, vectors = np.linalg.eigh(xtx / n / np.outer(unit, unit))
    kept = values > RELATIVE_RANK_TOLERANCE * max(values[-1], 0.0)
    if not kept.any():
        raise ValueError("X'X has no positive eigenvalue: the noise is larger than the signal")
    # theta = V u makes the mean of (x'theta)^2 equal to u'u
    V = vectors[:, kept] / np.sqrt(values[kept]) / unit[:, None]
    h, K = V.T @ xty / n, fourth_moments(design, marginals) / n
    for _ in range(4):
        K = np.tensordot(K, V, axes=(0, 0))
    u, steps, converged = concave_maximum(b, h, K, tolerance, iterations)
    gradient_norm = float(np.linalg.norm(_derivatives(b, h, K, u)[0]))
    fourth = float(u @ _contract(K, np.outer(u, u)) @ u)
    notes = {
        "converged": converged,
        "iterations": steps,
        "gradient_norm": gradient_norm,
        "local_maximum": gradient_norm <= math.sqrt(tolerance),
        "score_rms": float(np.linalg.norm(u)),
        "beyond_radius_at_most": min(fourth / radius**4, 1.0),
        "rank": int(kept.sum()),
        "columns": len(xty),
        "construction": construction,
        "radius": radius,
        "b": b.tolist(),
    }
    return Fit(V @ u, (xtx, xty), notes)


def fourth_moments(design: Design, marginals: Mapping[Clique, Floats]) -> Floats:
    """sum_i x_i^(x4) (p, p, p, p) from the 4-way marginals of the features (DD-SSP, appendix F.1).

    The block of attributes j, k, l, q is A_j (x) A_k (x) A_l (x) A_q applied to the marginal of the distinct ones.

    Raises `UserError` naming a marginal that is missing.
    """
    maps = {name: design.matrices[name] for name in design.features}
    if design.intercept:  # a constant feature is an attribute of one level
        maps[""] = np.ones((1, 1))
    ends = np.cumsum([len(matrix) for matrix in maps.values()])
    place = {name: slice(end - len(maps[name]), end) for name, end in zip(maps, ends, strict=True)}
    moments = np.zeros((ends[-1],) * 4)
    tables: dict[Clique, Floats] = {}
    for four in combinations_with_replacement(maps, 4):
        clique = tuple(dict.fromkeys(name for name in four if name))
        if clique not in tables:
            tables[clique] = marginal(marginals, clique)
        axis = dict(zip((*clique, ""), "vwxyz", strict=False))
        factors = ",".join(row + axis[name] for row, name in zip("abcd", four, strict=True))
        contraction = f"{''.join(axis[name] for name in clique)},{factors}->abcd"
        block = np.einsum(contraction, tables[clique], *(maps[name] for name in four), optimize="greedy")
        for order in permutations(range(4)):
            moments[tuple(place[four[i]] for i in order)] = block.transpose(order)
    return moments


def _check_size(p: int, max_moments_mb: float) -> None:
    mb = 8 * p**4 / MB
    if mb > max_moments_mb:
        raise UserError(
            f"logistic_marginals_degree4: the fourth moments of {p} features take {mb:.3g} MB, but the limit is "
            f"{max_moments_mb:g} MB; raise model.logistic_marginals_degree4.max_moments_mb or drop attributes"
        )


def concave_maximum(b: Floats, h: Floats, K: Floats, tolerance: float, iterations: int) -> tuple[Floats, int, bool]:
    """The u (r,) where f(u) = b1 h'u + b2 u'u + b4 K(u, u, u, u) is largest within {-f''(u) positive semidefinite}.

    A barrier method: Newton's method on f + mu log det(-f''), which is concave there, for mu that falls until the
    optimum of the sum is within mu r <= `tolerance` of that of f (Boyd and Vandenberghe 2004, sections 11.3 and 11.6).
    Returns u, the Newton steps taken, and whether they were enough.
    """
    r = len(h)
    u, steps, mu = np.zeros(r), 0, 1.0 / r
    value, gradient, hessian = _barrier(b, h, K, u, mu)
    while steps < iterations:
        step = cho_solve(cho_factor(hessian), -gradient)
        decrement = -float(gradient @ step)
        if decrement <= mu:
            if mu * r <= tolerance:
                return u, steps, True
            mu /= BARRIER_STEP
            value, gradient, hessian = _barrier(b, h, K, u, mu)
            continue
        size, rounding = 1.0, 10 * np.finfo(float).eps * abs(value)
        while _value(b, h, K, u + size * step, mu) > value - ARMIJO * size * decrement + rounding:
            size /= 2
        u, steps = u + size * step, steps + 1
        value, gradient, hessian = _barrier(b, h, K, u, mu)
    return u, steps, False


def _contract(K: Floats, A: Floats) -> Floats:
    """sum_cd K_abcd A_cd (r, r)."""
    return np.tensordot(K, A, axes=2)


def _derivatives(b: Floats, h: Floats, K: Floats, u: Floats) -> tuple[Floats, Floats]:
    """f'(u) (r,) and f''(u) (r, r)."""
    M = _contract(K, np.outer(u, u))
    return b[1] * h + 2 * b[2] * u + 4 * b[4] * M @ u, 2 * b[2] * np.eye(len(u)) + 12 * b[4] * M


def _value(b: Floats, h: Floats, K: Floats, u: Floats, mu: float) -> float:
    """-f(u) - mu log det(-f''(u)), infinite outside of the region."""
    M = _contract(K, np.outer(u, u))
    try:
        factor = np.linalg.cholesky(-2 * b[2] * np.eye(len(u)) - 12 * b[4] * M)
    except LinAlgError:
        return np.inf
    f = b[1] * h @ u + b[2] * u @ u + b[4] * u @ M @ u
    return float(-f - 2 * mu * np.log(np.diag(factor)).sum())


def _barrier(b: Floats, h: Floats, K: Floats, u: Floats, mu: float) -> tuple[float, Floats, Floats]:
    """`_value`, its gradient and its Hessian, by d(-f'') = -24 b4 K(u, du)."""
    gradient, hessian = _derivatives(b, h, K, u)
    W = inv(-hessian)
    KW = 24 * b[4] * _contract(K, W)
    change = 24 * b[4] * np.tensordot(K, u, axes=1) @ W  # (r, r, r): of du_a, times W
    curvature = -hessian + mu * (KW + np.tensordot(change, change, axes=([1, 2], [2, 1])))
    return _value(b, h, K, u, mu), mu * KW @ u - gradient, curvature
