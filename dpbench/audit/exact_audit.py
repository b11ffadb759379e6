"""What additive noise and projections cost between the worst neighbours that are found, without any sampling.

A step adds noise of a known distribution to a value. Its privacy loss between two neighbours depends on how far the
value moves, in units of the noise, and that is read off a tape. Gaussian noise whose squared moves add up to the same
mu^2 on every path, whatever is answered and selected on the way, has as a whole a loss that is N(mu^2 / 2, mu^2): with
d_t the move of step t, which may depend on the answers before, and Z_t its noise, exp(i u sum d_t Z_t + u^2 / 2 sum
d_t^2) is a martingale of mean 1. For other noise the moves must be the same one by one. A test that looks at this loss
alone is one of the tests that an attacker has, so that its eps at a delta is a lower bound on the mechanism's. The
noise is taken to be what the ledger says; that the paths agree is seen on some of them.

Of a projection of rows, N(0, M) and N(0, M'), an attacker looks along the direction in which M' is largest in units of
M: 1 + t against 1, the pair of `projection_delta`, with the Gaussian noise around it. Where M rests on a noisy value
the paths agree but for its `Projection.delta`, which is added to the delta at which eps is read.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigvalsh

from dpbench.audit.neighbours import changed_rows, corners, joined, neighbours
from dpbench.data.domain import Floats
from dpbench.data.table import Table
from dpbench.errors import NoEstimateError, UserError
from dpbench.privacy import events as kinds
from dpbench.privacy.accounting import Spent, gaussian_epsilon, spent
from dpbench.privacy.ledger import Ledger
from dpbench.privacy.pld import composed_epsilon, tractable
from dpbench.privacy.projections import Projection, projection_epsilon
from dpbench.privacy.recording import Tape, record, replay
from dpbench.releases import Release

Make = Callable[[Table, int], Release]  # the mechanism, of a table and a seed
ADDITIVE = (kinds.Gaussian, kinds.Laplace)
Noise = kinds.Gaussian | kinds.Laplace | Projection
Moves = Counter[Noise]  # noise on a value that moves by 1, at the multiplier of each move
PATHS = 6  # on which the moves must agree, half of them on either neighbour
TRIES = 100  # of the search
SMALL = 12  # rows of a table that is searched further
CHANGED = ", some records changed"
TOO_LARGE = 1e-3  # relative, what the grid of a privacy loss distribution may add (`pld`)
AGREE = 1e-6  # relative, of the mu^2 of two paths
DIGITS = 9  # to which moves are compared


@dataclass(frozen=True)
class Pair:
    """Two neighbours: `one` has a last record that `zero` has not, or has another one in its place; `what`: how."""

    what: str
    make: Make
    zero: Table
    one: Table


@dataclass(frozen=True)
class Exact:
    """The eps of the additive noise between a `pair`, with what the ledger says of it there.

    `mu`: where the noise is all Gaussian, on all rows. `short`: the labels whose values moved by less than their
    sensitivity, with the largest part of it that they moved.
    """

    spent: Spent
    epsilon: float
    mu: float | None
    pair: Pair
    short: Mapping[str, float]


def exact_audit(settings: Mapping[str, tuple[Make, Table]], delta: float, *, relation: str) -> Exact | None:
    """The eps at `delta` between the neighbours whose values move most; None where the paths do not agree.

    They are taken from all neighbours of the tables, each with the mechanism as it is run on it, and from what a search
    makes of the best small ones: it puts a random corner of the domain in the place of a record, and keeps what moves
    more. With noise that is not Gaussian, or on samples of the rows, eps is that of the privacy loss distribution.
    """
    moved, shifted = 0.0, -math.inf
    best: Pair | None = None
    small: Pair | None = None
    for pair in pairs_of(settings, relation):
        few = len(pair.one) <= SMALL
        cost = _cost(pair, shifted if few else moved)
        if few and cost > shifted:
            shifted, small = cost, pair
        if cost > moved * (1 + 10.0**-DIGITS):
            moved, best = cost, pair
    if best is None:
        return None
    if small is not None and _tapes(best, 0).moves()[1]:
        shifted, small = _searched(shifted, small)
        best = small if shifted > moved else best
    paths = sorted((_tapes(best, seed) for seed in range(1, PATHS + 1)), key=lambda path: _whole(path.moves()[0]))
    least, most = (_whole(path.moves()[0]) for path in (paths[0], paths[-1]))
    if most > least * (1 + AGREE) or len({_others(path.moves()[0]) for path in paths}) > 1:
        return None
    return _exact(paths[0], best, delta)


def _searched(moved: float, pair: Pair) -> tuple[float, Pair]:
    """A pair that moves more, if the search finds one."""
    rng = np.random.default_rng(0)
    for _ in range(TRIES):
        zero, one = changed_rows(rng, pair.zero, pair.one)
        other = Pair(f"{pair.what.removesuffix(CHANGED)}{CHANGED}", pair.make, zero, one)
        if (cost := _cost(other, moved)) > moved * (1 + 10.0**-DIGITS):
            moved, pair = cost, other
    return moved, pair


def _exact(path: Path, pair: Pair, delta: float) -> Exact | None:
    """None where no privacy loss distribution can be had."""
    moves, short = path.moves()
    cost = spent(path.ledger, delta)
    if all(isinstance(event, kinds.Gaussian) and event.rate == 1 for event in moves):
        mu = math.sqrt(_squares(moves))
        return Exact(cost, gaussian_epsilon(mu, delta), mu, pair, short)
    projections = [event for event in moves if isinstance(event, Projection)]
    if projections:
        most, mu = max(projections, key=_square), math.sqrt(_whole(moves))
        failure = math.fsum(e.delta for e in path.ledger.events if isinstance(e, Projection))
        epsilon = projection_epsilon(most.multiplier, most.projections, delta + failure, mu)
        return Exact(cost, epsilon, None, pair, short)
    events = [
        type(e)(e.label, 1.0, e.multiplier, n, *([e.rate] if e.rate < 1 else []))
        for e, n in moves.items()
        if not isinstance(e, Projection)
    ]
    if not tractable(events, cost.epsilon):
        return None
    return Exact(cost, composed_epsilon(events, delta) * (1 - TOO_LARGE), None, pair, short)


def _whole(moves: Moves) -> float:
    """The mu^2 of Gaussian noise on all rows."""
    return _squares(Counter({e: n for e, n in moves.items() if isinstance(e, kinds.Gaussian) and e.rate == 1}))


def _others(moves: Moves) -> tuple[str, ...]:
    return tuple(sorted(f"{n} {e}" for e, n in moves.items() if not isinstance(e, kinds.Gaussian) or e.rate < 1))


def _squares(moves: Moves) -> float:
    return math.fsum(n * _square(event) for event, n in moves.items())


def _square(event: Noise) -> float:
    """1 / multiplier^2, the mu^2 of Gaussian noise; of many projections the mu^2 to which they tend."""
    if isinstance(event, Projection):
        return event.projections / (2 * event.multiplier**4)
    return 1 / event.multiplier**2


def pairs_of(settings: Mapping[str, tuple[Make, Table]], relation: str) -> Iterator[Pair]:
    """All neighbours of the tables, each with the mechanism as it is run on it."""
    for name, (make, table) in settings.items():
        starts = [table]
        if relation == "replace":  # two records at the bounds differ more than one of them and any other
            starts.append(joined(table.take(np.arange(len(table) - 1)), next(corners(table))))
        for start in starts:
            for what, other in neighbours(start, relation):
                zero, one = (other, start) if len(other) < len(start) else (start, other)
                yield Pair(f"{what} ({name})", make, zero, one)


def _cost(pair: Pair, least: float) -> float:
    """The sum of the squared moves, as a part of what the ledger allows, on one path, and if that is more than `least`
    on two, the smaller; minus infinity where the mechanism refuses the tables.
    """
    cost = math.inf
    for seed in (0, 1):
        if cost <= least:
            break
        try:
            path = _tapes(pair, seed)
        except (UserError, NoEstimateError):
            return -math.inf
        allowed = math.fsum(e.count * _square(e) for e in path.ledger.events if isinstance(e, Noise))
        cost = min(cost, _squares(path.moves()[0]) / allowed if allowed else -math.inf)
    return cost


@dataclass(frozen=True)
class Path:
    """What is asked of both neighbours, with the same answers."""

    ledger: Ledger
    zero: Tape
    one: Tape

    def moves(self) -> tuple[Moves, dict[str, float]]:
        """How far the values with additive noise move, and the labels of those that do by less than their sensitivity.

        Of Laplace noise each entry moves alone.
        """
        moves: Moves = Counter()
        parts: dict[str, float] = {}
        for a, b in zip(self.zero, self.one, strict=True):
            if isinstance(a.event, Projection):
                if far := _farthest(a.asked, b.asked):
                    multiplier = float(f"{1 / far:.{DIGITS}g}")
                    moves[Projection("", 1.0, multiplier, a.event.projections)] += 1
                    parts[a.event.label] = max(far * a.event.multiplier, parts.get(a.event.label, 0.0))
                continue
            if not isinstance(a.event, ADDITIVE):
                continue
            each = np.ravel(b.asked - a.asked) / a.event.sensitivity
            gaussian = isinstance(a.event, kinds.Gaussian)
            far = float(np.linalg.norm(each, 2 if gaussian else 1)) if each.size else 0.0
            parts[a.event.label] = max(far, parts.get(a.event.label, 0.0))
            sd = a.event.sd / a.event.sensitivity if isinstance(a.event, kinds.Gaussian) else a.event.multiplier
            for move in [far] if gaussian else np.abs(each).tolist():
                if rounded := float(f"{move / sd:.{DIGITS}g}"):
                    kind = (
                        kinds.Gaussian("", 1.0, 1 / rounded, 1, a.event.rate)
                        if gaussian
                        else kinds.Laplace("", 1.0, 1 / rounded)
                    )
                    moves[kind] += 1
        return moves, {label: part for label, part in parts.items() if part < 1 - 10.0**-DIGITS}


def _farthest(zero: Floats, one: Floats) -> float:
    """The root of t, 1 + t being the largest eigenvalue of the Gram matrix `one` in units of `zero`; 0 if it is less
    than 1.
    """
    t = float(eigvalsh(one, zero)[-1]) - 1
    return math.sqrt(max(t, 0.0))


def _tapes(pair: Pair, seed: int) -> Path:
    """A path of `zero`, or for odd seeds of `one`. Samples of the rows have the record always, or on `zero` never."""
    with record() as first:
        release = pair.make(pair.one if seed % 2 else pair.zero, seed)
    if seed % 2:
        with replay(first) as first:
            pair.make(pair.zero, seed)
    with replay(first) as second:
        pair.make(pair.one, seed)
    return Path(release.ledger, first, second)
