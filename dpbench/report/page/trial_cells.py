"""The trials by cell: the results, and the trials themselves with their ledgers, as data."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

from dpbench.config.labels import metric_label
from dpbench.config.specs import Report
from dpbench.files import Json
from dpbench.grid.audits import AuditRecord, read_audits
from dpbench.grid.records import Trial
from dpbench.report.frames.by_setting import unfinished
from dpbench.report.frames.frame import CELL, joined_frame, summarise
from dpbench.report.frames.results import Results
from dpbench.report.frames.series import mark_series, series_of
from dpbench.report.page.compressed import rounded
from dpbench.report.page.facts import Register, Term, facts_of, inputs_of, marks_of, overspent
from dpbench.report.page.filters import Filters, Tags
from dpbench.report.page.shown_ledgers import Ledgers, ShownLedger, lines_of
from dpbench.report.text import mean_and_error, number, powers


@dataclass(frozen=True)
class Cell:
    """Trials that differ only in their repetition, and how the page shows them.

    `statuses` counts them, `overspent` is the largest ratio of spent to target epsilon, `unpaid` their inputs outside
    the budget, `unfinished` how many integer programmes were stopped by their time limit, in `ended` of them.
    `trials` are columns of numbers, as there may be many thousands: `listed` of a `total`.
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
    ledger: ShownLedger | None
    trials: Mapping[str, Sequence[Any]]
    listed: int
    total: int
    unfinished: int = 0
    ended: int = 0

    @property
    def data(self) -> Json:
        """What the opened cell shows: its facts, a ledger, the trials that are listed. `first` refers to the ledger
        shown where none of theirs is stored.
        """
        ledger = self.ledger
        return {
            "experiment": self.experiment,
            "dataset": self.dataset,
            "method": self.method,
            "epsilon": self.epsilon,
            "facts": self.facts,
            "ledger": ledger and {"whose": ledger.whose, "lines": list(lines_of(ledger.events))},
            "total": self.total,
            "trials": self.trials,
            **({"first": ledger.first} if ledger and ledger.first else {}),
        }

    @property
    def counts(self) -> str:
        """Such as "18 trials done, 2 failed"."""
        lost = {status: count for status, count in sorted(self.statuses.items()) if status != "done"}
        done = self.statuses.get("done", 0)
        texts = [f"{done} trial{'' if done == 1 else 's'} done"]
        return ", ".join([*texts, *(f"{count} {status.replace('_', ' ')}" for status, count in lost.items())])


@dataclass
class Cells:
    """All cells, the number of their trials, what they share and, by experiment, its metrics.

    `places` are those of the cells that hold a trial, by its id: several, if several experiments share it.
    """

    cells: list[Cell] = field(default_factory=list)
    ledgers: Ledgers = field(default_factory=Ledgers)
    register: Register = field(default_factory=Register)
    metrics: dict[str, list[str]] = field(default_factory=dict)
    places: dict[str, list[int]] = field(default_factory=dict)
    trials: int = 0

    @property
    def data(self) -> Json:
        """What every cell shows, and all ledgers."""
        return {"cells": [cell.data for cell in self.cells], **self.ledgers.data}


def cells_of(results: Sequence[Results], filters: Filters, ledgers: Ledgers, most: int) -> Cells:
    """The cells of every experiment, with `most` of their trials at most: the same number of each, failures first."""
    found = Cells(ledgers=ledgers, trials=sum(len(one.trials) for one in results))
    groups = [(one, group) for one in results if one.trials for group in _groups(one)]
    each = _share([len(group.trials) for _, group in groups], most)
    audits = read_audits(results[0].experiment.results)
    for place, (one, group) in enumerate(groups):
        for trial in group.trials:
            found.places.setdefault(trial.id, []).append(place)
        found.cells.append(_cell(one, group, filters, ledgers, audits, each, found.register))
        listed = found.metrics.setdefault(one.experiment.name, [])
        listed += [text for text in map(_metric, group.rows) if text not in listed]
    return found


class _Group(NamedTuple):
    """The trials of a cell, and the summary of each of their metrics with the label of their series.

    `code` is that of the trials if another cell differs only in its code.
    """

    trials: list[Trial]
    rows: list[dict[Hashable, Any]]
    code: str


