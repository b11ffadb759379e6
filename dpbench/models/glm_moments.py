"""Mean and covariance of the statistics of one row of a Bayesian GLM, given theta and Sigma (PASS-GLM).

Kulkarni et al. 2021 (Bayesian GLM), section 3.3 and supplement 8. x ~ N(0, Sigma), u = x'theta, so that (x, u) is
Gaussian with v = var(u) = theta'Sigma theta and b = cov(x, u) = Sigma theta. Two steps:

1. exact. Isserlis' theorem for the product of x_i, x_j, ... and a function f(u): the sum over all ways to pair some of
   the x, each pair giving its Sigma_ij, each x left over giving its b_i, with E[f^(m)(u)] for the m left over. (That
   is Isserlis with each left-over x paired with a factor u of f's power series.) Any d, no loop: `second`, `third` and
   `fourth` multiply full matrices, and pick the pairs i <= j of the statistics.
2. `expectations`: h_m = E[f^(m)(u)], m = 0..4, u ~ N(0, v), a problem of one dimension. "taylor" replaces f by the
   paper's polynomial, with exact Gaussian moments; "quadrature" is Gauss and Hermite's rule.

| f | E[y | x] of | Taylor polynomial |
| --- | --- | --- |
| tanh(u / 2) | logistic, y = -1, +1 | u/2 - u^3/24 |
| softplus(u) = log(1 + e^u) | poisson | log 2 + u/2 + u^2/8 - u^4/192 |
| softplus(u) + softplus(u)^2, E[y^2 | x] | poisson | the one above + log^2 2 + u log 2 + u^2 (1 + log 2)/4 + u^3/8 |

Departures from the paper, without which the posterior is wrong: equation (6) and its polynomial have tanh with the
opposite sign of its likelihood; case (b), where y^(a+b+c+d) = y^2 = 1, has no factor tanh; E[y^2 | x] of section 8.2
lacks the mean. The polynomial approximates tanh for |u| < 1 or so: E[y x] has the wrong sign once v > 4.

Arrays are NumPy's or jax's; `moments` then is, too, and can be compiled, differentiated and mapped over draws.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
from numpy.polynomial import Polynomial

from dpbench.data.domain import Floats
from dpbench.errors import check_known
from dpbench.inference.glm_statistics import triangle

EXPECTATIONS = ("taylor", "quadrature")
NODES = 64  # of Gauss and Hermite: h_1 of tanh to 1e-10 at v = 4, 1e-7 at 9, 1e-5 at 25
LEAST = 1e-20  # added to v: at 0 its root has no derivative
LOG2 = math.log(2)
TANH = Polynomial([0, 1 / 2, 0, -1 / 24])
SOFTPLUS = Polynomial([LOG2, 1 / 2, 1 / 8, 0, -1 / 192])
SQUARE = Polynomial([LOG2**2, LOG2, (1 + LOG2) / 4, 1 / 8])  # of softplus
Array = Any  # of NumPy or jax, or what jax traces

POLYNOMIALS = {"tanh": TANH, "softplus": SOFTPLUS, "counts": SOFTPLUS + SQUARE}


def moments(theta: Array, Sigma: Array, family: str, method: str) -> tuple[Array, Array]:
    """Mean (k,) and covariance (k, k) of one row's statistics, in the order of `inference.glm_statistics`.

    theta (d,), Sigma (d, d) positive definite. The sum over n independent rows has n times both. `method`: how the
    expectations of functions of x'theta are found, "taylor" or "quadrature". The covariance is exact with exact
    expectations; Taylor's need not be positive definite where v is large.
    """
    return _logistic(theta, Sigma, method) if family == "logistic" else _poisson(theta, Sigma, method)


def _logistic(theta: Array, Sigma: Array, method: str) -> tuple[Array, Array]:
    """Of y x and x_i x_j: y^2 = 1, so that y is left where the order of the product is odd (cases (a) to (d))."""
    xp = Sigma.__array_namespace__()
    b = Sigma @ theta
    h = expectations("tanh", theta @ b, method)
    yx, xx = h[1] * b, Sigma[triangle(len(b))]
    one, rest = third(Sigma, b)
    yxxx = h[1] * one + h[3] * rest
    covariance = _block(Sigma - yx[:, None] * yx, yxxx - yx[:, None] * xx, _paired(Sigma, Sigma))
    return xp.concatenate([yx, xx]), covariance


def _poisson(theta: Array, Sigma: Array, method: str) -> tuple[Array, Array]:
    """Of t = (x, x_i x_j) and y t: cov = E[tt'], E[y tt'], E[y^2 tt'] minus the product of the means."""
    xp = Sigma.__array_namespace__()
    b = Sigma @ theta
    v, upper = theta @ b, triangle(len(b))
    pairs, one, two = second(Sigma, b), third(Sigma, b), fourth(Sigma, b)

    def expected(h: tuple[Array, ...]) -> Array:
        """E[tt' f(u)]."""
        xx, xxx = h[0] * pairs[0] + h[2] * pairs[1], h[1] * one[0] + h[3] * one[1]
        return _block(xx, xxx, h[0] * two[0] + h[2] * two[1] + h[4] * two[2])

    softplus, counts = expectations("softplus", v, method), expectations("counts", v, method)
    tt = _block(Sigma, 0 * one[0], two[0])
    yxx = softplus[0] * pairs[0] + softplus[2] * pairs[1]
    mean = xp.concatenate([0 * b, Sigma[upper], softplus[1] * b, yxx[upper]])
    return mean, _block(tt, expected(softplus), expected(counts)) - mean[:, None] * mean


# --- Isserlis' theorem: the factors of the expectations h_m of f^(m)(u) --------------------------------------------


def second(Sigma: Array, b: Array) -> tuple[Array, Array]:
    """E[x_i x_j f(u)] (d, d) = Sigma_ij h_0 + b_i b_j h_2."""
    return Sigma, b[:, None] * b


def third(Sigma: Array, b: Array) -> tuple[Array, Array]:
    """E[x_i x_k x_l f(u)] (d, T) = (Sigma_ik b_l + Sigma_il b_k + Sigma_kl b_i) h_1 + b_i b_k b_l h_3."""
    k, m = triangle(len(b))
    return Sigma[:, k] * b[m] + Sigma[:, m] * b[k] + b[:, None] * Sigma[k, m], b[:, None] * (b[k] * b[m])


def fourth(Sigma: Array, b: Array) -> tuple[Array, Array, Array]:
    """E[x_i x_j x_k x_l f(u)] (T, T): 3 products of Sigma h_0 + 6 Sigma_.. b_. b_. h_2 + b_i b_j b_k b_l h_4."""
    upper, B = triangle(len(b)), b[:, None] * b
    s, t = Sigma[upper], B[upper]
    mixed = s[:, None] * t + t[:, None] * s + _paired(Sigma, B) + _paired(B, Sigma)
    return s[:, None] * s + _paired(Sigma, Sigma), mixed, t[:, None] * t


def _paired(X: Array, Y: Array) -> Array:
    """X_ik Y_jm + X_im Y_jk (T, T) of X, Y (d, d), for the pairs (i, j) in rows and (k, m) in columns.

    Of all k and m at first, (T, d, d): one entry is then picked for each pair, where gradients would go to four.
    """
    i, j = triangle(len(X))
    products = X[i][:, :, None] * Y[j][:, None, :]
    return (products + products.swapaxes(1, 2))[:, i, j]


def _block(a: Array, c: Array, e: Array) -> Array:
    """[[a, c], [c', e]]."""
    xp = a.__array_namespace__()
    return xp.concatenate([xp.concatenate([a, c.T]), xp.concatenate([c, e])], axis=1)


# --- expectations of functions of u ~ N(0, v) ----------------------------------------------------------------------


def expectations(name: str, v: Array, method: str) -> tuple[Array, ...]:
    """h_m = E[f^(m)(u)], m = 0..4, u ~ N(0, v), of the function f called `name` (a key of `POLYNOMIALS`).

    Quadrature needs no derivative: h_m = E[He_m(z) f(sqrt(v) z)] / v^(m/2), z ~ N(0, 1), He_m
    being Hermite's polynomials. Its nodes and weights are a distribution of u, so that `moments` are those of a
    distribution of (x, y) for any v: the covariance is positive definite even where the expectations are not exact.

    >>> [round(float(h), 4) for h in expectations("tanh", np.float64(0.5), "taylor")]
    [0.0, 0.4375, 0.0, -0.25, 0.0]
    >>> [round(abs(float(h)), 4) for h in expectations("tanh", np.float64(0.5), "quadrature")]
    [0.0, 0.4492, 0.0, 0.1671, 0.0]
    """
    check_known("expectations", method, EXPECTATIONS)
    if method == "taylor":
        polynomial = POLYNOMIALS[name]
        return tuple(_gaussian(polynomial.deriv(m) if m else polynomial, v) for m in range(5))
    xp = v.__array_namespace__()
    nodes, weights = _rule()
    root = xp.sqrt(v + LEAST)
    u = root * nodes
    f = xp.tanh(u / 2) if name == "tanh" else xp.logaddexp(u, 0 * u)
    h = weights @ (f + f**2 if name == "counts" else f)
    return tuple(h[m] / root**m for m in range(5))


def _gaussian(polynomial: Polynomial, v: Array) -> Array:
    """E[polynomial(u)]: E[u^(2m)] = (2m - 1)!! v^m = (2m)! / (2^m m!) v^m."""
    even = polynomial.coef[::2]
    return sum(c * math.factorial(2 * m) / (2**m * math.factorial(m)) * v**m for m, c in enumerate(even)) + 0 * v


@cache
def _rule() -> tuple[Floats, Floats]:
    """Nodes (64,) of E[f(z)], z ~ N(0, 1), and the weights times He_0 .. He_4 there (5, 64)."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(NODES)
    hermite = np.polynomial.hermite_e.hermevander(nodes, 4).T
    return nodes, hermite * weights / weights.sum()
