"""What noise and selections cost together between the worst neighbours that are found, by importance sampling.

The two neighbours are run side by side with the same answers (`lockstep`), which are drawn where both differ most
(`Tilted`). So eps at a small delta is bounded from a hundred runs, also where what is asked depends on the answers
before: then no exact bound is known (`exact_audit`). The noise is taken to be what the ledger says.

An answer may be drawn from any distribution that depends on both queries, such as the one that best distinguishes the
tables. Each run has its own thread, and waits for the other at each answer.

P and Q are the distributions of a step's answers on two tables. At the tilt t its answers are drawn from R, whose
density is in proportion to p (p / q)^t. With the privacy loss L = log(p / q) and the cumulant K = log E_P exp(t L),
dP/dR is exp(K - t L). Losses and cumulants of the steps of a run add up: events that are rare under P are common under
R, and their probability under P is the mean of the weights dP/dR (for delta as in Wang, Mahloujifar, Wu, Jia
and Mittal 2023, "A Randomized Approach to Tight Privacy Accounting", arXiv 2304.07927).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from contextvars import copy_context
from dataclasses import dataclass, field
from functools import partial
from queue import SimpleQueue
from threading import Thread
from typing import Any, NamedTuple

import numpy as np

from dpbench.audit.exact_audit import CHANGED, SMALL, Pair, pairs_of
from dpbench.audit.lower_bound import tilted_bound
from dpbench.audit.neighbours import changed_rows
from dpbench.data.domain import Floats
from dpbench.data.table import Table
from dpbench.errors import NoEstimateError, UserError
from dpbench.privacy import events as kinds
from dpbench.privacy.accounting import Spent, gaussian_mu, spent
from dpbench.privacy.events import Event
from dpbench.privacy.projections import Projection, TwoSidedProjection, projection_rdp, two_sided_rdp
from dpbench.privacy.recording import Entry, ReplayError, answered_by
from dpbench.releases import Release

Run = Callable[[], object]
Make = Callable[[Table, int], Release]  # the mechanism, of a table and a seed
TRIES = 60  # of the search
MORE = 1e-6  # relative, by which a better pair exceeds the best one so far
PARTS = (1.0, 1.5, 0.5, 0.25)  # of the first tilt, that are tried
PILOT, LEAST_PILOT = 8, 12  # the part of the runs that is made before at each of them, and how many at least
PILOT_CONFIDENCE = 0.5
FIRST = 10**6  # the seed of the first run that counts: those of the search are smaller


class Drawn(NamedTuple):
    """The answer of a step, its privacy loss log(p / q) and the cumulant at the tilt, of P against Q.

    `back`: the cumulant of Q against P.
    """

    answer: Any
    loss: float
    cumulant: float
    back: float


@dataclass
class Tilted:
    """Draws answers from R at this `tilt`, and adds up their losses and cumulants.

    `cumulants`: by kind of noise, of P against Q; `most`: the same for values that move as far as their sensitivity.
    """

    tilt: float
    rng: np.random.Generator
    loss: float = 0.0
    back: float = 0.0
    cumulants: dict[str, float] = field(default_factory=dict)
    most: dict[str, float] = field(default_factory=dict)

    @property
    def cumulant(self) -> float:
        """Of all steps, of P against Q."""
        return math.fsum(self.cumulants.values())

    def answer_of(self, p: Entry, q: Entry) -> Any:
        """An answer to the queries under P and under Q. Raises `ValueError` for noise of an unsupported kind."""
        drawn, kind = self._drawn(p, q), p.event.kind if p.event else ""
        self.loss += drawn.loss
        self.back += drawn.back
        self.cumulants[kind] = self.cumulants.get(kind, 0.0) + drawn.cumulant
        self.most[kind] = self.most.get(kind, 0.0) + self._most(p.event)
        return drawn.answer

    def _most(self, event: Event | None) -> float:
        """The cumulant at full sensitivity; of selections that of a choice of two whose scores move apart."""
        match event:
            case kinds.Gaussian():
                return self.tilt * (self.tilt + 1) / (2 * event.multiplier**2)
            case Projection():
                rdp = two_sided_rdp if isinstance(event, TwoSidedProjection) else projection_rdp
                return self.tilt * rdp(1 + self.tilt, event.multiplier, event.projections)
            case kinds.Laplace():
                return float(np.logaddexp.reduce(_pieces(np.array(1 / event.multiplier), self.tilt)) - math.log(2))
            case kinds.ExponentialMechanism():
                logits = np.array([event.epsilon / 4, -event.epsilon / 4])
                return event.count * _cumulant(logits, -logits, self.tilt)
        return 0.0

    def _drawn(self, p: Entry, q: Entry) -> Drawn:
        event = p.event
        if type(event) is kinds.Gaussian and event.rate == 1:
            return self._gaussian(p.asked, q.asked, event.sd)
        if type(event) is kinds.Laplace:
            return self._laplace(p.asked, q.asked, event.multiplier * event.sensitivity)
        if isinstance(event, Projection):
            return self._rows(p.asked, q.asked, event.projections)
        if type(event) is kinds.ExponentialMechanism:
            scale = event.epsilon / (2 * event.sensitivity)
            answer, *sums = self._indices(scale * p.asked, scale * q.asked, event.count, bool(p.replacement))
            return Drawn(int(answer[0]) if p.replacement is None else answer, *sums)
        raise ValueError(f"no tilted distribution is known for {event.kind if event else 'values without noise'}")

    def _gaussian(self, a: Floats, b: Floats, sd: float) -> Drawn:
        move = a - b
        answer = a + self.tilt * move + self.rng.normal(0.0, sd, size=move.shape)
        loss = np.sum(move * (answer - (a + b) / 2)) / sd**2
        cumulant = float(self.tilt * (self.tilt + 1) * np.sum(move**2) / (2 * sd**2))
        return Drawn(answer, float(loss), cumulant, cumulant)

    def _rows(self, a: Floats, b: Floats, count: int) -> Drawn:
        """Rows of N(0, a) against N(0, b), for which R is normal too, with the precision (1 + t) a^-1 - t b^-1."""
        precision = (1 + self.tilt) * np.linalg.inv(a) - self.tilt * np.linalg.inv(b)
        rows = self.rng.normal(size=(count, len(a))) @ np.linalg.inv(_cholesky(precision))
        change = np.linalg.inv(a) - np.linalg.inv(b)
        determinants = np.linalg.slogdet(b)[1] - np.linalg.slogdet(a)[1]
        loss = (count * determinants - np.sum((rows @ change) * rows)) / 2
        return Drawn(rows, float(loss), self._of_rows(a, b, count), self._of_rows(b, a, count))

    def _of_rows(self, a: Floats, b: Floats, count: int) -> float:
        """The cumulant of so many rows of N(0, a) against N(0, b)."""
        precision = (1 + self.tilt) * np.linalg.inv(a) - self.tilt * np.linalg.inv(b)
        logs = (1 + self.tilt) * np.linalg.slogdet(a)[1] - self.tilt * np.linalg.slogdet(b)[1]
        return -count / 2 * float(logs + 2 * np.log(np.diag(_cholesky(precision))).sum())

    def _laplace(self, a: Floats, b: Floats, scale: float) -> Drawn:
        """Each entry: beyond a, between a and b, or beyond b, where R is a piece of an exponential distribution."""
        far, steep = np.abs(a - b) / scale, 1 + 2 * self.tilt
        logs = _pieces(far, self.tilt)
        total = np.logaddexp.reduce(logs, axis=0)
        piece = (self.rng.random(far.shape) > np.cumsum(np.exp(logs - total), axis=0)[:2]).sum(axis=0)
        beyond = self.rng.exponential(size=far.shape)
        between = -np.log1p(self.rng.random(far.shape) * np.expm1(-steep * far)) / steep
        place = np.select([piece == 0, piece == 1], [-beyond, between], far + beyond)  # from a, towards b
        answer = a + np.where(b < a, -1, 1) * place * scale
        loss = float(np.sum(np.abs(place - far) - np.abs(place)))
        cumulant = float(np.sum(total - math.log(2)))
        return Drawn(answer, loss, cumulant, cumulant)

    def _indices(self, a: Floats, b: Floats, count: int, replacement: bool) -> tuple[Any, float, float, float]:
        """Indices drawn one after another with these logits, from all of them or without replacement."""
        answers, loss, cumulant, back = [], 0.0, 0.0, 0.0
        left = np.arange(len(a))
        for _ in range(count):
            p, q = a[left] - np.logaddexp.reduce(a[left]), b[left] - np.logaddexp.reduce(b[left])
            pick = int(np.argmax(p + self.tilt * (p - q) + self.rng.gumbel(size=p.shape)))
            answers.append(int(left[pick]))
            loss += float(p[pick] - q[pick])
            cumulant += _cumulant(a[left], b[left], self.tilt)
            back += _cumulant(b[left], a[left], self.tilt)
            left = left if replacement else np.delete(left, pick)
        return np.array(answers), loss, cumulant, back


def _cholesky(precision: Floats) -> Floats:
    """Raises `ValueError` where it is not positive definite: the cumulant is infinite."""
    try:
        return np.asarray(np.linalg.cholesky(precision), dtype=float)
    except np.linalg.LinAlgError as error:
        raise ValueError("the cumulant of the projections is infinite at this tilt") from error


def _cumulant(a: Floats, b: Floats, tilt: float) -> float:
    """Of an index drawn with the logits a, against b."""
    p, q = a - np.logaddexp.reduce(a), b - np.logaddexp.reduce(b)
    return float(np.logaddexp.reduce(p + tilt * (p - q)))


def _pieces(far: Floats, tilt: float) -> Floats:
    """log of twice the mass beyond a, between a and b, and beyond b, of Laplace noise at a, tilted against b: (3, ...).

    `far`: how far a and b are apart, in units of the scale.
    """
    steep = 1 + 2 * tilt
    with np.errstate(divide="ignore"):  # nothing lies between equal values
        between = np.log(-np.expm1(-steep * far) / steep)
    return np.stack([tilt * far, tilt * far + between, -(tilt + 1) * far])


class _Stopped(Exception):
    """The other run has failed."""


def lockstep(one: Run, two: Run, answer_of: Callable[[Entry, Entry], Any]) -> None:
    """Run both to their end; each answer is `answer_of` the query of `one` and that of `two`.

    Raises the error of a run, that of `two` if both fail; `ReplayError` where their queries differ in kind.
    """
    asked: SimpleQueue[Entry | BaseException | None] = SimpleQueue()
    answers: SimpleQueue[Any] = SimpleQueue()

    def follow(entry: Entry) -> Any:
        asked.put(entry)
        answer = answers.get()
        if isinstance(answer, _Stopped):
            raise answer
        return answer

    def follower() -> None:
        try:
            with answered_by(follow):
                one()
            asked.put(None)
        except BaseException as error:
            asked.put(error)

    def lead(entry: Entry) -> Any:
        other = asked.get()
        if isinstance(other, BaseException):
            raise other
        if other is None or (other.label, other.event) != (entry.label, entry.event):
            asked.put(other)
            raise ReplayError(f"one run requested {other and other.label!r}, the other one {entry.label!r}")
        answer = answer_of(other, entry)
        answers.put(answer)
        return answer

    thread = Thread(target=copy_context().run, args=(follower,), daemon=True)
    thread.start()
    try:
        with answered_by(lead):
            two()
        last = asked.get()
        if isinstance(last, BaseException):
            raise last
        if last is not None:
            raise ReplayError(f"one run requested {last.label!r}, but the other stopped earlier")
    finally:
        answers.put(_Stopped())
        thread.join()


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
