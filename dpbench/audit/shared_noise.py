"""Whether draws of a run share their noise: a reader of both could subtract it."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence

import numpy as np

from dpbench.data.domain import Codes, Floats
from dpbench.privacy import events as kinds
from dpbench.privacy.batches import BatchGaussian
from dpbench.privacy.discrete_values import GRID, DiscreteGaussian
from dpbench.privacy.tape import Entry, State, Tape

FALSE_ALARM = 1e-6  # approximate probability of a report for independent noise
ROUNDING = 2.0**-52  # relative
DENSITY = 1.2  # twice a bound on the integral of f^2, f the density of |z|: 0.57 of normal, 0.5 of Laplace noise


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
        yield (answer - asked) / scale, ROUNDING * (np.abs(answer) + np.abs(asked)) / scale + apart / 2
