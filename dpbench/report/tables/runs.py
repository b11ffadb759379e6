"""Provenance and cost of the stored trials, and the trials behind each number of a table.

Commits, versions, processor, seconds and memory are those of each mechanism.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from statistics import mean

import pandas as pd

from dpbench.files import write_file
from dpbench.grid.audits import AuditRecord
from dpbench.grid.provenance import Provenance
from dpbench.grid.records import Trial, TrialKey
from dpbench.privacy.accounting import Spent, together
from dpbench.report.frames.ledgers import Grounds, LedgerOf, ex_post, grounds_of, no_ledgers
from dpbench.report.frames.settings import calibration_of
from dpbench.report.text import markdown, markdown_table, number

BASIS = {
    Grounds.NOISE: "proven",
    Grounds.FILTER: "proven by a filter",
    Grounds.CLAIM: "claimed",
    Grounds.UNKNOWN: "unknown: the ledger is not stored",
}
Trials = Mapping[tuple[int, int], Sequence[str]]  # row and column of a number -> ids of its trials
Keep = Callable[[Sequence[Trials], Path, str], list[Path]]  # writes those of some tables into a folder, under a name
AUDITED = (
    "Measured by dpbench audit on its own tables, with the settings in its records; the largest of several lower "
    "bounds, each with 95 % confidence. Where a cell names a budget, none was measured at the row's own: it says how "
    "much of the epsilon spent there was measured."
)


def write_runs(
    trials: Iterable[Trial],
    folder: Path,
    name: str,
    audits: Sequence[AuditRecord] = (),
    ledger_of: LedgerOf = no_ledgers,
    others: Iterable[Trial] = (),
) -> Path:
    """Write <folder>/<name>_runs.md: the provenance of the trials, and the cost of one release by mechanism and
    epsilon (the epsilon spent, the largest measured lower bound, the basis of the cost, mean and largest seconds,
    largest resident memory). A release with several trials counts once. The total cost of all releases, with those of
    `others`, bounds the privacy loss, if all were published, of a record that is in every training part.
    """
    kept = list(trials)
    summary = [*_provenance(kept), *_together([*kept, *others])]
    lines = [f"# {markdown(name)}: how it was run", "", *summary, "", _costs(kept, audits, ledger_of), "", AUDITED, ""]
    return write_file(folder / f"{name}_runs.md", "\n".join(lines))


def _provenance(trials: list[Trial]) -> list[str]:
    records = {id(trial.provenance): trial.provenance for trial in trials}.values()  # which many trials share
    releases = {id(known): known for trial in trials if (known := trial.release_provenance)}.values()
    versions = {", ".join(f"{name} {v}" for name, v in sorted(record["versions"].items())) for record in records}
    facts = {
        "trials": {str(len(trials))},
        "commit of the releases": {_commit(record) for record in releases},
        "commit of the trials on them": {_commit(record) for record in records},
        "processor": {str(record["cpu"]) for record in records},
        "threads a worker": {str(record["threads"]) for record in records},
        "versions": versions,
    }
    return [f"- {what}: {markdown('; '.join(sorted(values)))}" for what, values in facts.items()]


def _together(trials: list[Trial]) -> list[str]:
    """The cost of all private releases of each data set, as if one record were in the training rows of all.

    Costs under different neighbouring relations are different guarantees, and are reported separately.
    """
    costs: dict[tuple[str, str], dict[str, Spent]] = {}
    unpaid: set[str] = set()
    for trial in trials:
        key = trial.key.release
        if trial.spent is not None and key.budget.epsilon < math.inf:
            place = str(key.dataset["name"]), key.budget.relation.replace("_", "/")
            costs.setdefault(place, {})[trial.release_id] = trial.spent
            if trial.nonprivate_inputs:
                unpaid.add(trial.release_id)
    sentences = []
    for (name, relation), own in sorted(costs.items()):
        cost = together(list(own.values()))
        rho = f", ρ = {cost.rho:.3g}" if math.isfinite(cost.rho) else ""
        all_of_them = f"all {len(own)} private releases of {markdown(name)} together"
        spent = f"ε = {cost.epsilon:.3g} at δ = {cost.delta:.3g}{rho}, neighbours {relation}"
        with_inputs = len(unpaid & own.keys())
        sentences.append(
            f"- {all_of_them}: {spent}" + (f", plus non-private inputs of {with_inputs}" if with_inputs else "")
        )
    return sentences


def _commit(record: Provenance) -> str:
    return f"{record['commit'] or 'not a checkout'}{' with uncommitted changes' if record['dirty'] else ''}"


def _costs(trials: list[Trial], audits: Sequence[AuditRecord], ledger_of: LedgerOf) -> str:
    releases = {trial.release_id: trial for trial in trials}
    groups: dict[tuple[str, float, str], list[Trial]] = {}
    for trial in releases.values():
        key = trial.key.release
        group = (key.mechanism.name, key.budget.epsilon, calibration_of(trial.key))
        groups.setdefault(group, []).append(trial)
    rows = []
    for (mechanism, epsilon, calibration), group_trials in sorted(groups.items()):
        runtimes = [trial.runtime for trial in group_trials]
        seconds = [run.release_seconds for run in runtimes if run.release_seconds is not None]
        memory = [run.release_peak_mb for run in runtimes if run.release_peak_mb is not None]
        cells = [mechanism, number(epsilon), calibration, str(len(group_trials))]
        cells += _paid(group_trials, audits, ledger_of) if math.isfinite(epsilon) else ["", "", "not private"]
        cells += [f"{mean(seconds):.3g}", f"{max(seconds):.3g}"] if seconds else ["", ""]
        cells.append(f"{max(memory):.0f}" if memory else "")
        rows.append(cells)
    header = ["mechanism", "ε", "calibration", "releases", "spent ε", "measured ε ≥", "cost"]
    header += ["mean s", "largest s", "largest MB"]
    return markdown_table(header, rows)


def _paid(group: list[Trial], audits: Sequence[AuditRecord], ledger_of: LedgerOf) -> list[str]:
    """The largest epsilon spent, the measured lower bound at this mechanism and budget, and the basis of the cost."""
    costs = [trial.spent.epsilon for trial in group if trial.spent is not None]
    if not costs:
        return ["", "", ""]
    events = next((events for events in map(ledger_of, group) if events is not None), None)
    grounds, drawn = grounds_of(group, events), ex_post(group)
    basis = BASIS[grounds] + (f"; ex post {number(drawn)}" if grounds is Grounds.FILTER and drawn is not None else "")
    unpaid = ", non-private inputs" if any(trial.nonprivate_inputs for trial in group) else ""
    return [number(max(costs)), measured(group, audits), basis + unpaid]


def trials_at(
    found: pd.DataFrame,
    by: Sequence[str],
    column: str,
    rows: Sequence[tuple[Hashable, ...]],
    columns: Sequence[Hashable],
) -> dict[tuple[int, int], list[str]]:
    """The ids (`trial`) of the trials `found`, by the row and the column of their number.

    A trial's row is that of its values of `by` among `rows`, its column that of its value of `column` among `columns`;
    both are in the table's order, and a column of names has None. Others have no number.

    >>> found = pd.DataFrame({"data": ["b", "b", "c"], "x": [1, 1, 1], "trial": ["t1", "t2", "t3"]})
    >>> trials_at(found, ["data"], "x", [("a",), ("b",)], [None, 1])
    {(1, 1): ['t1', 't2']}
    """
    row_of, column_of = {key: place for place, key in enumerate(rows)}, {key: at for at, key in enumerate(columns)}
    numbers: dict[tuple[int, int], dict[str, None]] = {}
    for *row, at, trial in zip(*(found[name].to_numpy().tolist() for name in (*by, column, "trial")), strict=True):
        if tuple(row) in row_of and at in column_of:
            numbers.setdefault((row_of[tuple(row)], column_of[at]), {})[trial] = None
    return {place: list(trials) for place, trials in numbers.items()}


def measured(group: Sequence[Trial], audits: Sequence[AuditRecord]) -> str:
    """The lower bound on the epsilon of these trials (`audit_of`), and its estimate."""
    keys = [trial.key for trial in group]
    best = audit_of(keys, audits)
    if best is not None and _covers(best, keys):
        return f"{best.measured:.3g} ({best.estimate})"
    return audited(best)


def audited(audit: AuditRecord | None) -> str:
    """The lower bound of an audit, with its budget."""
    if audit is None:
        return "not audited"
    where = f"at ε = {number(audit.epsilon)}, δ = {number(audit.delta)}"
    return f"{where}: {audit.measured:.3g} of {audit.spent:.3g} ({audit.estimate})"


def audit_of(keys: Sequence[TrialKey], audits: Sequence[AuditRecord]) -> AuditRecord | None:
    """The audit with the largest lower bound on the epsilon of trials: one that holds for the budgets of all; if there
    is none, that of the other budget whose bound is the largest part of the epsilon spent there.
    """
    first = keys[0]
    asked = {(first.release.mechanism.name, calibration_of(first), key.release.budget.relation) for key in keys}
    own = [one for one in audits if (one.mechanism, one.calibration, one.relation) in asked]
    if here := [one for one in own if _covers(one, keys)]:
        return max(here, key=lambda one: one.measured)
    return max(own, key=lambda one: one.measured / one.spent, default=None)


def _covers(audit: AuditRecord, keys: Sequence[TrialKey]) -> bool:
    """Whether the bound of an audit holds for the budgets of all these trials."""
    budgets = [key.release.budget for key in keys]
    return audit.epsilon == budgets[0].epsilon and audit.delta >= max(budget.delta for budget in budgets)
