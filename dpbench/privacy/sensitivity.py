"""Sensitivities: how far one record changes a statistic, under each neighbouring relation; one function each.

A record is added or removed (`add_remove`), or replaced by another (`replace`). X (n, p) and y (n,) are the rows as a
`Design` encodes them, ||X|| and ||Y|| its bounds on ||x||_2 and |y|, and A is X, or [X, y] where `target` is set.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations, product

import numpy as np
from numpy.polynomial import Polynomial

from dpbench.data.domain import Clique, Floats
from dpbench.data.encode import Design

MOST_EXACT = 14  # attributes up to which `of_residuals` checks all 2^d sets


def of_marginal(relation: str) -> tuple[float, float]:
    """The l1 and the l2 sensitivity of a marginal's counts.

    A record that is added or removed is one count in one cell; one that is replaced can leave a cell for another.
    """
    return (1.0, 1.0) if relation == "add_remove" else (2.0, math.sqrt(2))


def of_residuals(sizes: Mapping[str, int], weights: Mapping[Clique, float], relation: str) -> float:
    """The l2 sensitivity of the residuals of these cliques' marginals (`inference.residuals`), each times its weight.

    For a record that is added or removed, the residual of A has the squared norm p_A = prod_(i in A) (1 - 1/m_i). Two
    records that differ in the attributes D, their residuals being e and f, have e.f = prod_(i in A \\ D) (1 - 1/m_i)
    prod_(i in A and D) (-1/m_i), so that for `replace` the square is the largest, over D, of

        2 sum_A w_A^2 (p_A - e_A.f_A).

    Up to `MOST_EXACT` attributes it is found among all D. Beyond that, the terms of A are divided equally over the
    largest cliques that contain A, and D is chosen for each of these separately: an upper bound.
    """
    squares = {r: w**2 for r, w in weights.items() if all(sizes[name] > 1 for name in r)}
    names = sorted({name for r in squares for name in r})
    if relation == "add_remove":
        return math.sqrt(sum(w * math.prod(1 - 1 / sizes[name] for name in r) for r, w in squares.items()))
    if len(names) <= MOST_EXACT:
        return math.sqrt(_most_apart(sizes, names, squares))
    subsets = {r: [a for k in range(len(r) + 1) for a in combinations(r, k) if a in squares] for r in squares}
    inner = {a for r, below in subsets.items() for a in below if a != r}
    outer = {r: below for r, below in subsets.items() if r not in inner}
    times = Counter(a for below in outer.values() for a in below)
    return math.sqrt(
        sum(_most_apart(sizes, r, {a: squares[a] / times[a] for a in below}) for r, below in outer.items())
    )


def _most_apart(sizes: Mapping[str, int], names: Sequence[str], squares: Mapping[Clique, float]) -> float:
    """The largest squared distance of the weighted residuals of two records, over the sets of these names."""
    differ = np.array(list(product([False, True], repeat=len(names))))
    size = np.array([sizes[name] for name in names], dtype=float)
    factors = dict(zip(names, np.where(differ, -1 / size, 1 - 1 / size).T, strict=True))
    apart = np.zeros(len(differ))
    for r, square in squares.items():
        common = np.ones(len(differ))
        for name in r:
            common = common * factors[name]
        apart += 2 * square * (common[0] - common)  # the first set is empty: the same record twice
    return float(apart.max())


def of_gram(design: Design, relation: str, *, target: bool = False) -> float:
    """The l2 sensitivity of all entries of A'A: B^2, the largest ||a||^2, or sqrt 2 B^2 for `replace`.

    ||aa' - bb'||^2 = ||a||^4 + ||b||^4 - 2 (a.b)^2.
    """
    return _apart(float((_peaks(design, target) ** 2).sum()), relation)


def of_triangle(design: Design, relation: str, *, target: bool = False) -> float:
    """The l2 sensitivity of the upper triangle of A'A, which determines A'A.

    For one record it is sum_{i <= j} (a_i a_j)^2 = (||a||^4 + sum_i a_i^4) / 2, and both terms are largest where each
    attribute takes the value with the largest entry, because an encoded value has at most one entry that is not 0. For
    two, the inner product of their triangles, ((a.b)^2 + sum_i (a_i b_i)^2) / 2, is at least 0: sqrt 2 times that,
    attained by records without a common entry, or less.
    """
    peaks = _peaks(design, target)
    return _apart(math.sqrt((float((peaks**2).sum()) ** 2 + float((peaks**4).sum())) / 2), relation)


def of_cross(design: Design, relation: str) -> float:
    """The l2 sensitivity of X'y: ||X|| ||Y||, or the largest ||x y - z w|| over two records for `replace`.

    This is convex in (y, w) and in (x, z), so that both pairs are at corners; at y and w its square is the sum over
    the attributes of the largest squared distances of y times one value from w times another. It is 2 ||X|| ||Y|| for
    a target with a symmetric range, and less for others.
    """
    if relation == "add_remove":
        return design.x_bound * design.y_bound

    def squared_distance(y: float, w: float) -> float:
        return sum(
            float(((y * values[:, :, None] - w * values[:, None, :]) ** 2).sum(axis=0).max())
            for values in design.corners
        )

    low, high = design.target_range
    return math.sqrt(max(squared_distance(y, w) for y, w in ((low, low), (low, high), (high, high))))


def of_products(design: Design, relation: str) -> Floats:
    """The sensitivity of each entry of A'A alone, A = [X, y]: (p + 1, p + 1).

    It is the largest |a_i a_j| over the values that the columns can have, or for `replace` the largest product minus
    the least. These are at the corners of the box of two columns; of a square they are at its ends, or 0. An attribute
    has at most one entry that is not 0, so that the product of two of its columns always is.
    """
    low, high = (np.append(*ends) for ends in zip(design.box, design.target_range, strict=True))
    corners = np.stack([np.outer(a, b) for a in (low, high) for b in (low, high)])
    least, most = corners.min(axis=0), corners.max(axis=0)
    np.fill_diagonal(least, np.where((low < 0) & (high > 0), 0.0, np.minimum(low**2, high**2)))
    attribute = np.repeat(np.arange(len(design.features)), [len(design.matrices[name]) for name in design.features])
    alone = len(low) - len(attribute)  # the intercept and the target
    attribute = np.concatenate([attribute, -1 - np.arange(alone)])
    changes = most - least if relation == "replace" else np.maximum(np.abs(least), np.abs(most))
    return np.where((attribute[:, None] == attribute) & ~np.eye(len(low), dtype=bool), 0.0, changes)


def of_square(design: Design, relation: str) -> float:
    """The sensitivity of y'y: the largest y^2, minus the smallest for `replace`."""
    low, high = design.target_range
    least = 0.0 if relation == "add_remove" or low < 0 < high else min(low**2, high**2)
    return design.y_bound**2 - least