def _groups(one: Results) -> Iterator[_Group]:
    """The trials of each cell of the figures and tables, separated by their code: it is not averaged over."""
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
    return "/".join(filter(None, (key.release.mechanism.version, key.fit.model.version)))


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
    ledgers: Ledgers,
    audits: Sequence[AuditRecord],
    each: int,
    register: Register,
) -> Cell:
    (group, rows, code), experiment = made, one.experiment
    key, programmes = group[0].key, [unfinished(trial.notes.get("unfinished")) for trial in group]
    dataset, epsilon = str(rows[0]["dataset"]), float(key.release.budget.epsilon)
    private, series = math.isfinite(epsilon), str(rows[0]["series"])
    name = experiment.report["labels"].get(f"{key.release.mechanism.name}/{key.fit.model.name}", series)
    found = {str(row["metric"]): row for row in rows}
    order = _order(list(found), experiment.report)
    listed = _sample(group, each)
    ledger = ledgers.shown_for(listed)
    events = None if ledger is None else ledger.events
    return Cell(
        experiment=experiment.name,
        dataset=filters.datasets.get(dataset, dataset),
        method=series,
        epsilon=number(epsilon) if private else "∞",
        tags=filters.cell(dataset, name, epsilon),
        first=f"{metric_label(order[0])} {_mean(found[order[0]])}",
        statuses=Counter(trial.status for trial in group),
        overspent=max(map(overspent, group)),
        unpaid=inputs_of(group) if private else (),
        marks=[*([f"version {code}, not averaged with others"] if code else []), *marks_of(group, events)],
        facts=[
            ("Results", [Term(" · ".join(_result(found[metric]) for metric in order))]),
            *facts_of(group, events, audits, register),
        ],
        ledger=ledger,
        trials=_columns(listed, order, ledger),
        listed=len(listed),
        total=len(group),
        unfinished=sum(programmes),
        ended=sum(count > 0 for count in programmes),
    )


def _order(metrics: Sequence[str], report: Report) -> list[str]:
    """The metrics that the experiment reports first, then the others by name."""
    drawn = [str(spec["metric"]) for spec in report["figures"] if "metric" in spec]
    first = [metric for metric in dict.fromkeys([*report["metrics"], *drawn]) if metric in metrics]
    return [*first, *(metric for metric in metrics if metric not in first)]


def _metric(row: Mapping[Hashable, Any]) -> str:
    """Such as "mse: test MSE, in scaled target², lower is better"."""
    name, label = str(row["metric"]), metric_label(str(row["metric"]))
    about = [label] if label != name else []
    about += [f"in {powers(str(row['unit']))}"] if row["unit"] else []
    about += [f"{row['direction']} is better"] if row["direction"] not in ("none", "") else []
    return f"{name}: {', '.join(about)}" if about else name


def _result(row: Mapping[Hashable, Any]) -> str:
    """Such as "mse 0.0812 ± 0.0011 (4 of 5)": mean and standard error of the trials with a value."""
    count, lost = int(row["count"]), int(row["nonfinite"]) + int(row["failed"])
    return f"{row['metric']} {_mean(row)} ({f'{count} of {count + lost}' if lost else count})"


def _mean(row: Mapping[Hashable, Any]) -> str:
    return mean_and_error(row["mean"], row["se"]) if row["count"] else "no value"


def _sample(group: Sequence[Trial], each: int) -> list[Trial]:
    """This many trials of a cell, failures first, in the order of their repetitions."""
    chosen = sorted(group, key=lambda one: (one.status == "done", one.key.release.repetition, one.key.fit.draw))[:each]
    return sorted(chosen, key=lambda one: (one.key.release.repetition, one.key.fit.draw, one.id))


def _columns(trials: Sequence[Trial], metrics: Sequence[str], ledger: ShownLedger | None) -> dict[str, list[Any]]:
    """The columns listed for some trials, by name, to the digits shown."""
    values = [{score.name: score.value for score in trial.scores} for trial in trials]
    draws = [trial.key.fit.draw for trial in trials]
    own = list(ledger.own) if ledger is not None else []
    return {
        "repetition": [trial.key.release.repetition for trial in trials],
        **({"draw": draws} if any(draws) else {}),
        "trial": [trial.id for trial in trials],
        "release": [trial.release_id for trial in trials],
        "status": [trial.status for trial in trials],
        "release s": [rounded(trial.runtime.release_seconds, 3) for trial in trials],
        "model s": [rounded(trial.runtime.model_seconds, 3) for trial in trials],
        **{metric: [rounded(one.get(metric), 5) for one in values] for metric in metrics},
        **({"ledger": own} if any(place is not None for place in own) else {}),
    }
