"""Whether a mechanism reads the private rows through its noise only, and within the sensitivities that it declares.

It is run with its noisy answers on a tape, and again on other tables with the same answers (`privacy.tape`).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice, pairwise, product

import numpy as np

from dpbench.data.domain import Attribute, Domain, Floats
from dpbench.data.table import Table
from dpbench.privacy import events as kinds
from dpbench.privacy.batches import BatchGaussian
from dpbench.privacy.projections import Projection
from dpbench.privacy.renyi import RandomSearch
from dpbench.privacy.tape import Entry, ReplayError, Tape, record, replay
from dpbench.releases import Release

ROUNDING = 1e-9  # relative, of a sensitivity
CORNERS = 8  # records at the bounds of the domain, of which each neighbour has one more
EXEMPT = {kinds.Exact: "it is not private", kinds.Claimed: "its noise is the claim of a third party"}


def exemption(release: Release) -> str | None:
    """Why replaying the mechanism would show nothing, by the ledger of its release; None if it must pass."""
    return next((EXEMPT[type(event)] for event in release.ledger.events if type(event) in EXEMPT), None)


def check_replay(make: Callable[[Table], Release], table: Table, *, relation: str = "add_remove") -> list[str]:
    """What is wrong with the mechanism `make`, a sentence each; empty if nothing was found.

    `make` must give one release for one table: it makes a generator of a fixed seed itself. With the answers that were
    recorded on `table`,

    - other rows of the domain, and none, must give the same release to the byte: else something is read without noise;
    - on neighbours (the last record removed, or one at the bounds of the domain added, or put in its place where
      `relation` is `replace`) what is asked must not change by more than the declared sensitivity;
    - the ledger must hold what was drawn, no more and no less, and no two draws may share their noise.

    Values that were read through `noise.unpaid`, and what is drawn beside them, are left to `nonprivate_inputs`, which
    must name them. Whatever `make` raises on one of these tables is raised.
    """
    with record() as tape:
        release = make(table)
    problems = [*_of_ledger(release, tape), *_shared_noise(tape)]
    for what, other in _others(table, relation):
        problems += _again(make, other, release, tape, what)[0]
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


def random_table(domain: Domain, n: int, seed: int, *, numbers: bool = False) -> Table:
    """n rows drawn uniformly over the domain, with `numbers` within their bounds if they are wanted."""
    rng = np.random.default_rng(seed)
    codes = np.stack([rng.integers(0, attribute.size, n) for attribute in domain.attributes], axis=1)
    if not numbers:
        return Table(domain, codes)
    drawn = {a.name: _number(a, rng.random(n)) for a in domain.attributes if a.numeric}
    columns = [a.code(drawn[a.name]) if a.name in drawn else codes[:, j] for j, a in enumerate(domain.attributes)]
    return Table(domain, np.stack(columns, axis=1), drawn)


# --- the tables it is run on ---------------------------------------------------------------------------------------


def _others(table: Table, relation: str) -> Iterator[tuple[str, Table]]:
    """Tables that share nothing with this one but the domain, and n where it is public."""
    kept = len(table) if relation == "replace" else len(table) // 2 + 1
    numbers = bool(table.numbers)
    yield "on other rows", random_table(table.domain, kept, 1, numbers=numbers)
    if relation != "replace":
        yield "on no rows", random_table(table.domain, 0, 1, numbers=numbers)


def neighbours(table: Table, relation: str) -> Iterator[tuple[str, Table]]:
    """Tables a step away, and in which way; a sample that was recorded is of the first rows, so a change comes last."""
    fewer = table.take(np.arange(len(table) - 1))
    if relation != "replace":
        yield "without a record", fewer
    for corner in corners(table):
        if relation == "replace":
            yield "with another record", joined(fewer, corner)
        else:
            yield "with one more record", joined(table, corner)


def corners(table: Table) -> Iterator[Table]:
    """Records with each attribute at its lower or upper end: some with most at one end, then others."""
    ends = [(0, 1) for _ in table.domain.names]
    every = sorted(product(*ends), key=lambda bits: min(sum(bits), len(bits) - sum(bits)))
    for bits in islice(every, CORNERS):
        codes = [bit * (attribute.size - 1) for bit, attribute in zip(bits, table.domain.attributes, strict=True)]
        at = {a.name: np.array([float(bit)]) for bit, a in zip(bits, table.domain.attributes, strict=True)}
        numbers = {name: _number(table.domain[name], at[name]) for name in table.numbers}
        yield Table(table.domain, np.array([codes], dtype=np.int64), numbers)


def _number(attribute: Attribute, part: Floats) -> Floats:
    """The numbers this far between the bounds."""
    assert attribute.bounds is not None
    lower, upper = attribute.bounds
    return lower + (upper - lower) * part


def joined(one: Table, two: Table) -> Table:
    """The rows of both."""
    numbers = {name: np.concatenate([column, two.numbers[name]]) for name, column in one.numbers.items()}
    return Table(one.domain, np.concatenate([one.codes, two.codes]), numbers)


# --- what is wrong -------------------------------------------------------------------------------------------------


def _again(
    make: Callable[[Table], Release], other: Table, release: Release, tape: Tape, what: str
) -> tuple[list[str], Tape]:
    """The problems of a run with the recorded answers on another table, and what it asked."""
    start = f"reads the rows without noise: {what}, with the same answers, "
    with replay(tape) as asked:
        try:
            again = make(other)
        except ReplayError as error:
            return [start + str(error)], asked
    changed = _differences(release, again)
    if len(asked) < len(tape):
        changed.append("the number of answers")
    return [start + f"{', '.join(changed)} changed"] if changed else [], asked


def _differences(one: Release, two: Release) -> list[str]:
    """The parts of a release that are not the same to the byte."""
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
            return float(np.linalg.norm(now.asked(then.told) - then.asked(then.told))) / event.sensitivity
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


def _of_ledger(release: Release, tape: Tape) -> Iterator[str]:
    """Draws that the ledger does not hold, and events of the ledger that nothing was drawn for."""
    if any(entry.event is None for entry in tape):
        if not release.nonprivate_inputs:
            yield "reads values unpaid, and its nonprivate_inputs do not name them"
        return
    drawn = Counter({id(entry.event): entry.event for entry in tape if entry.event}.values())
    held = Counter(release.ledger.events)
    searches = [event for event in held if isinstance(event, RandomSearch)]
    runs = {event for search in searches for events in search.alternatives for event in events}
    allowed = sum(entry.told * _rho_of_run(entry.event) for entry in tape if isinstance(entry.event, RandomSearch))
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


def _shared_noise(tape: Tape) -> Iterator[str]:
    """Pairs of additive draws with the same noise, in units of their scale."""
    first: list[tuple[float, float, str]] = []  # noise of the first entry, its rounding error, label
    for entry in tape:
        if isinstance(entry.event, (kinds.Gaussian, kinds.Laplace)) and np.size(entry.asked):
            asked, told = np.ravel(entry.asked)[0], np.ravel(entry.told)[0]
            scale = entry.event.multiplier * entry.event.sensitivity
            first.append(((told - asked) / scale, 1e-15 * (1 + max(abs(asked), abs(told)) / scale), entry.label))
    for (z, error, one), (w, other, two) in pairwise(sorted(first)):
        if w - z <= error + other < ROUNDING:
            yield f"adds the same noise to {one!r} and to {two!r}"
