"""The basis of the cost of a release, from its ledger, where the release, or its export, is available."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from dpbench.grid.records import Trial

Events = Sequence[Mapping[str, object]]  # each with its `kind`; its other fields are those of the kind
LedgerOf = Callable[[Trial], Events | None]  # the events of the release of a trial; None if it is not stored


@dataclass(frozen=True)
class FirstLedger:
    """The ledger that an export keeps for a cell: the events of its first release, of this `repetition`."""

    release: str
    repetition: int
    events: Events


def no_ledgers(trial: Trial) -> None:
    """None: for use where no release is available."""


def or_first(ledger_of: LedgerOf, kept: Mapping[str, FirstLedger]) -> LedgerOf:
    """The events of a trial's own release, else those that an export has of the first release of its cell."""

    def events(trial: Trial) -> Events | None:
        found, first = ledger_of(trial), kept.get(trial.release_id)
        return first.events if found is None and first is not None else found

    return events


class Grounds(StrEnum):
    """The basis of a cost."""

    NOISE = "the ledger of the noise that was drawn, composed by the accountant"
    FILTER = "the guarantee of a filter"
    CLAIM = "a claim of third-party code on its own noise, not verified"
    UNKNOWN = "unknown: the ledger is not stored, so it may hold noise that was drawn, or a claim"


def grounds_of(group: Sequence[Trial], events: Events | None) -> Grounds:
    """The basis of the costs of releases of one mechanism and budget; `events` are those of one of them, if any is
    stored. Without it, a cost without a rho may be a claim, as a claim has none; but some noise has none either.
    """
    if events is not None and any(event["kind"] == "claimed" for event in events):
        return Grounds.CLAIM
    if ex_post(group) is not None:
        return Grounds.FILTER
    without_rho = any(trial.spent is not None and math.isinf(trial.spent.rho) for trial in group)
    return Grounds.UNKNOWN if events is None and without_rho else Grounds.NOISE


def ex_post(group: Sequence[Trial]) -> float | None:
    """The largest epsilon of the noise under a filter, as if it had been fixed in advance; None without a filter."""
    costs = [trial.spent.ex_post for trial in group if trial.spent is not None and trial.spent.ex_post is not None]
    return max(costs, default=None)
