"""The trials cell by cell: what came out, what was asked and spent, the ledger, the settings and what made them."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from dpbench.config.labels import metric_label
from dpbench.grid.records import PartKey, Trial
from dpbench.grid.seeds import canonical
from dpbench.report.frames.frame import CELL, joined_frame
from dpbench.report.frames.results import Results
from dpbench.report.frames.series import mark_series, series_of
from dpbench.report.frames.stats import summarise
from dpbench.report.page.filters import Filters, Tags
from dpbench.report.text import mean_and_error, number, powers

Events = Sequence[Mapping[str, Any]]
LedgerOf = Callable[[Trial], Events | None]  # the events of the release of a trial; None if it is not stored

CLAIMED = "claimed"  # the kind of an event whose noise is a claim of third-party code
EVENTS = 12  # kinds of draws that a cell lists
OVER = 1.001  # spent over asked epsilon beyond which it is told, as in the footnotes: accountants round
_PATH = re.compile(r"(?:[A-Za-z]:)?(?:[/\\][^\s'\"/\\:,;]+){2,}")


@dataclass(frozen=True)
class Cell:
    """Trials that differ in nothing but their repetition, and how they stand on the page.

    `statuses` counts them, `overspent` is how many times what was asked they spent at most, `unpaid` what they read
    from the rows for nothing.
    """

    experiment: str
    dataset: str
    method: str
    epsilon: str
    tags: Tags
    results: list[tuple[str, str, str]]  # metric, mean ± se in its unit, trials
    counts: str
    statuses: Mapping[str, int]
    overspent: float
    unpaid: tuple[str, ...]
    marks: list[str]
    facts: list[tuple[str, str]]
    events: list[tuple[str, str]] | None
    header: list[str]
    trials: list[list[str]]
    listed: int
    total: int
    versions: int = 0  # the place of the libraries' versions on the page


@dataclass
class Cells:
    """All cells; `versions` of the libraries that made them, each once."""

    cells: list[Cell] = field(default_factory=list)
    versions: list[str] = field(default_factory=list)
    trials: int = 0


def cells_of(results: Sequence[Results], filters: Filters, ledger_of: LedgerOf, most: int) -> Cells:
    """The cells of every experiment, with `most` of their trials at most: the same number of each, failures first."""
    found = Cells(trials=sum(len(one.trials) for one in results))
    groups = [(one, group) for one in results if one.trials for group in _groups(one)]
    each = _share([len(group) for _, group in groups], most)
    for one, group in groups:
        found.cells.append(_cell(one, group, filters, ledger_of, each, found.versions))
    return found


class _Group(list[Trial]):
    """The trials of a cell; `rows`, the summary of each of their metrics, with the label of their series."""

    rows: pd.DataFrame


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
    ids = dict(iter(frame.groupby(by, dropna=False)["trial"]))
    for place, rows in summary.groupby(by, dropna=False, sort=False):
        group = _Group(trials[name] for name in dict.fromkeys(ids[place]))
        group.rows = rows
        yield group


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
    one: Results, group: _Group, filters: Filters, ledger_of: LedgerOf, each: int, versions: list[str]
) -> Cell:
    rows, first = group.rows, group[0]
    key, experiment = first.key, one.experiment
    dataset, epsilon = str(rows["dataset"].iloc[0]), float(key.release.budget.epsilon)
    private, series = math.isfinite(epsilon), str(rows["series"].iloc[0])
    name = experiment.report["labels"].get(f"{key.release.mechanism.name}/{key.fit.model.name}", series)
    metrics = [str(metric) for metric in rows["metric"]]
    order = _order(metrics, experiment.report)
    by_metric = {str(row["metric"]): row for _, row in rows.iterrows()}
    done = sum(trial.status == "done" for trial in group)
    statuses = Counter(trial.status for trial in group if trial.status != "done")
    lost = ", ".join(f"{count} {status.replace('_', ' ')}" for status, count in sorted(statuses.items()))
    events = ledger_of(first)
    return Cell(
        experiment=experiment.name,
        dataset=filters.datasets.get(dataset, dataset),
        method=series,
        epsilon=number(epsilon) if private else "∞",
        tags=filters.cell(dataset, name, epsilon),
        results=[(_metric(by_metric[metric]), *_numbers(by_metric[metric])) for metric in order],
        counts=f"{done} trial{'' if done == 1 else 's'} done" + (f", {lost}" if lost else ""),
        statuses=Counter(trial.status for trial in group),
        overspent=max(map(_overspent, group)),
        unpaid=tuple(sorted({str(name) for trial in group for name in trial.nonprivate_inputs})) if private else (),
        marks=list(_marks(group, events)),
        facts=list(_facts(group, events)),
        events=None if events is None else _events(events),
        header=["repetition", "trial", "release", "status", "release s", "model s", *order],
        trials=[_line(trial, order) for trial in _sample(group, each)],
        listed=min(each, len(group)),
        total=len(group),
        versions=_place(versions, _versions(first)),
    )


def _order(metrics: Sequence[str], report: Mapping[str, Any]) -> list[str]:
    """The metrics that the experiment reports first, then the others by name."""
    drawn = [str(spec["metric"]) for spec in report["figures"] if "metric" in spec]
    first = [metric for metric in dict.fromkeys([*report["metrics"], *drawn]) if metric in metrics]
    return [*first, *(metric for metric in metrics if metric not in first)]


def _metric(row: pd.Series) -> str:
    label = metric_label(str(row["metric"]))
    better = f", {row['direction']} is better" if row["direction"] not in ("none", "") else ""
    unit = f" ({powers(str(row['unit']))})" if row["unit"] else ""
    return f"{label}{unit}{better}"


def _numbers(row: pd.Series) -> tuple[str, str]:
    count, lost = int(row["count"]), int(row["failed"]) + int(row["nonfinite"])
    shown = mean_and_error(row["mean"], row["se"]) if count else "no value"
    return shown, f"{count} of {count + lost}" if lost else str(count)


def _marks(group: Sequence[Trial], events: Events | None) -> Iterator[str]:
    """What a reader must see before opening the cell."""
    if any(trial.status != "done" for trial in group):
        yield "failures"
    if max(map(_overspent, group)) > OVER:
        yield "spent more than asked"
    if any(trial.nonprivate_inputs for trial in group) and math.isfinite(group[0].key.release.budget.epsilon):
        yield "inputs not paid for"
    if events is not None and any(event["kind"] == CLAIMED for event in events):
        yield "privacy claimed, not proven"


def _overspent(trial: Trial) -> float:
    """What was spent over what was asked; 0 where nothing is known."""
    asked = trial.key.release.budget.epsilon
    return trial.spent.epsilon / asked if trial.spent is not None and math.isfinite(asked) else 0.0


def _facts(group: Sequence[Trial], events: Events | None) -> Iterator[tuple[str, str]]:
    """What was asked and spent, of which settings, by which code, on which machine."""
    first = group[0]
    release = first.key.release
    budget = release.budget
    private = math.isfinite(budget.epsilon)
    asked = f"ε = {number(budget.epsilon)}, δ = {number(budget.delta)}, neighbours: {budget.relation.replace('_', '/')}"
    yield "Asked", asked if private else "nothing: a reference that is not private"
    if private:
        yield "Spent", _spent(group)
        yield "Rests on", _grounds(group, events)
    if inputs := sorted({str(name) for trial in group for name in trial.nonprivate_inputs}):
        yield "Not paid for", "; ".join(inputs)
    split = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in sorted(release.split.items()))
    sources = ", ".join(f"{name} ({str(digest)[:12]})" for name, digest in release.dataset.get("sources", {}).items())
    parameters = release.dataset.get("parameters") or {}
    data = f"{release.dataset['name']}{_parameters(parameters)}" + (f"; sources: {sources}" if sources else "")
    yield "Data", f"{_redacted(data)}; {split}"
    yield "Mechanism", _part(release.mechanism)
    yield "Model", _part(first.key.fit.model)
    yield "Seed", f"{release.seed}; the split is drawn from data set, seed and repetition, the noise from the release"
    made = Counter(_made(trial.release_provenance or trial.provenance) for trial in group)
    scored = Counter(_made(trial.provenance) for trial in group)
    yield "Releases by", "; ".join(made)
    if scored.keys() != made.keys():
        yield "Trials by", "; ".join(scored)
    failures = Counter(_failure(trial) for trial in group if trial.error is not None)
    if failures:
        yield "Failures", "; ".join(f"{count} × {text}" for text, count in failures.most_common(5))


def _spent(group: Sequence[Trial]) -> str:
    costs = [trial.spent for trial in group if trial.spent is not None]
    if not costs:
        return "not known: no release"
    most = max(costs, key=lambda cost: cost.epsilon)
    least = min(cost.epsilon for cost in costs)
    told = f"ε = {number(most.epsilon)} at δ = {number(most.delta)}"
    if least < most.epsilon / OVER:
        told = f"ε = {number(least)} to {number(most.epsilon)} at δ = {number(most.delta)}"
    told += f", ρ = {most.rho:.4g} (zCDP)" if math.isfinite(most.rho) else ""
    return told + (f", μ = {most.mu:.4g} (Gaussian DP)" if most.mu is not None else "")


def _grounds(group: Sequence[Trial], events: Events | None) -> str:
    """Whether what was spent is proven, and how."""
    post = [trial.spent.ex_post for trial in group if trial.spent is not None and trial.spent.ex_post is not None]
    if events is not None and any(event["kind"] == CLAIMED for event in events):
        return "a claim of third-party code on its own noise, which is not verified"
    if post:
        return (
            "the guarantee of a filter, under which the noise was chosen as the mechanism went; the noise really drawn "
            f"amounts to ε = {max(post):.4g} at most, as if fixed beforehand (ex post: no guarantee)"
        )
    return "the ledger of the noise that was drawn, composed by the accountant when the release was stored"


def _part(part: PartKey) -> str:
    code = f", code {part.code}" if part.code else ""
    return f"{part.name}{_parameters(part.parameters)}{code}"


def _parameters(values: Mapping[str, Any]) -> str:
    told = ", ".join(
        f"{name}={value if isinstance(value, str) else canonical(value)}"
        for name, value in sorted(values.items())
        if value is not None
    )
    return f" ({_redacted(told)})" if told else ""


def _made(record: Mapping[str, Any]) -> str:
    commit = str(record["commit"] or "")[:12] or "no checkout"
    dirty = " with uncommitted changes" if record["dirty"] else ""
    return f"commit {commit}{dirty}, {record['cpu']}, {record['threads']} thread{'' if record['threads'] == 1 else 's'}"


def _versions(trial: Trial) -> str:
    return ", ".join(f"{name} {version}" for name, version in sorted(trial.provenance["versions"].items()))


def _place(known: list[str], text: str) -> int:
    if text not in known:
        known.append(text)
    return known.index(text) + 1


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
        how = {name: value for name, value in event.items() if name not in ("label", "kind")}
        told = ", ".join(f"{name.replace('_', ' ')} {_short(value)}" for name, value in how.items())
        groups[f"{str(event['kind']).replace('_', ' ')}: {told}"].append(str(event.get("label", "")))
    lines = []
    for how, labels in groups.items():
        names = ", ".join(filter(None, labels[:4])) + (f" and {len(labels) - 4} more" if len(labels) > 4 else "")
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
