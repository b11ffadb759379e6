"""The trials cell by cell: what came out, what was asked and spent, the ledger, the settings and what made them."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

from dpbench.config.labels import metric_label
from dpbench.grid.audits import AuditRecord, read_audits
from dpbench.grid.records import PartKey, ReleaseKey, Trial
from dpbench.grid.seeds import canonical
from dpbench.report.footnotes import SLACK
from dpbench.report.frames.audited import AUDITED, measured
from dpbench.report.frames.frame import CELL, joined_frame
from dpbench.report.frames.ledgers import Events, LedgerOf, ex_post, is_claimed, may_be_claimed
from dpbench.report.frames.results import Results
from dpbench.report.frames.series import mark_series, series_of
from dpbench.report.frames.stats import summarise
from dpbench.report.page.filters import Filters, Tags
from dpbench.report.text import aligned, mean_and_error, number, powers

COLUMNS = ("repetition", "trial", "release", "status", "release s", "model s")  # of a trial, before its metrics
EVENTS = 12  # kinds of draws that a cell lists
_PATH = re.compile(r"(?:[A-Za-z]:)?(?:[/\\][^\s'\"/\\:,;]+){2,}")


class Term(NamedTuple):
    """Words of a fact, and the place of what they stand for in the register (0 for none)."""

    text: str
    place: int = 0


class Register:
    """What many cells share, each once: data, mechanisms, models and what made them, with all their settings."""

    def __init__(self) -> None:
        self.places: dict[str, int] = {}

    def term(self, text: str, whole: str) -> Term:
        """The words that stand for the whole text."""
        return Term(text, self.places.setdefault(whole, len(self.places) + 1))


@dataclass(frozen=True)
class Cell:
    """Trials that differ in nothing but their repetition, and how they stand on the page.

    `statuses` counts them, `overspent` is how many times what was asked they spent at most, `unpaid` what they read
    from the rows for nothing. `trials` are lines of text, as there may be many thousands: `listed` of a `total`.
    """

    experiment: str
    dataset: str
    method: str
    epsilon: str
    tags: Tags
    first: str
    statuses: Mapping[str, int]
    overspent: float
    unpaid: tuple[str, ...]
    marks: list[str]
    facts: list[tuple[str, list[Term]]]
    events: list[tuple[str, str]] | None
    trials: str
    listed: int
    total: int

    @property
    def counts(self) -> str:
        """Such as "18 trials done, 2 failed"."""
        lost = {status: count for status, count in sorted(self.statuses.items()) if status != "done"}
        done = self.statuses.get("done", 0)
        told = [f"{done} trial{'' if done == 1 else 's'} done"]
        return ", ".join([*told, *(f"{count} {status.replace('_', ' ')}" for status, count in lost.items())])


@dataclass
class Cells:
    """All cells, of so many trials, with what they share and, by experiment, what its metrics are."""

    cells: list[Cell] = field(default_factory=list)
    register: Register = field(default_factory=Register)
    metrics: dict[str, list[str]] = field(default_factory=dict)
    trials: int = 0


def cells_of(results: Sequence[Results], filters: Filters, ledger_of: LedgerOf, most: int) -> Cells:
    """The cells of every experiment, with `most` of their trials at most: the same number of each, failures first."""
    found = Cells(trials=sum(len(one.trials) for one in results))
    groups = [(one, group) for one in results if one.trials for group in _groups(one)]
    each = _share([len(group.trials) for _, group in groups], most)
    audits = read_audits(results[0].experiment.results)
    for one, group in groups:
        found.cells.append(_cell(one, group, filters, ledger_of, audits, each, found.register))
        told = found.metrics.setdefault(one.experiment.name, [])
        told += [text for text in map(_metric, group.rows) if text not in told]
    return found


class _Group(NamedTuple):
    """The trials of a cell, and the summary of each of their metrics with the label of their series.

    `code` is that of the trials if another cell differs in nothing but its code.
    """

    trials: list[Trial]
    rows: list[dict[Hashable, Any]]
    code: str


def _groups(one: Results) -> Iterator[_Group]:
    """The trials of each cell, as figures and tables tell them apart, and by their code: it is not averaged over."""
    frame = joined_frame([one.rows])
    known = series_of(frame, one.experiment.report["labels"])
    trials = {trial.id: trial for trial in one.rows.trials}
    codes = {name: _code(trial) for name, trial in trials.items()}
    frame = frame.assign(code=frame["trial"].map(codes))
    by = [*(name for name in CELL if name != "metric"), "code"]
    summary = mark_series(summarise(frame, [*by, "metric"]), known).sort_values(
        ["dataset", "series_order", "epsilon", "delta", "code"], kind="stable"
    )
    ids: dict[Any, dict[str, None]] = defaultdict(dict)
    for where, name in zip(zip(*(frame[column] for column in by), strict=True), frame["trial"], strict=True):
        ids[where][name] = None
    versions = Counter(where[:-1] for where in ids)
    for where, rows in groupby(summary.to_dict("records"), itemgetter(*by)):
        other_code = versions[where[:-1]] > 1
        yield _Group([trials[name] for name in ids[where]], list(rows), where[-1] if other_code else "")


def _code(trial: Trial) -> str:
    """Which code made the trial: digests of its mechanism and model, "" where they are not recorded."""
    key = trial.key
    return "/".join(filter(None, (key.release.mechanism.code, key.fit.model.code)))


def _share(sizes: Sequence[int], most: int) -> int:
    """The largest number of trials of each cell that keeps their sum at `most`, one at least.

    >>> _share([5, 5, 100], 20), _share([5, 5], 20), _share([3, 3, 3], 1)
    (10, 5, 1)
    """
    low, high = 1, max(sizes, default=1)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if sum(min(size, middle) for size in sizes) <= most else (low, middle - 1)
    return low


def _cell(
    one: Results,
    made: _Group,
    filters: Filters,
    ledger_of: LedgerOf,
    audits: Sequence[AuditRecord],
    each: int,
    register: Register,
) -> Cell:
    (group, rows, code), experiment = made, one.experiment
    key = group[0].key
    dataset, epsilon = str(rows[0]["dataset"]), float(key.release.budget.epsilon)
    private, series = math.isfinite(epsilon), str(rows[0]["series"])
    name = experiment.report["labels"].get(f"{key.release.mechanism.name}/{key.fit.model.name}", series)
    found = {str(row["metric"]): row for row in rows}
    order = _order(list(found), experiment.report)
    events = ledger_of(group[0])
    return Cell(
        experiment=experiment.name,
        dataset=filters.datasets.get(dataset, dataset),
        method=series,
        epsilon=number(epsilon) if private else "∞",
        tags=filters.cell(dataset, name, epsilon),
        first=f"{metric_label(order[0])} {_mean(found[order[0]])}",
        statuses=Counter(trial.status for trial in group),
        overspent=max(map(_overspent, group)),
        unpaid=tuple(sorted({str(name) for trial in group for name in trial.nonprivate_inputs})) if private else (),
        marks=[*([f"code {code}, not averaged with other code"] if code else []), *_marks(group, events)],
        facts=[
            ("Results", [Term(" · ".join(_result(found[metric]) for metric in order))]),
            *_facts(group, events, audits, register),
        ],
        events=None if events is None else _events(events),
        trials=aligned(zip([*COLUMNS, *order], *(_line(trial, order) for trial in _sample(group, each)), strict=True)),
        listed=min(each, len(group)),
        total=len(group),
    )


def _order(metrics: Sequence[str], report: Mapping[str, Any]) -> list[str]:
    """The metrics that the experiment reports first, then the others by name."""
    drawn = [str(spec["metric"]) for spec in report["figures"] if "metric" in spec]
    first = [metric for metric in dict.fromkeys([*report["metrics"], *drawn]) if metric in metrics]
    return [*first, *(metric for metric in metrics if metric not in first)]


def _metric(row: Mapping[Hashable, Any]) -> str:
    """Such as "mse: test MSE, in scaled target², lower is better"."""
    name, label = str(row["metric"]), metric_label(str(row["metric"]))
    told = [label] if label != name else []
    told += [f"in {powers(str(row['unit']))}"] if row["unit"] else []
    told += [f"{row['direction']} is better"] if row["direction"] not in ("none", "") else []
    return f"{name}: {', '.join(told)}" if told else name


def _result(row: Mapping[Hashable, Any]) -> str:
    """Such as "mse 0.0812 ± 0.0011 (4 of 5)": mean and standard error of the trials with a value."""
    count, lost = int(row["count"]), int(row["nonfinite"]) + int(row["failed"])
    return f"{row['metric']} {_mean(row)} ({f'{count} of {count + lost}' if lost else count})"


def _mean(row: Mapping[Hashable, Any]) -> str:
    return mean_and_error(row["mean"], row["se"]) if row["count"] else "no value"


def _marks(group: Sequence[Trial], events: Events | None) -> Iterator[str]:
    """What a reader must see before opening the cell."""
    if any(trial.status != "done" for trial in group):
        yield "failures"
    if max(map(_overspent, group)) > SLACK:
        yield "spent more than asked"
    if any(trial.nonprivate_inputs for trial in group) and math.isfinite(group[0].key.release.budget.epsilon):
        yield "inputs not paid for"
    if is_claimed(events):
        yield "privacy claimed, not proven"


def _overspent(trial: Trial) -> float:
    """What was spent over what was asked; 0 where nothing is known."""
    asked = trial.key.release.budget.epsilon
    return trial.spent.epsilon / asked if trial.spent is not None and math.isfinite(asked) else 0.0


def _facts(
    group: Sequence[Trial], events: Events | None, audits: Sequence[AuditRecord], register: Register
) -> Iterator[tuple[str, list[Term]]]:
    """What was asked, spent and measured, of which settings, by which code, on which machine."""
    key = group[0].key
    release, budget = key.release, key.release.budget
    private = math.isfinite(budget.epsilon)
    if private:
        asked = f"ε = {number(budget.epsilon)}, δ = {number(budget.delta)}"
        yield "Asked", [Term(f"{asked}, neighbours {budget.relation.replace('_', '/')}")]
        yield "Spent", [Term(_spent(group))]
        yield "Measured ε ≥", [register.term(measured(group, audits), AUDITED)]
        yield "Rests on", [Term(_grounds(group, events))]
    else:
        yield "Asked", [Term("nothing: a reference that is not private")]
    if inputs := sorted({str(name) for trial in group for name in trial.nonprivate_inputs}):
        yield "Not paid for", [register.term(_short(name), name) for name in inputs]
    yield "Data", [register.term(str(release.dataset["name"]), _data(release))]
    yield "Mechanism", [_part("Mechanism", release.mechanism, register)]
    yield "Model", [_part("Model", key.fit.model, register)]
    releases = Counter(_made(trial.release_provenance or trial.provenance, register) for trial in group)
    trials = Counter(_made(trial.provenance, register) for trial in group)
    yield "Releases by", list(releases)
    if trials.keys() != releases.keys():
        yield "Trials by", list(trials)
    if failures := Counter(_failure(trial) for trial in group if trial.error is not None):
        yield "Failures", [Term(f"{count} × {text}") for text, count in failures.most_common(5)]


def _data(release: ReleaseKey) -> str:
    """The data set with its settings, the checksums of its files, and the rows that were asked for."""
    data = release.dataset
    sources = [f"{name} (sha256 {str(digest)[:12]})" for name, digest in data.get("sources", {}).items()]
    split = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in sorted(release.split.items()))
    told = [f"{data['name']}{_parameters(data.get('parameters') or {})}", *sources, split, f"seed {release.seed}"]
    return _redacted(f"Data: {'; '.join(told)}")


def _spent(group: Sequence[Trial]) -> str:
    costs = [trial.spent for trial in group if trial.spent is not None]
    if not costs:
        return "not known: no release"
    most = max(costs, key=lambda cost: cost.epsilon)
    least = min(cost.epsilon for cost in costs)
    told = f"ε = {number(most.epsilon)} at δ = {number(most.delta)}"
    if least < most.epsilon / SLACK:
        told = f"ε = {number(least)} to {number(most.epsilon)} at δ = {number(most.delta)}"
    told += f", ρ = {most.rho:.4g} (zCDP)" if math.isfinite(most.rho) else ""
    return told + (f", μ = {most.mu:.4g} (Gaussian DP)" if most.mu is not None else "")


def _grounds(group: Sequence[Trial], events: Events | None) -> str:
    """Whether what was spent is proven, and how."""
    if is_claimed(events):
        return "a claim of third-party code on its own noise, not verified"
    if (post := ex_post(group)) is not None:
        return (
            f"the guarantee of a filter; the noise drawn amounts to ε = {post:.4g} at most, as if it had been "
            "fixed beforehand (ex post: no guarantee)"
        )
    if may_be_claimed(group, events):
        return "a ledger that is not here: whether it holds noise that was drawn, or a claim, cannot be told"
    return "the ledger of the noise that was drawn, composed by the accountant"


def _part(kind: str, part: PartKey, register: Register) -> Term:
    code = f", code {part.code}" if part.code else ""
    return register.term(part.name, f"{kind}: {part.name}{_parameters(part.parameters)}{code}")


def _parameters(values: Mapping[str, Any]) -> str:
    told = ", ".join(
        f"{name}={value if isinstance(value, str) else canonical(value)}"
        for name, value in sorted(values.items())
        if value is not None
    )
    return f" ({_redacted(told)})" if told else ""


def _made(record: Mapping[str, Any], register: Register) -> Term:
    """The commit that made a release or trial; with the processor and the versions of the libraries."""
    commit = str(record["commit"] or "no checkout")
    dirty = " with uncommitted changes" if record["dirty"] else ""
    versions = [f"{name} {version}" for name, version in sorted(record["versions"].items())]
    threads = f"{record['threads']} thread{'' if record['threads'] == 1 else 's'}"
    told = [f"commit {commit}{dirty}", str(record["cpu"]), threads, *versions]
    return register.term(f"{commit[:12]}{dirty}", f"Made by: {', '.join(told)}")


def _failure(trial: Trial) -> str:
    """The type of the error and, on public rows, its text: that of private rows may hold values of theirs."""
    where = f" in {trial.phase}" if trial.phase else ""
    text = trial.error.message if trial.error and trial.public else ""
    kind = trial.error.type if trial.error else ""
    told = f"{trial.status.replace('_', ' ')}{where}: {kind}"
    return f"{told}: {_redacted(text)[:200]}" if text else told


def _redacted(text: str) -> str:
    """The text with the last name alone of each path: what lies above it is a reader's business nowhere.

    >>> _redacted("cannot read /home/me/my.csv: no such file")
    'cannot read my.csv: no such file'
    """
    return _PATH.sub(lambda found: re.split(r"[/\\]", found[0])[-1], text)


def _events(events: Events) -> list[tuple[str, str]]:
    """The draws of a ledger, equal ones together: what they told, and how."""
    groups: dict[str, list[str]] = defaultdict(list)
    for event in events:
        drawn = {name: value for name, value in event.items() if name not in ("label", "kind")}
        told = ", ".join(f"{name.replace('_', ' ')} {_short(value)}" for name, value in drawn.items())
        groups[f"{str(event['kind']).replace('_', ' ')}: {told}"].append(str(event.get("label", "")))
    lines: list[tuple[str, str]] = []
    for how, labels in groups.items():
        names = ", ".join(filter(None, dict.fromkeys(labels[:4]))) + (", ..." if len(labels) > 4 else "")
        lines.append((names, f"{len(labels)} × {how}" if len(labels) > 1 else how))
    more = len(lines) - EVENTS
    return lines if more <= 0 else [*lines[:EVENTS], ("", f"and {more} more kinds of draws")]


def _short(value: Any) -> str:
    text = number(value) if isinstance(value, float) else value if isinstance(value, str) else canonical(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def _sample(group: Sequence[Trial], each: int) -> list[Trial]:
    """So many trials of a cell, failures first, in the order of their repetitions."""
    chosen = sorted(group, key=lambda one: (one.status == "done", one.key.release.repetition, one.key.fit.draw))[:each]
    return sorted(chosen, key=lambda one: (one.key.release.repetition, one.key.fit.draw, one.id))


def _line(trial: Trial, metrics: Sequence[str]) -> list[str]:
    values = {score.name: score.value for score in trial.scores}
    run, draw = trial.runtime, trial.key.fit.draw
    seconds = ["" if value is None else f"{value:.3g}" for value in (run.release_seconds, run.model_seconds)]
    repetition = f"{trial.key.release.repetition}" + (f", draw {draw}" if draw else "")
    scores = [f"{values[metric]:.5g}" if metric in values else "" for metric in metrics]
    return [repetition, trial.id, trial.release_id, trial.status, *seconds, *scores]
