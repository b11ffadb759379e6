"""What `dpbench audit` measured of the mechanism of some trials, to stand beside what they spent."""

from __future__ import annotations

from collections.abc import Sequence

from dpbench.grid.audits import AuditRecord
from dpbench.grid.records import Trial
from dpbench.report.frames.settings import calibration_of
from dpbench.report.text import number

AUDITED = (
    "Measured by dpbench audit on tables of its own, with the settings that its records hold; the largest of several "
    "bounds, of 95 % confidence each. Where a cell names a budget, none was measured at the row's own: it tells how "
    "much of what was spent there was measured."
)


def measured(group: Sequence[Trial], audits: Sequence[AuditRecord]) -> str:
    """The largest bound on what these trials spent, and by which estimate: one that holds for the budgets of all; if
    there is none, that of another budget which found the largest part of what was spent there.
    """
    first, budgets = group[0].key, [trial.key.release.budget for trial in group]
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
