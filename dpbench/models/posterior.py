"""A `Fit` from the draws of a posterior, with convergence diagnostics."""

from __future__ import annotations

import numpy as np

from dpbench.data.domain import Floats
from dpbench.errors import UnconvergedError, check_part
from dpbench.files import Json
from dpbench.models.diagnostics import ess_bulk, ess_tail, r_hat
from dpbench.models.fit import Fit

MOST_R_HAT = 1.1  # from there on chains are unconverged; Kulkarni et al. 2021, section 4.1, stay below
KEPT = 1000  # draws of a chain that are stored


def posterior_fit(
    draws: Floats, *, divergences: int | None = None, level: float = 0.95, notes: Json | None = None
) -> Fit:
    """The posterior mean (p,), equal-tailed intervals of `level` (p, 2), covariance and draws of draws (chains, m, p).

    At most 1,000 draws a chain are kept, evenly thinned, as float32 (chains * 1,000, p), a chain after the other; the
    rest is computed from all of them. The notes have the largest R-hat and the least effective sample sizes over the
    coefficients, and the sampler's `divergences`, if it can diverge.

    Raises `UnconvergedError` where R-hat is 1.1 or more, as it is if a chain never moves, or a draw is not finite.
    """
    check_part("level", level)
    chains, m, p = draws.shape
    if not np.isfinite(draws).all():
        raise UnconvergedError(f"{int((~np.isfinite(draws)).any(axis=2).sum())} of {chains * m} draws are not finite")
    worst, bulk, tail = float(r_hat(draws).max()), float(ess_bulk(draws).min()), float(ess_tail(draws).min())
    if worst >= MOST_R_HAT:
        raise UnconvergedError(
            f"the chains have not converged: R-hat is {worst:.4g} and must be below {MOST_R_HAT}; of {chains * m} "
            f"draws the effective sample size is {bulk:.0f}, in the tails {tail:.0f}"
            + ("" if divergences is None else f"; {divergences} divergences")
        )
    found = {"r_hat": worst, "ess_bulk": bulk, "ess_tail": tail, "divergences": divergences}
    flat = draws.reshape(-1, p)
    tails = [(1 - level) / 2, (1 + level) / 2]
    kept = draws[:, np.linspace(0, m - 1, min(m, KEPT)).round().astype(int)].reshape(-1, p)
    return Fit(
        flat.mean(axis=0),
        intervals=np.quantile(flat, tails, axis=0).T,
        covariance=np.atleast_2d(np.cov(flat, rowvar=False)),
        draws=kept.astype(np.float32),
        notes={**(notes or {}), **found, "chains": chains, "draws": m, "level": level},
    )
