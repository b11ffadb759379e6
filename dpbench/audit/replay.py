"""Whether a mechanism reads the private rows through its noise only, and within the sensitivities that it declares.

It is run with its noisy answers on a tape, and again on other tables with the same answers (`privacy.recording`).

**Source** Cebere, Erb, Desfontaines, Bellet and Fitzsimons 2026, "Privacy in Theory, Bugs in Practice", arXiv
2602.17454 (Re:cord-play; their package dp-recorder), found independently. There as here answers are frozen, what is
asked of two neighbours is compared with the declared sensitivity, and a call that differs is a leak. Theirs instruments
the code of any library by decorators, compares what its author marks (`ensure_equality`), and draws samples of noise
whose distribution nobody states. Here each mechanism draws through `privacy.noise` alone, so that without any marks the
whole release must be the same, on any rows and not on neighbours only, the ledger must hold what was drawn, and no
noise may serve twice. Taken from theirs: neighbours that copy a record or change one attribute, and eyes on the global
generators of Python and NumPy.

Draws of a run must not share their noise, which a reader of both could subtract: that is tested, too.
"""

from __future__ import annotations

import json
import math
import pickle
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from dpbench.audit.neighbours import neighbours, random_table
from dpbench.data.domain import Codes, Floats
from dpbench.data.table import Table
from dpbench.errors import NoEstimateError
from dpbench.privacy import events as kinds
from dpbench.privacy.batches import BatchGaussian
from dpbench.privacy.discrete import GRID, DiscreteGaussian
from dpbench.privacy.projections import Projection
from dpbench.privacy.recording import Entry, ReplayError, State, Tape, Watched, record, replay
from dpbench.privacy.renyi import RandomSearch
from dpbench.releases import Release

Make = Callable[[Table, np.random.Generator], Release]  # a mechanism, but for its table and generator
Outcome = Release | NoEstimateError  # that there is no estimate is reported too, by the noisy answers
SEEDS = (3, 4)  # of the run that is replayed, and of another one
ROUNDING = 1e-9  # relative, of a sensitivity
EXEMPT = {kinds.Exact: "it is not private", kinds.Claimed: "its noise is the claim of a third party"}
FALSE_ALARM = 1e-6  # approximate probability of a report for independent noise
LAST_BITS = 2.0**-52  # relative
DENSITY = 1.2  # twice a bound on the integral of f^2, f the density of |z|: 0.57 of normal, 0.5 of Laplace noise


def exemption(release: Release) -> str | None:
    """Why replaying the mechanism would show nothing, by the ledger of its release; None if it must pass."""
    return next((EXEMPT[type(event)] for event in release.ledger.events if type(event) in EXEMPT), None)


def check_replay(make: Make, table: Table, *, relation: str = "add_remove") -> list[str]:
    """What is wrong with the mechanism `make`, a sentence each; empty if nothing was found.

    With the answers that were recorded on `table`,

    - other rows of the domain, and none, must give the same release to the byte: else something is read without noise;
    - on neighbours (the last record removed, or one at the bounds of the domain added, or put in its place where
      `relation` is `replace`) what is asked must not change by more than the declared sensitivity;
    - the ledger must hold what was drawn, no more and no less, and no two draws, of this run and of one with another
      generator, may share their noise (`shared_noise`);
    - the release must not depend on where the generators of the noise stand after it: published rows that continue
      their stream would help to undo it.

    Values that were read through `noise.unpaid`, and what is drawn with them, are left to `nonprivate_inputs`, which
    must name them; a search that hides its runs draws their settings besides its noise. Whatever `make` raises on one
    of these tables is raised, but for `NoEstimateError`, which is an outcome like a release.
    """
    with record() as tape:
        release = _made(make, table)
    before = _global_states()  # after a first run: what it imported may have drawn
    with record() as second:
        _made(make, table, SEEDS[1])
    problems = ["draws from a global generator of Python or NumPy"] if _global_states() != before else []
    problems += [*_of_ledger(release, tape), *shared_noise(tape, second)]
    for what, other in _others(table, relation):
        problems += _again(make, other, release, tape, what)[0]
    if not any(isinstance(entry.event, RandomSearch) for entry in tape):
        with replay(tape, astray=True):
            if changed := _differences(release, _made(make, table)):
                problems.append(f"uses the numbers that follow its noise: {', '.join(changed)} changed without them")
    changes: dict[str, tuple[float, str]] = {}  # by label, the largest in units of what is declared
    for what, other in neighbours(table, relation):
        found, asked = _again(make, other, release, tape, what)
        problems += found
        for then, now in zip(tape, asked, strict=False):
            change = change_of(then, now)
            if change > changes.get(then.label, (0.0, ""))[0]:
                changes[then.label] = change, what
    for label, (change, what) in changes.items():
        if change > 1 + ROUNDING:
            problems.append(f"{label!r} changes by {change:.6g} times the sensitivity in the ledger, {what}")
    return list(dict.fromkeys(problems))


