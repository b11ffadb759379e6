"""How much a mechanism's own answers give away of one record, measured: a lower bound on its epsilon.

An attacker who knows both of two neighbours sees all the noisy answers that the mechanism got, and says on which of the
two it ran. What it asks of the other one is found by playing the answers back (`privacy.recording`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dpbench.audit.lower_bound import epsilon_bound, mu_bound
from dpbench.audit.neighbours import corners, joined, neighbours
from dpbench.audit.replay import change_of, exemption
from dpbench.data.domain import Floats
from dpbench.data.table import Table
from dpbench.privacy import events as kinds
from dpbench.privacy.accounting import Spent, gaussian_epsilon, spent
from dpbench.privacy.projections import Projection
from dpbench.privacy.recording import Entry, Tape, record, replay
from dpbench.privacy.renyi import RandomSearch
from dpbench.releases import Release

Make = Callable[[Table, int], Release]  # the mechanism, of a table and a seed
LEAST_RUNS = 40
SCORED = (  # the noise that `_log_ratio` has a distribution of
    kinds.Gaussian,
    kinds.Laplace,
    kinds.PureDP,
    kinds.PermuteAndFlip,
    kinds.ObjectivePerturbation,
    Projection,
)


@dataclass(frozen=True)
class Audit:
    """`epsilon`: the lower bound, at the delta of `spent`, what the ledger says. `neighbour`: how the two differ.

    `mu`: the lower bound of Gaussian DP that it was made from; None unless all the noise is Gaussian. `estimate`: which
    kind of bound it is.
    """

    spent: Spent
    epsilon: float
    mu: float | None
    neighbour: str
    runs: int
    estimate: str


def not_audited(make: Make, table: Table, relation: str = "add_remove") -> str | None:
    """Why the answers of the mechanism would not tell what its release costs; None if they do."""
    with record() as tape:
        release = make(table, 0)
    if reason := exemption(release):
        return reason
    if any(entry.event is None for entry in tape):
        return "it reads values that it does not pay for"
    if any(isinstance(event, RandomSearch) for event in release.ledger.events):
        return "it releases one of its runs, and keeps the others secret"
    if unknown := {entry.event.kind for entry in tape if entry.event and not isinstance(entry.event, SCORED)}:
        return f"no likelihood is known here of its noise ({', '.join(sorted(unknown))})"
    if relation == "replace" and any(event.rate < 1 for event in release.ledger.events):
        return "its samples are secret, and hold the record on both of two neighbours"
    return None


def audit(
    make: Make, table: Table, delta: float, *, relation: str = "add_remove", runs: int = 400, confidence: float = 0.95
) -> Audit:
    """A lower bound on eps at `delta`, from `runs` runs on each of two neighbours, seeds 1 to 2 `runs`.

    Of the neighbours of `table` (`replay.neighbours`) the one is taken for which the answers change most. The score of
    a run is the log-likelihood ratio of its answers under the noise that the ledger names. `epsilon_bound` holds for
    any noise that was really drawn, in the limits of `confidence`. Where the ledger has nothing but Gaussian noise on
    all rows `mu_bound` takes its place: what exceeds the ledger's mu refutes it whatever was drawn, and the eps is that
    of Gaussian noise of this mu.

    Raises `ValueError` for fewer than `LEAST_RUNS` runs.
    """
    if runs < LEAST_RUNS:
        raise ValueError(f"an audit takes {LEAST_RUNS} runs at least on each neighbour, not {runs}")
    if relation == "replace":  # two records at the bounds differ more than one of them and any other
        table = joined(table.take(np.arange(len(table) - 1)), next(corners(table)))
    with record() as tape:
        release = make(table, 0)
    cost = spent(release.ledger, delta)
    what, other = max(neighbours(table, relation), key=lambda pair: _distance(make, tape, pair[1]))
    zero, one = (other, table) if len(other) < len(table) else (table, other)  # the record comes last
    without = np.array([_score(make, zero, zero, one, seed) for seed in range(1, runs + 1)])
    with_record = np.array([_score(make, one, zero, one, seed) for seed in range(runs + 1, 2 * runs + 1)])
    if not all(isinstance(event, kinds.Gaussian) and event.rate == 1 for event in release.ledger.events):
        return Audit(cost, epsilon_bound(without, with_record, delta, confidence), None, what, runs, "Clopper-Pearson")
    mu = mu_bound(without, with_record, confidence)
    return Audit(cost, gaussian_epsilon(mu, delta), mu, what, runs, "Gaussian DP")


def _distance(make: Make, tape: Tape, other: Table) -> float:
    """The squared changes of all answers on the other table, each in units of its noise."""
    with replay(tape) as asked:
        make(other, 0)
    scale = (getattr(entry.event, "epsilon", 0.0) or 1 / getattr(entry.event, "multiplier", math.inf) for entry in tape)
    return float(sum((change_of(a, b) * unit) ** 2 for a, b, unit in zip(tape, asked, scale, strict=True)))


def _score(make: Make, ran_on: Table, zero: Table, one: Table, seed: int) -> float:
    """The log-likelihood ratio of the answers of one run: large where they look like those on `one`."""
    with record() as tape:
        make(ran_on, seed)
    first = tape
    if ran_on is not zero:
        with replay(tape) as first:  # samples without the record
            make(zero, seed)
    with replay(first) as second:  # and with it
        make(one, seed)
    return float(sum(_log_ratio(a, b) for a, b in zip(first, second, strict=True)))


def _log_ratio(zero: Entry, one: Entry) -> float:
    """log p(answer | one) - log p(answer | zero) by the noise of the ledger, or what is near it.

    Of a sample the attacker knows the other rows, but not whether the record is in it.
    """
    answer, ratio = zero.answer, 0.0
    match zero.event:
        case kinds.Gaussian() as event:
            near = _squares(answer - zero.asked) - _squares(answer - one.asked)
            ratio = near / (2 * event.sd**2)
            if event.rate < 1:
                ratio = float(np.logaddexp(math.log1p(-event.rate), math.log(event.rate) + ratio))
        case kinds.Laplace() as event:
            ratio = _nearer(zero, one) / (event.multiplier * event.sensitivity)
        case kinds.PureDP() as event:  # a tree's counts
            ratio = _nearer(zero, one) * event.epsilon
        case kinds.PermuteAndFlip() as event:  # the exponential mechanism too, whose distribution this is
            scale = event.epsilon / (2 * event.sensitivity)
            logs = [scale * x.asked - np.logaddexp.reduce(scale * x.asked) for x in (zero, one)]
            ratio = float(np.sum((logs[1] - logs[0])[answer]))
        case kinds.ObjectivePerturbation() as event:  # without the determinants of the change of variables
            near = _squares(zero.asked(answer)) - _squares(one.asked(answer))
            ratio = near / (2 * (event.multiplier * event.sensitivity) ** 2)
        case Projection():
            inverses = np.linalg.inv(zero.asked) - np.linalg.inv(one.asked)
            determinants = np.linalg.slogdet(zero.asked)[1] - np.linalg.slogdet(one.asked)[1]
            ratio = float(np.sum((answer @ inverses) * answer) + len(answer) * determinants) / 2
    return ratio


def _nearer(zero: Entry, one: Entry) -> float:
    return float(np.abs(zero.answer - zero.asked).sum() - np.abs(zero.answer - one.asked).sum())


def _squares(values: Floats) -> float:
    return float(np.sum(np.square(values)))
