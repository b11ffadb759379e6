"""Answers drawn where two distributions of noise differ most, with their likelihood (importance sampling).

P and Q are the distributions of a step's answers on two tables. At the tilt t its answers are drawn from R, whose
density is in proportion to p (p / q)^t. With the privacy loss L = log(p / q) and the cumulant K = log E_P exp(t L),
dP/dR is exp(K - t L). Losses and cumulants of the steps of a run add up: events that are rare under P are common under
R, and their probability under P is the mean of the weights dP/dR (for delta as in Wang, Mahloujifar, Wu, Jia
and Mittal 2023, "A Randomized Approach to Tight Privacy Accounting", arXiv 2304.07927).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from scipy.special import logsumexp

from dpbench.data.domain import Floats
from dpbench.privacy import events as kinds
from dpbench.privacy.events import Event
from dpbench.privacy.projections import Projection, projection_rdp
from dpbench.privacy.tape import Entry


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
                return self.tilt * projection_rdp(1 + self.tilt, event.multiplier, event.projections)
            case kinds.Laplace():
                return float(logsumexp(_pieces(np.array(1 / event.multiplier), self.tilt)) - math.log(2))
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
        if type(event) is Projection:
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
        total = logsumexp(logs, axis=0)
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
            p, q = a[left] - logsumexp(a[left]), b[left] - logsumexp(b[left])
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
    p, q = a - logsumexp(a), b - logsumexp(b)
    return float(logsumexp(p + tilt * (p - q)))


def _pieces(far: Floats, tilt: float) -> Floats:
    """log of twice the mass beyond a, between a and b, and beyond b, of Laplace noise at a, tilted against b: (3, ...).

    `far`: how far a and b are apart, in units of the scale.
    """
    steep = 1 + 2 * tilt
    with np.errstate(divide="ignore"):  # nothing lies between equal values
        between = np.log(-np.expm1(-steep * far) / steep)
    return np.stack([tilt * far, tilt * far + between, -(tilt + 1) * far])
