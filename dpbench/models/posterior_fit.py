"""A `Fit` from the draws of a posterior, with convergence diagnostics.

These are R-hat and effective sample sizes (Vehtari et al. 2021, as in ArviZ). Draws are (chains, m, d): m draws of d
quantities from each chain.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtri

from dpbench.data.domain import Floats
from dpbench.errors import UnconvergedError, check_part
from dpbench.files import Json
from dpbench.models.fit import Fit

TAIL = (0.05, 0.95)  # quantiles; the smaller of their effective sample sizes is that of the tails


def r_hat(draws: Floats) -> Floats:
    """The rank-normalised split R-hat (d,): the larger of that of the draws and of their distance from the median.

    Vehtari et al. 2021, section 4 and equation (14). It is infinite where no chain moves.
    """
    halves = _split(draws)
    folded = np.abs(halves - np.median(halves, axis=(0, 1)))
    found: Floats = np.maximum(_r_hat(_normalised(halves)), _r_hat(_normalised(folded)))
    return found


def ess_bulk(draws: Floats) -> Floats:
    """The effective sample size (d,) of the rank-normalised draws (section 4.3); 0 where no chain moves."""
    return _each(_normalised(_split(draws)))


def ess_tail(draws: Floats) -> Floats:
    """The smaller of the effective sample sizes (d,) of the 5% and the 95% quantile (section 4.3)."""
    halves = _split(draws)
    quantiles = np.quantile(halves, TAIL, axis=(0, 1))
    low, high = (_each((halves <= one).astype(float)) for one in quantiles)
    return np.minimum(low, high)


def _split(draws: Floats) -> Floats:
    """Each chain as two (2 chains, m // 2, d), without its middle draw if m is odd."""
    half = draws.shape[1] // 2
    return np.concatenate([draws[:, :half], draws[:, -half:]]).astype(float)


def _normalised(draws: Floats) -> Floats:
    """The normal scores of the ranks among all draws (equation 14); tied draws have their mean rank."""
    from scipy.stats import rankdata  # takes half a second to import, and every worker reads this module

    flat = draws.reshape(-1, draws.shape[-1])
    scores: Floats = ndtri((rankdata(flat, axis=0) - 3 / 8) / (len(flat) + 1 / 4))
    return scores.reshape(draws.shape)


def _r_hat(draws: Floats) -> Floats:
    """sqrt(var+ / W) (equations 1 to 4)."""
    n = draws.shape[1]
    within, between = draws.var(axis=1, ddof=1).mean(axis=0), draws.mean(axis=1).var(axis=0, ddof=1)
    moved = (draws != draws[:, :1]).any(axis=(0, 1))
    ratio = np.divide(between, within, out=np.full(len(within), np.inf), where=moved)
    found: Floats = np.sqrt((n - 1) / n + ratio)
    return found


def _each(draws: Floats) -> Floats:
    return np.array([_ess(draws[..., j]) for j in range(draws.shape[-1])])


def _ess(draws: Floats) -> float:
    """The effective sample size of one quantity's draws (c, m), by Geyer's initial monotone sequence (section 3.2)."""
    chains, n = draws.shape
    if (draws == draws[:, :1]).all():
        return 0.0
    centred = draws - draws.mean(axis=1, keepdims=True)
    power = np.abs(np.fft.rfft(centred, 2 * n, axis=1)) ** 2
    covariance = np.fft.irfft(power, axis=1)[:, :n].mean(axis=0) / n  # of lag 0, 1, ..., the mean over the chains
    within = covariance[0] * n / (n - 1)
    total = covariance[0] + (draws.mean(axis=1).var(ddof=1) if chains > 1 else 0.0)
    rho = 1 - (within - covariance) / total
    rho[0] = 1.0
    even, odd = rho[:-1:2], rho[1::2]
    pairs = even + odd[: len(even)]
    last = max((n + 1) // 2 - 2, 0)
    kept = int(np.append(pairs[:last] < 0, True).argmax())  # up to the first negative pair
    left = max(float(even[kept]), 0.0)
    tau = -1 + 2 * float(np.minimum.accumulate(pairs[:kept]).sum()) + left
    return float(chains * n / max(tau, 1 / math.log10(chains * n)))


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
