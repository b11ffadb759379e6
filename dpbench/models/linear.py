"""Linear regression from what a release offers: sufficient statistics, marginals, or rows (Paper 0, section 3.2)."""

from __future__ import annotations

import numpy as np

from dpbench.data.domain import Floats
from dpbench.data.encode import Design, second_moments
from dpbench.mechanisms.release import Release
from dpbench.models.fit import Fit

RELATIVE_RANK_TOLERANCE = 1e-10


def linear_statistics(release: Release, *, design: Design) -> Fit:
    """theta = (X'X + ridge I)^-1 X'y from released sufficient statistics (SSP, AdaSSP, exact)."""
    assert release.statistics is not None
    return solve(release.statistics.xtx, release.statistics.xty, ridge=release.statistics.ridge)


def linear_marginals(release: Release, *, design: Design) -> Fit:
    """DD-SSP: X'X and X'y from released pairwise marginals (Paper 0, Algorithm 1), then the normal equations."""
    assert release.marginals is not None
    return solve(*design.moments(release.marginals))


def linear_rows(release: Release, *, design: Design) -> Fit:
    """Least squares on released synthetic rows (Paper 0, AIM-Synth)."""
    assert release.rows is not None
    return solve(*second_moments(*design.encode(release.rows)))


def solve(xtx: Floats, xty: Floats, *, ridge: float = 0.0) -> Fit:
    """The solution of (X'X + ridge I) theta = X'y with the least norm, of X'X (p, p) symmetric and X'y (p,).

    A positive definite matrix is solved as it is. Otherwise (collinear columns, or noise that made it indefinite) its
    eigenvectors with eigenvalues below 1e-10 of the largest, the negative ones among them, are left out: these
    directions hold no information on theta. The notes record the rank and which of the two was done.

    Raises `ValueError` if no eigenvalue is positive.
    """
    values, vectors = np.linalg.eigh(xtx + ridge * np.eye(len(xty)))
    kept = values > RELATIVE_RANK_TOLERANCE * max(values[-1], 0.0)
    if not kept.any():
        raise ValueError("X'X has no positive eigenvalue: the noise is larger than all of the signal")
    theta = vectors[:, kept] @ ((vectors[:, kept].T @ xty) / values[kept])
    negative = int((values < -RELATIVE_RANK_TOLERANCE * values[-1]).sum())
    notes = {"rank": int(kept.sum()), "columns": len(xty), "negative_eigenvalues": negative}
    return Fit(theta, (xtx, xty), {**notes, "solver": "eigenvalue cut-off" if not kept.all() else "full rank"})
