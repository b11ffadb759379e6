"""The page on the speed of dpbench itself, from the history that `make bench` keeps.

Seconds are compared in units of a reference workload that was run on the same machine at the same time, so that
machines and hours can be compared.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, TypedDict

from dpbench.report.site.rendering import HEIGHT, MARK, WIDTH, Site

FILE = "benchmarks/history.jsonl"
WORSE = 1.5  # times the best run before it: to be marked


class Run(TypedDict):
    """One run: `reference` in CPU seconds, and the measured values by what they are, each with its unit."""

    date: str
    commit: str | None
    cpu: str
    reference: float
    values: dict[str, tuple[float, str]]


class Row(NamedTuple):
    """A number of the last run: its value and unit, how many times the best run before it that is, and a picture."""

    what: str
    value: float
    unit: str
    times: float | None
    picture: str


def read_runs(file: Path) -> list[Run]:
    """All runs, the oldest first."""
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def rows_of(runs: Sequence[Run]) -> list[Row]:
    """The numbers of the last run, compared with those before it.

    Of speed-ups (unit "times") more is better: they are inverted before they are compared.
    """
    found = []
    for what, (value, unit) in runs[-1]["values"].items():
        costs = [_cost(run, what) for run in runs if what in run["values"]]
        times = costs[-1] / min(costs[:-1]) if costs[1:] else None
        found.append(Row(what, value, unit, times, _line(costs)))
    return found


def _cost(run: Run, what: str) -> float:
    """The less the better: seconds in units of the reference."""
    value, unit = run["values"][what]
    return value / run["reference"] if unit in ("s", "ms") else 1 / value if unit == "times" else value


def _line(costs: Sequence[float]) -> str:
    """The values as a small picture, from 0 at the bottom."""
    step, most = (WIDTH - 2 * MARK) / max(len(costs) - 1, 1), max(costs) or 1.0
    points = [
        (MARK + step * place, HEIGHT - MARK - (HEIGHT - 2 * MARK) * cost / most) for place, cost in enumerate(costs)
    ]
    path = " ".join(f"{x:.0f},{y:.1f}" for x, y in points)
    x, y = points[-1]
    return (
        '<svg class="bar" aria-hidden="true">'
        f'<polyline points="{path}" fill="none" stroke="currentColor"/><circle cx="{x:.0f}" cy="{y:.1f}" r="2"/></svg>'
    )


def write_speed(site: Site, root: Path) -> None:
    """Write the page of the history in the checkout `root`."""
    runs = read_runs(root / FILE)
    site.render("speed.md", "speed.md.j2", runs=runs, rows=rows_of(runs) if runs else [], worse=WORSE)
