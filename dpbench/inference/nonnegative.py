"""Least squares over consistent, non-negative marginals: GReM-LNN (Mullins et al. 2024)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from .engines import check_effort
from .measurements import Array, Clique
from .residuals import Residuals, centred

TOLERANCE = 0.1  # of a cell's standard deviation: a fraction of the noise, which no more steps take away


@dataclass(frozen=True)
class Nonnegative:
    """Residuals whose marginals are not negative, but for `gap` counts. `steps`: how many were taken to find them."""

    residuals: Residuals
    steps: int
    gap: float


def nonnegative(
    residuals: Residuals, cliques: Sequence[Clique], *, iterations: int = 1000, tolerance: float | None = None
) -> Nonnegative:
    """Lower sum_A ||alpha_A - values_A||^2 / (2 variances_A) over residuals alpha whose marginals are >= 0, and whose
    total is that of `residuals`.

    **Source**: GReM-LNN (Mullins et al. 2024, section 5), the estimate of most likelihood under Gaussian noise with
    local non-negativity: of each of the `cliques`' marginals, not of a table over the whole domain. As there, the dual
    is raised: its variables are a table lambda_C >= 0 for each marginal, and alpha_A is values_A + variances_A times
    the centred sum, over the marginals that hold A, of lambda_C summed onto A and divided by the other cells. The
    steps are those of accelerated projected gradients with restarts (Beck and Teboulle 2009; O'Donoghue and Candes
    2015), of the length 1 / L_C, where the matrix of blocks L_C I is at least that of the dual.

    The number of rows is held at its estimate from all measurements. Left free, as in the paper, it grows with the
    cells that are held at zero: on Adult, all pairs at epsilon = 1, by 1,000 of 39,000, which makes shares too even.

    They end where, in units of each cell's standard deviation, no cell is negative by more than `tolerance` (None:
    0.1), nor held at zero with more than that to lose, or after `iterations`. Residuals that were not measured stay 0.
    """
    check_effort(iterations, tolerance)
    tolerance = TOLERANCE if tolerance is None else tolerance
    values = {**residuals.values, (): np.asarray(residuals.total)}
    residuals = replace(residuals, values=values, variances={**residuals.variances, (): 0.0})
    sets = [set(r) for r in cliques]
    held = [r for r, own in zip(cliques, sets, strict=True) if not any(own < other for other in sets)]
    step = _steps(residuals, held)
    sd = {r: math.sqrt(residuals.variance(r)) or 1.0 for r in held}
    dual = {r: np.zeros(residuals.marginal(r).shape) for r in held}
    ahead, momentum, best, steps = dual, 1.0, residuals, 0
    while steps < iterations:
        steps += 1
        best = _pulled(residuals, ahead)
        slopes = {r: best.marginal(r) for r in held}
        new = {r: np.maximum(ahead[r] - step[r] * slopes[r], 0.0) for r in held}
        if all(np.abs(new[r] - ahead[r]).max() <= tolerance * sd[r] * step[r] for r in held):
            break
        if sum(float(np.vdot(ahead[r] - new[r], new[r] - dual[r])) for r in held) > 0:  # the momentum leads astray
            momentum = 1.0
        following = (1 + math.sqrt(1 + 4 * momentum**2)) / 2
        pace = (momentum - 1) / following
        ahead = {r: np.maximum(new[r] + pace * (new[r] - dual[r]), 0.0) for r in held}
        dual, momentum = new, following
    return Nonnegative(best, steps, max(0.0, *(-float(best.marginal(r).min()) for r in held)))


def _pulled(residuals: Residuals, dual: Mapping[Clique, Array]) -> Residuals:
    """The alpha that minimises the Lagrangian for these multipliers."""
    sums: dict[Clique, Array] = {}
    for clique, table in dual.items():
        for r, part in _means(clique, table).items():
            sums[r] = sums[r] + part if r in sums else part
    pulled = {
        r: value + residuals.variances[r] * centred(sums[r]) if r in sums else value
        for r, value in residuals.values.items()
    }
    return replace(residuals, values=pulled)


def _means(clique: Clique, table: Array) -> dict[Clique, Array]:
    """The table averaged onto each subset of its clique, from the larger ones to the smaller."""
    found = {clique: table}
    for count in range(len(clique) - 1, -1, -1):
        for r in combinations(clique, count):
            gone = next(name for name in clique if name not in r)
            above = tuple(name for name in clique if name in r or name == gone)
            found[r] = found[above].mean(axis=above.index(gone))
    return found


def _steps(residuals: Residuals, cliques: Sequence[Clique]) -> dict[Clique, float]:
    """1 / L_C: by (sum_C a_C)^2 <= (sum_C w_C) (sum_C a_C^2 / w_C), w_C = 1 / sqrt(cells of C besides those of A)."""
    widths = {c: {r: 1 / math.sqrt(other) for r, other in _others(residuals, c)} for c in cliques}
    sums: dict[Clique, float] = {}
    for own in widths.values():
        for r, width in own.items():
            sums[r] = sums.get(r, 0.0) + width
    lengths = {c: sum(residuals.variances[r] * w * sums[r] for r, w in own.items()) for c, own in widths.items()}
    return {c: 1 / length if length else 0.0 for c, length in lengths.items()}


def _others(residuals: Residuals, clique: Clique) -> list[tuple[Clique, int]]:
    """The measured subsets of a clique, and the cells of its other attributes."""
    subsets = (r for count in range(len(clique) + 1) for r in combinations(clique, count))
    size = residuals.sizes
    return [(r, math.prod(size[name] for name in clique if name not in r)) for r in subsets if r in residuals.values]
