"""What noise and selections cost together between the worst neighbours that are found, by importance sampling.

The two neighbours are run side by side with the same answers (`lockstep`), which are drawn where both differ most
(`tilting`). So eps at a small delta is bounded from a hundred runs, also where what is asked depends on the answers
before: then no exact bound is known (`exact_audit`). The noise is taken to be what the ledger says.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

import numpy as np

from dpbench.audit.exact_audit import CHANGED, SMALL, Pair, pairs_of
from dpbench.audit.lockstep import lockstep
from dpbench.audit.lower_bound import tilted_bound
from dpbench.audit.neighbours import changed_rows
from dpbench.audit.tilting import Tilted
from dpbench.data.table import Table
from dpbench.errors import NoEstimateError, UserError
from dpbench.privacy.accounting import Spent, gaussian_mu, spent
from dpbench.privacy.tape import ReplayError
from dpbench.releases import Release

Make = Callable[[Table, int], Release]  # the mechanism, of a table and a seed
TRIES = 60  # of the search
MORE = 1e-6  # relative, by which a better pair exceeds the best one so far
PARTS = (1.0, 1.5, 0.5, 0.25)  # of the first tilt, that are tried
PILOT, LEAST_PILOT = 8, 12  # the part of the runs that is made before at each of them, and how many at least
PILOT_CONFIDENCE = 0.5
FIRST = 10**6  # the seed of the first run that counts: those of the search are smaller


@dataclass(frozen=True)
class Importance:
    """The lower bound `epsilon` between the neighbours of `pair`, with what the ledger says of it there.

    `parts`: by kind of noise, what it cost in the first run of what it would at full sensitivity, by cumulants.
    """

    spent: Spent
    epsilon: float
    pair: Pair
    parts: Mapping[str, float]


@dataclass(frozen=True)
class _Sided:
    """A pair of neighbours, and whether P is `one` of it or `zero`."""

    pair: Pair
    one: bool

    def run(self, tilt: float, seed: int) -> Tilted:
        """One run on both, which ends where there is no estimate.

        Raises `ValueError` for noise of which no tilted distribution is known.
        """
        tilted = Tilted(tilt, np.random.default_rng(seed))
        sides = (self.pair.one, self.pair.zero) if self.one else (self.pair.zero, self.pair.one)
        p, q = (partial(self.pair.make, table, seed) for table in sides)
        with suppress(NoEstimateError):
            lockstep(p, q, tilted.answer_of)
        return tilted


def tilted_audit(
    settings: Mapping[str, tuple[Make, Table]],
    epsilon: float,
    delta: float,
    *,
    relation: str,
    runs: int,
    confidence: float,
) -> Importance | None:
    """A lower bound on eps at `delta` from so many runs; None for noise of which no tilted distribution is known.

    The neighbours are those with the largest cumulant (the smaller of two runs), of all that `exact_audit` looks at,
    and of random changes of the best small ones. The tilt is that at which Gaussian noise would have a mean loss of
    `epsilon`, what was asked for, or the part of it at which a few runs show most. The runs that count choose nothing.
    """
    tilt = _tilt(epsilon, delta)
    try:
        best = _worst(settings, tilt, relation)
    except ValueError:
        return None
    if best is None:
        return None
    pilot, shown = range(max(runs // PILOT, LEAST_PILOT)), 0.0
    for tried in [part * tilt for part in PARTS]:
        with suppress(ValueError):  # a cumulant may be infinite at a large tilt
            bound = _bound([best.run(tried, seed) for seed in pilot], delta, PILOT_CONFIDENCE)
            if bound > shown:
                shown, tilt = bound, tried
    made = [best.run(tilt, seed) for seed in range(FIRST, FIRST + runs)]
    parts = {kind: made[0].cumulants[kind] / most for kind, most in made[0].most.items() if most}
    cost = spent(best.pair.make(best.pair.one, 0).ledger, delta)
    return Importance(cost, _bound(made, delta, confidence), best.pair, parts)


def _bound(runs: Sequence[Tilted], delta: float, confidence: float) -> float:
    losses, cumulants = np.array([run.loss for run in runs]), np.array([run.cumulant for run in runs])
    return tilted_bound(losses, cumulants, runs[0].tilt, delta, confidence)


def _tilt(epsilon: float, delta: float) -> float:
    return max(epsilon / gaussian_mu(epsilon, delta) ** 2 - 0.5, 0.0)


def _worst(settings: Mapping[str, tuple[Make, Table]], tilt: float, relation: str) -> _Sided | None:
    most, best = 0.0, None
    for pair in pairs_of(settings, relation):
        cost, sided = _cost(pair, tilt, most)
        most, best = (cost, sided) if cost > most * (1 + MORE) else (most, best)
    if best is None or len(best.pair.one) > SMALL:
        return best
    rng = np.random.default_rng(0)
    for _ in range(TRIES):
        zero, one = changed_rows(rng, best.pair.zero, best.pair.one)
        changed = Pair(f"{best.pair.what.removesuffix(CHANGED)}{CHANGED}", best.pair.make, zero, one)
        cost, sided = _cost(changed, tilt, most)
        most, best = (cost, sided) if cost > most * (1 + MORE) else (most, best)
    return best


def _cost(pair: Pair, tilt: float, least: float) -> tuple[float, _Sided]:
    """The larger of the two cumulants on one run, and whose it is; if that is more than `least` the smaller on two.

    Minus infinity where the mechanism refuses the tables.
    """
    try:
        first = _Sided(pair, one=True).run(tilt, 0)
        sided = _Sided(pair, first.cumulant >= first.back)
        cost = max(first.cumulant, first.back)
        return min(cost, sided.run(tilt, 1).cumulant) if cost > least else cost, sided
    except (UserError, ReplayError):
        return -math.inf, _Sided(pair, one=True)