def _made(make: Make, table: Table, seed: int = SEEDS[0]) -> Outcome:
    try:
        return make(table, Watched(np.random.PCG64(seed)))
    except NoEstimateError as error:
        return error


def _global_states() -> bytes:
    return pickle.dumps((random.getstate(), np.random.get_state()))  # noqa: NPY002 - to see that nobody else uses it


def _others(table: Table, relation: str) -> Iterator[tuple[str, Table]]:
    """Tables that share nothing with this one but the domain, and n where it is public."""
    kept = len(table) if relation == "replace" else len(table) // 2 + 1
    numbers = bool(table.numbers)
    yield "on other rows", random_table(table.domain, kept, 1, numbers=numbers)
    if relation != "replace":
        yield "on no rows", random_table(table.domain, 0, 1, numbers=numbers)


# --- what is wrong -------------------------------------------------------------------------------------------------


def _again(make: Make, other: Table, release: Outcome, tape: Tape, what: str) -> tuple[list[str], Tape]:
    """The problems of a run with the recorded answers on another table, and what it asked."""
    start = f"reads the rows without noise: {what}, with the same answers, "
    with replay(tape) as asked:
        try:
            again = _made(make, other)
        except ReplayError as error:
            return [start + str(error)], asked
    changed = _differences(release, again)
    if len(asked) < len(tape):
        changed.append("the number of answers")
    return [start + f"{', '.join(changed)} changed"] if changed else [], asked


def _differences(one: Outcome, two: Outcome) -> list[str]:
    """The parts of a release that are not the same to the byte."""
    if isinstance(one, NoEstimateError) or isinstance(two, NoEstimateError):
        return [] if repr(one) == repr(two) else ["whether there is an estimate"]
    (data, arrays), (data2, arrays2) = one.to_parts(), two.to_parts()
    changed = [name for name in {**data, **data2} if json.dumps(data.get(name)) != json.dumps(data2.get(name))]
    for name in {**arrays, **arrays2}:
        a, b = arrays.get(name), arrays2.get(name)
        if a is None or b is None or (a.shape, a.dtype, a.tobytes()) != (b.shape, b.dtype, b.tobytes()):
            changed.append(name)
    return changed


def change_of(then: Entry, now: Entry) -> float:
    """How much what was asked changed, in the norm of the kind of noise and in units of the declared sensitivity."""
    match then.event:
        case kinds.ObjectivePerturbation() as event:
            return float(np.linalg.norm(now.asked(then.answer) - then.asked(then.answer))) / event.sensitivity
        case Projection() as event:
            return _change_of_gram(event, now.asked - then.asked, now.asked)
        case BatchGaussian() as event:  # what changes is the last record, which a batch may hold more than once
            times = int(np.sum(then.rows == then.n - 1))
            return _norm(now.asked - then.asked, event.norm) / (event.sensitivity * max(times, 1))
        case kinds.Gaussian() | kinds.Laplace() | kinds.PermuteAndFlip() as event:
            return _norm(now.asked - then.asked, event.norm) / event.sensitivity
        case kinds.PureDP() as event:  # a tree's counts, of which a record changes one at each call
            return _norm(now.asked - then.asked, event.norm)
    return 0.0


def _norm(change: Floats, norm: str) -> float:
    order = {"l1": 1, "l2": 2, "linf": np.inf}[norm]
    return float(np.linalg.norm(np.ravel(change), order)) if np.size(change) else 0.0


def _change_of_gram(event: Projection, change: Floats, gram: Floats) -> float:
    """||v|| over the sensitivity, where the Gram matrix changed by v v'; infinite if it is too small for the event."""
    least = (event.multiplier * event.sensitivity) ** 2
    if event.delta == 0 and np.linalg.eigvalsh(gram)[0] < least * (1 - ROUNDING):
        return np.inf
    return float(np.sqrt(np.abs(np.linalg.eigvalsh(change)).sum())) / event.sensitivity


