"""What the ledger of a release says of what its cost rests on, where the release, or its export, is at hand."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dpbench.grid.records import Trial

Events = Sequence[Mapping[str, Any]]
LedgerOf = Callable[[Trial], Events | None]  # the events of the release of a trial; None if it is not stored


@dataclass(frozen=True)
class FirstLedger:
    """What an export keeps of the ledgers of a cell: the events of its first release, of this `repetition`."""

    release: str
    repetition: int
    events: Events


def no_ledgers(trial: Trial) -> None:
    """Where no release is at hand."""


def is_claimed(events: Events | None) -> bool:
    """Whether the noise is a claim of third-party code."""
    return events is not None and any(event["kind"] == "claimed" for event in events)


def may_be_claimed(group: Sequence[Trial], events: Events | None) -> bool:
    """Whether that cannot be told: the ledger is not here, and a claim has no rho, but some noise has none either."""
    return events is None and any(trial.spent is not None and math.isinf(trial.spent.rho) for trial in group)


def ex_post(group: Sequence[Trial]) -> float | None:
    """The largest eps of noise under a filter, as if it had been fixed beforehand; None without a filter."""
    costs = [trial.spent.ex_post for trial in group if trial.spent is not None and trial.spent.ex_post is not None]
    return max(costs, default=None)
