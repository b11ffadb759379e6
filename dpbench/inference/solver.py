"""Private-PGM's least-squares fit, solved through its entropic dual by a preconditioned quasi-Newton method."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .measurements import Array

Moves = list[tuple[Array, Array]]  # steps of the potentials, and the changes of the marginals that they made

MEMORY = 20
MOST_UNEVEN = 5.0  # the gap of one table per cell, over the gap allowed, where a solution begins with known moves
ARMIJO = 1e-4
MOST_NATS = 20.0  # by which a residual of one sigma may change the logarithm of a cell in one proximal step
ROUNDING = 1e-13  # of a dual value's own size: differences below it say nothing


@dataclass(frozen=True)
class Problem:
    """minimise sum w/2 (m - y)^2 over marginals m of Markov random fields of this total.

    **Shapes**: `y`, `w` and potentials are flat over the cells of the factors; `calibrate(theta, total)` gives
    log Z(theta) and a buffer with the marginals. The table of a factor begins at each of `starts` (factors,).
    `curvature(mu)` is the diagonal of the Hessian of total log Z at the marginals mu, or a bound: for tables mu itself.
    """

    calibrate: Callable[[Array, float], tuple[float, Array]]
    y: Array
    w: Array
    total: float
    starts: npt.NDArray[np.intp]
    curvature: Callable[[Array], Array] = lambda mu: mu

    def gap(self, slope: Array, even: bool) -> float:
        """The duality gap, sum w/2 slope^2. `even`: or what the worst table makes of it, by `MOST_UNEVEN`."""
        gaps = 0.5 * self.w * slope**2
        whole = float(np.add.reduce(gaps))
        if not even:
            return whole
        cells = np.diff(self.starts, append=slope.size)
        worst = float((np.add.reduceat(gaps, self.starts) / cells).max())
        return max(whole, worst * slope.size / MOST_UNEVEN)


@dataclass
class Point:
    """Potentials with what one calibration tells of them."""

    theta: Array
    log_z: float
    mu: Array
    value: float
    slope: Array


@dataclass(frozen=True)
class Solution:
    """Potentials, the marginals they give, and the pull (strength * step) that the last proximal step ended with.

    `moves`: the latest steps, each with the change of the marginals.
    """

    theta: Array
    mu: Array
    pull: Array
    moves: Moves
    iterations: int


class _History:
    """Limited-memory inverse Hessian (Nocedal and Wright 2006, algorithm 7.4) on a diagonal that may change."""

    def __init__(self) -> None:
        self.pairs: list[tuple[Array, Array, float]] = []

    def add(self, step: Array, change: Array) -> None:
        curvature = float(step @ change)
        if curvature > 1e-14 * float(np.sqrt((step @ step) * (change @ change))):
            self.pairs.append((step, change, 1.0 / curvature))
            del self.pairs[:-MEMORY]

    def direction(self, slope: Array, diagonal: Array) -> Array:
        q = slope.copy()
        kept = []
        for step, change, rho in reversed(self.pairs):
            a = rho * float(step @ q)
            q -= a * change
            kept.append(a)
        q *= diagonal
        if self.pairs:
            step, change, rho = self.pairs[-1]
            q *= 1.0 / (rho * float(change @ (diagonal * change)))
        for (step, change, rho), a in zip(self.pairs, reversed(kept), strict=True):
            q += (a - rho * float(change @ q)) * step
        return -q


def _at(problem: Problem, theta: Array, centre: Array, strength: float) -> Point:
    log_z, mu = problem.calibrate(theta, problem.total)
    if not np.isfinite(log_z):
        return Point(theta, log_z, mu, np.inf, mu)
    pull = (theta - centre) * (strength / problem.w)
    value = problem.total * log_z - float(theta @ problem.y) + 0.5 * float((theta - centre) @ pull)
    return Point(theta, log_z, mu.copy(), value, mu - problem.y + pull)


def _search(problem: Problem, at: Point, step: Array, centre: Array, strength: float, left: int) -> tuple[Point, int]:
    """Backtracking with quadratic interpolation; the dual is convex, so its slope tells when values are too near."""
    rate, descent = 1.0, float(at.slope @ step)
    slack = ROUNDING * (abs(at.value) + problem.total * abs(at.log_z) + float(np.abs(at.theta) @ np.abs(problem.y)))
    for used in range(1, max(left, 1) + 1):
        new = _at(problem, at.theta + rate * step, centre, strength)
        if np.isfinite(new.value) and new.value <= at.value + ARMIJO * rate * descent + slack:
            return new, used
        bend = new.value - at.value - rate * descent
        best = -0.5 * descent * rate * rate / bend if np.isfinite(bend) and bend > 0 else 0.1 * rate
        rate = min(max(best, 0.1 * rate), 0.5 * rate)
    return at, used


def _inner(
    problem: Problem, start: Point, centre: Array, strength: float, gap: float, left: int, known: Moves
) -> tuple[Point, int, Moves]:
    """Minimise the dual until its duality gap is at most `gap`; its moves are added to the known.

    Steps by known moves are long, and may leave a small table far off where large ones allow a large gap: then no
    table's gap a cell may be more than `MOST_UNEVEN` times what is allowed.
    """
    at, used, moves, history = start, 0, list(known), _History()
    floor = strength / problem.w
    for step, change in moves:
        history.add(step, change + floor * step)
    while used < left and problem.gap(at.slope, even=bool(known)) > gap:
        step = history.direction(at.slope, 1.0 / (problem.curvature(at.mu) + floor))
        if not at.slope @ step < 0:
            history.pairs.clear()
            step = -at.slope / (problem.curvature(at.mu) + floor)
        new, spent = _search(problem, at, step, centre, strength, left - used)
        used += spent
        if new is at:
            break
        moves.append((new.theta - at.theta, new.mu - at.mu))
        history.add(new.theta - at.theta, new.slope - at.slope)
        at = new
    return at, used, moves[-MEMORY:]


def solve(
    problem: Problem, theta: Array, pull: Array, known: Moves, iterations: int, tolerance: float, guess: float
) -> Solution:
    """Proximal-point iteration: each step adds strength * total * KL(p || p_previous) to the loss.

    **Source**: with p = exp(theta) as the minimiser of loss + strength * total * KL(p || p0), the dual in theta is
    total * log Z(theta) - <theta, y> + strength/2 * sum (theta - theta0)^2 / w: smooth, convex, with the plain
    marginals for a gradient; and the duality gap at theta is exactly sum w/2 gradient^2. Proximal minimisation:
    Rockafellar 1976; quasi-Newton steps scaled by the diagonal of the Hessian, mu + strength / w.

    The loss then exceeds its minimum by at most gap + strength * total * KL(p* || p0). Both are driven below
    `tolerance` times the number of cells. `guess` is a first guess of total * KL(p* || p0); `pull` of the
    residuals w (y - mu) at the minimum, by which the dual is started (zero where nothing is known). `known`: moves
    of an earlier solution, which tell of the curvature: it hardly depends on y.
    """
    allowed = tolerance * problem.y.size
    strength = max(allowed / max(guess, 1e-9), float(np.median(np.sqrt(problem.w))) / MOST_NATS)
    used = 0
    while True:
        centre = _at(problem, theta, theta, strength)
        ahead = _at(problem, theta + pull / strength, theta, strength)
        start = ahead if ahead.value < centre.value else centre
        new, spent, moves = _inner(problem, start, theta, strength, allowed, iterations - used - 1, known)
        used += spent + 1
        moved = float((new.theta - theta) @ new.mu) - problem.total * (new.log_z - centre.log_z)
        pull = strength * (new.theta - theta)
        theta = new.theta
        if strength * moved <= 2 * allowed or used >= iterations - 1:
            return Solution(theta, new.mu, pull, moves, used)