def _of_ledger(release: Outcome, tape: Tape) -> Iterator[str]:
    """Draws that the ledger does not hold, and events of the ledger that nothing was drawn for."""
    if isinstance(release, NoEstimateError):
        return
    if any(entry.event is None for entry in tape):
        if not release.nonprivate_inputs:
            yield "reads values unpaid, and its nonprivate_inputs do not name them"
        return
    drawn = Counter({id(entry.event): entry.event for entry in tape if entry.event}.values())
    held = Counter(release.ledger.events)
    searches = [event for event in held if isinstance(event, RandomSearch)]
    runs = {event for search in searches for events in search.alternatives for event in events}
    allowed = sum(entry.answer * _rho_of_run(entry.event) for entry in tape if isinstance(entry.event, RandomSearch))
    secret = 0.0  # the rho of what such runs drew
    for event, times in (drawn - held).items():
        if allowed and event not in runs and np.isfinite(event.rho):
            secret += times * event.count * event.rho
        elif event not in runs:
            yield f"draws noise that its ledger does not hold: {event}"
    if secret > allowed * (1 + ROUNDING):
        yield f"draws {secret:g}-zCDP in runs that may have {allowed:g}"
    for event in held - drawn:
        yield f"enters in its ledger what no function of privacy.noise has drawn: {event}"


def _rho_of_run(search: RandomSearch) -> float:
    """The zCDP that the search states of a run as a whole, whose draws no ledger holds."""
    return max(sum(one.limit for one in run if isinstance(one, kinds.ZCDP)) for run in search.alternatives)


# --- noise that two runs share --------------------------------------------------------------------------------------


def shared_noise(*tapes: Tape) -> Iterator[str]:
    """Draws that start in the same generator state as another, and entries with the same noise, up to its sign.

    This covers noise of any kind and the other draws of `Watched` generators: equal states give equal numbers. The
    noise of additive draws, in units of its scale, is compared entry by entry, all with all, so that neither an offset
    nor a sign hides its reuse. Two entries of independent noise agree within rounding, or within the
    spacing of discrete noise, with a small probability: the expected number is E = sum over pairs of P(agree).
    Agreement is reported if m pairs agree and E^m is below `FALSE_ALARM`: one pair of continuous noise is enough in all
    but huge runs, of discrete noise it takes two or three.
    """
    yield from _equal_starts(tapes)
    entries = [entry for tape in tapes for entry in tape]
    z, error, places = _standard(entries)
    order = np.argsort(np.abs(z))
    size, error, places, sign = np.abs(z)[order], error[order], places[order], np.sign(z)[order]
    pairs = np.flatnonzero(np.diff(size) <= error[1:] + error[:-1])
    expected = DENSITY * len(z) * float(error.sum())
    if not len(pairs) or expected ** len(pairs) >= FALSE_ALARM:
        return
    for i in pairs:
        one, two = sorted((int(places[i]), int(places[i + 1])))
        minus = "" if sign[i] == sign[i + 1] else "minus "
        if one == two:
            yield f"adds {minus}the same noise to two entries of {entries[one].label!r}"
        else:
            yield f"adds {minus}the same noise to {entries[one].label!r} and to {entries[two].label!r}"


def _equal_starts(tapes: Sequence[Tape]) -> Iterator[str]:
    """Pairs of draws from equal generator states, each with the first; draws that used no number are left out."""
    drawn = [(repr(e.label), e.start) for tape in tapes for e in tape if e.start and _key(e.start) != _key(e.state)]
    drawn += [(f"by rng.{name}", start) for tape in tapes for name, start in tape.draws]
    first: dict[str, str] = {}
    for what, start in drawn:
        other = first.setdefault(_key(start), what)
        if other is not what:
            yield f"draws {other} and {what} from equal states of a generator"


def _key(state: State | None) -> str:
    return json.dumps(state, default=lambda array: array.tolist())


def _standard(entries: Sequence[Entry]) -> tuple[Floats, Floats, Codes]:
    """The noise (k,) of all entries of additive draws in units of its scale, its error bound, and its entry."""
    found = [(z, error, np.full(z.size, i)) for i, entry in enumerate(entries) for z, error in _additive(entry)]
    none = (np.zeros(0),) * 3
    z, error, places = (np.concatenate(column) for column in zip(none, *found, strict=True))
    kept = np.isfinite(z) & np.isfinite(error)
    return z[kept], error[kept], places[kept].astype(np.int64)


def _additive(entry: Entry) -> Iterator[tuple[Floats, Floats]]:
    """The noise of one draw, and half of the distance within which two entries agree; nothing for other kinds."""
    match entry.event:
        case DiscreteGaussian() as event:
            scale, apart = event.sd, event.spacing / event.sd
        case kinds.Gaussian() | BatchGaussian() | kinds.Laplace() as event:
            scale, apart = event.multiplier * event.sensitivity, 0.0
        case kinds.PureDP() as event:  # a tree's counts, whose scale is in proportion to this, and perhaps on a grid
            scale, apart = 1 / event.epsilon, 1 / GRID
        case _:
            return
    answer, asked = np.ravel(entry.answer), np.ravel(entry.asked)
    if scale > 0 and math.isfinite(scale):
        yield (answer - asked) / scale, LAST_BITS * (np.abs(answer) + np.abs(asked)) / scale + apart / 2
