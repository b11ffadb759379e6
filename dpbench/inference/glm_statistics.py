"""The polynomial approximate sufficient statistics of logistic and Poisson regression, as one vector (PASS-GLM).

Kulkarni et al. 2021 (Bayesian GLM), section 3.2 and equation (7); Huggins et al. 2017. The order of their entries is
stated here, once, for what releases them and for what models them. With d features, T = d (d + 1) / 2 and the pairs
i <= j row by row, as `numpy.triu_indices` has them, the statistics of one row x (d,), y are

    logistic, y = -1 or +1:  y x (d), x_i x_j (T)                              k = d + T
    poisson,  y a count:     x (d), x_i x_j (T), y x (d), y x_i x_j (T)        k = 2 (d + T)

and those of a table are their sums. They are plain products: the sqrt 2 of t_2 (equation 7) is in `weights`. Of the
logistic ones y^2 = 1 leaves x_i x_j without y. A constant is no statistic.
"""

from __future__ import annotations

from itertools import accumulate, pairwise

import numpy as np
from numpy.typing import NDArray

from dpbench.data.domain import Floats
from dpbench.errors import check_known

FAMILIES = ("logistic", "poisson")


def triangle(d: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The features i and j (T,) of the pairs i <= j, in the order of the statistics."""
    i, j = np.triu_indices(d)
    return i, j


def blocks(family: str, d: int) -> tuple[slice, ...]:
    """Where the parts of the vector stand: (y x, xx) of the logistic one, (x, xx, y x, y xx) of the Poisson one.

    Raises `UserError` for an unknown family.

    >>> blocks("logistic", 3)
    (slice(0, 3, None), slice(3, 9, None))
    """
    check_known("family", family, FAMILIES)
    sizes = (d, d * (d + 1) // 2) * (1 if family == "logistic" else 2)
    return tuple(slice(start, stop) for start, stop in pairwise(accumulate(sizes, initial=0)))


def weights(family: str, d: int) -> Floats:
    """What the entries (k,) are multiplied by in t_1 and t_2 of equation (7): sqrt 2 for i < j, 1 for all others.

    With them ||t_2(x) - t_2(z)||^2 = ||x||^4 + ||z||^4 - 2 (x.z)^2.
    """
    i, j = triangle(d)
    one = np.concatenate([np.ones(d), np.where(i < j, np.sqrt(2), 1.0)])
    return np.tile(one, len(blocks(family, d)) // 2)


def sum_statistics(X: Floats, y: Floats, family: str) -> Floats:
    """The statistics (k,) of the table X (n, d), y (n,): the sums of those of its rows.

    >>> sum_statistics(np.array([[2.0, 3.0]]), np.array([-1.0]), "logistic").tolist()
    [-2.0, -3.0, 4.0, 6.0, 9.0]
    """
    check_known("family", family, FAMILIES)
    upper, yx = triangle(X.shape[1]), X.T @ y
    pairs = (X.T @ X)[upper]
    if family == "logistic":
        return np.concatenate([yx, pairs])
    return np.concatenate([X.sum(axis=0), pairs, yx, (X.T @ (y[:, None] * X))[upper]])
