"""Linear regression from a release: sufficient statistics, marginals, or rows (DD-SSP, section 3.2)."""

from __future__ import annotations

import numpy as np

from dpbench.data.domain import Floats
from dpbench.data.encode import Design, second_moments
from dpbench.models.fit import Fit
from dpbench.models.training_rows import training_rows
from dpbench.releases import Marginals, Release, SufficientStatistics

RELATIVE_RANK_TOLERANCE = 1e-10


def linear_statistics(release: Release, *, design: Design) -> Fit:
    """theta = (X'X + ridge I)^-1 X'y from released sufficient statistics (SSP, AdaSSP, exact)."""
    statistics = release[SufficientStatistics]
    scaled = design.scaled or statistics.xtx_sd > 0  # noise is the same in all entries: in other units it is not
    return solve(statistics.xtx, statistics.xty, ridge=statistics.ridge, scaled=scaled)


def linear_marginals(release: Release, *, design: Design) -> Fit:
    """X'X and X'y from released pairwise marginals (DD-SSP, Algorithm 1), then the normal equations."""
    return solve(*design.moments(release[Marginals].tables), scaled=design.scaled)


def linear_rows(release: Release, *, design: Design, rng: np.random.Generator) -> Fit:
    """Least squares on released synthetic rows (AIM-Synth of DD-SSP), or on rows drawn from released bins."""
    return solve(*second_moments(*training_rows(release, design, rng)), scaled=design.scaled)


def solve(xtx: Floats, xty: Floats, *, ridge: float = 0.0, scaled: bool = True) -> Fit:
    """The solution of (X'X + ridge I) theta = X'y with the least norm, of X'X (p, p) symmetric and X'y (p,).

    A positive definite matrix is solved as it is. Otherwise (collinear columns, or noise that made it indefinite) its
    eigenvectors with eigenvalues below 1e-10 of the largest, the negative ones among them, are left out: these
    directions have no information on theta. The notes record the rank and which of the two was done. If the columns are
    not `scaled` to like sizes, this applies to X'X in the units that make its diagonal 1 (or -1), so that no column
    falls below the cut-off because of its unit.

    Raises `ValueError` if no eigenvalue is positive.
    """
    matrix = xtx + ridge * np.eye(len(xty))
    unit = units(matrix, scaled)
    values, vectors = np.linalg.eigh(matrix / np.outer(unit, unit))
    kept = values > RELATIVE_RANK_TOLERANCE * max(values[-1], 0.0)
    if not kept.any():
        raise ValueError("X'X has no positive eigenvalue: the noise is larger than the signal")
    theta = vectors[:, kept] @ ((vectors[:, kept].T @ (xty / unit)) / values[kept]) / unit
    negative = int((values < -RELATIVE_RANK_TOLERANCE * values[-1]).sum())
    notes = {"rank": int(kept.sum()), "columns": len(xty), "negative_eigenvalues": negative}
    return Fit(theta, (xtx, xty), {**notes, "solver": "eigenvalue cut-off" if not kept.all() else "full rank"})


def units(xtx: Floats, scaled: bool) -> Floats:
    """The unit (p,) in which to see each column of X: 1 if they are `scaled`, else its root in the diagonal of X'X."""
    root = np.sqrt(np.abs(np.diag(xtx)))
    return np.ones(len(xtx)) if scaled else np.where(root > 0, root, 1.0)