def of_least_eigenvalue(design: Design) -> float:
    """The sensitivity of lambda_min(X'X): ||X||^2 under both relations.

    lambda_min(M) <= lambda_min(M + xx') <= lambda_min(M) + ||x||^2 (Weyl), M being the common part of two neighbours.
    """
    return design.x_bound**2


def of_monomials(
    radius: float, plain: Sequence[float], relation: str, *, times_y: Sequence[float] = (), largest: float = 0.0
) -> float:
    """The l2 sensitivity of all sqrt(p_m) t_m(x) and sqrt(q_m) y t_m(x), m = 1, ..., M: p = `plain`, q = `times_y`.

    t_m(x) holds the monomials of degree m, each times the root of its multinomial coefficient, so that t_m(x).t_m(z) =
    (x.z)^m; ||x||_2 <= R = `radius` and 0 <= y <= `largest` (Kulkarni et al. 2021, Lemmas 3.4.1, 3.4.2 and section 9.4,
    where p_m and q_m are the variance of the noise of t_1 over that of the term). Of one record, which is added or
    removed, it is the root of sum_m (p_m + q_m y^2) R^2m at the largest y. Of two, with t = x.z,

        sum_m p_m (||x||^2m + ||z||^2m - 2 t^m) + q_m (y^2 ||x||^2m + w^2 ||z||^2m - 2 y w t^m)

    is for any t largest where both norms are R, and convex in y and in w: both are at their ends. What is left is a
    polynomial of t on [-R^2, R^2]. All t there are attained by vectors of two entries or more.

    The lemmas' formulas take y = w = `largest` and let t leave the interval. They agree with this for noise of one
    scale in all terms and R = 1. For other scales Lemma 3.4.2 can be too small: a record of y = 0 and one of the
    largest y can differ more.

    >>> round(of_monomials(1.0, [1, 1], "replace") ** 2, 6), round(of_monomials(1.0, [1] * 6, "replace") ** 2, 2)
    (4.5, 12.73)
    """
    p, q = (np.array([*given, *[0.0] * (max(len(plain), len(times_y)) - len(given))]) for given in (plain, times_y))
    powers = radius ** (2.0 * np.arange(1, len(p) + 1))
    if relation == "add_remove":
        return math.sqrt(float((p + q * largest**2) @ powers))

    def squared(y: float, w: float) -> float:
        common = Polynomial([0.0, *(p + q * y * w)])
        t = np.clip([*np.real(common.deriv().trim().roots()), -np.inf, np.inf], -(radius**2), radius**2)
        return float((2 * p + q * (y**2 + w**2)) @ powers - 2 * common(t).min())

    return math.sqrt(max(squared(largest, largest), squared(largest, 0.0)))


def _peaks(design: Design, target: bool) -> Floats:
    return np.append(design.peaks, design.y_bound) if target else design.peaks


def _apart(bound: float, relation: str) -> float:
    """The distance of two vectors of norm `bound` whose inner product is not negative, or the norm of one."""
    return bound if relation == "add_remove" else math.sqrt(2) * bound
