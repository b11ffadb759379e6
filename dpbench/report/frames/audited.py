"""The lower bounds of `dpbench audit` for the mechanism of some trials, to compare with the epsilon they spent."""

from __future__ import annotations

from collections.abc import Sequence

from dpbench.grid.audits import AuditRecord
from dpbench.grid.records import Trial, TrialKey
from dpbench.report.frames.settings import calibration_of
from dpbench.report.text import number

AUDITED = (
    "Measured by dpbench audit on its own tables, with the settings in its records; the largest of several lower "
    "bounds, each with 95 % confidence. Where a cell names a budget, none was measured at the row's own: it says how "
    "much of the epsilon spent there was measured."
)


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
