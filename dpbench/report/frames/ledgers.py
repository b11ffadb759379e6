"""The basis of the cost of a release, from its ledger, where the release, or its export, is available.

The lower bounds of `dpbench audit` for the mechanism of some trials, to compare with the epsilon they spent.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from dpbench.grid.audits import AuditRecord
from dpbench.grid.records import Trial, TrialKey
from dpbench.report.frames.settings import calibration_of
from dpbench.report.text import number

Events = Sequence[Mapping[str, object]]  # each with its `kind`; its other fields are those of the kind
LedgerOf = Callable[[Trial], Events | None]  # the events of the release of a trial; None if it is not stored
AUDITED = (
    "Measured by dpbench audit on its own tables, with the settings in its records; the largest of several lower "
    "bounds, each with 95 % confidence. Where a cell names a budget, none was measured at the row's own: it says how "
    "much of the epsilon spent there was measured."
)


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


def measured(group: Sequence[Trial], audits: Sequence[AuditRecord]) -> str:
    """The largest lower bound on the epsilon of these trials, and its estimate: one that holds for the budgets of all;
    if there is none, that of the other budget whose bound is the largest part of the epsilon spent there.
    """
    return measured_for([trial.key for trial in group], audits)


def measured_for(keys: Sequence[TrialKey], audits: Sequence[AuditRecord]) -> str:
    """The same for the keys of trials."""
    first, budgets = keys[0], [key.release.budget for key in keys]
    epsilon, delta = budgets[0].epsilon, max(budget.delta for budget in budgets)
    asked = {(first.release.mechanism.name, calibration_of(first), budget.relation) for budget in budgets}
    own = [one for one in audits if (one.mechanism, one.calibration, one.relation) in asked]
    if here := [one for one in own if one.epsilon == epsilon and one.delta >= delta]:
        best = max(here, key=lambda one: one.measured)
        return f"{best.measured:.3g} ({best.estimate})"
    if not own:
        return "not audited"
    best = max(own, key=lambda one: one.measured / one.spent)
    where = f"at ε = {number(best.epsilon)}, δ = {number(best.delta)}"
    return f"{where}: {best.measured:.3g} of {best.spent:.3g} ({best.estimate})"
