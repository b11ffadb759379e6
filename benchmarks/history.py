"""What `make bench` measured, run after run: a line of JSON each in history.jsonl, with the seconds of a fixed
reference workload on the same machine at the same time, so that machines and hours can be compared.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TypedDict

import numpy as np

from dpbench.grid.provenance import provenance

FILE = Path(__file__).with_name("history.jsonl")
WORSE = 1.5  # times the best ratio before it: to be marked
TIMES = 3


class Run(TypedDict):
    """One run: `reference` in CPU seconds, and the measured values by what they are, each with its unit."""

    date: str
    commit: str | None
    cpu: str
    reference: float
    values: dict[str, tuple[float, str]]


def reference() -> float:
    """CPU seconds of plain Python, sorting and products of matrices on one core, the best of three."""

    def once() -> float:
        start, rng = time.process_time(), np.random.default_rng(0)
        sum(number * number for number in range(2_000_000))
        values = rng.random(1_000_000)
        values.sort()
        square = rng.random((300, 300))
        for _ in range(20):
            square = square @ square / np.abs(square).sum()
        return time.process_time() - start

    return min(once() for _ in range(TIMES))


def append(values: Mapping[str, tuple[float, str]], reference: float, file: Path = FILE) -> None:
    """Add a run."""
    made = provenance()
    run = Run(
        date=datetime.now(UTC).date().isoformat(),
        commit=made["commit"],
        cpu=made["cpu"],
        reference=round(reference, 4),
        values={what: (round(value, 4), unit) for what, (value, unit) in values.items()},
    )
    with file.open("a") as lines:
        lines.write(json.dumps(run, ensure_ascii=False) + "\n")


def read(file: Path = FILE) -> list[Run]:
    """All runs, the oldest first."""
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def ratio(run: Run, what: str) -> float:
    """A value in units of the reference, where it is seconds; else itself."""
    value, unit = run["values"][what]
    return value / run["reference"] if unit in ("s", "ms") else value


def worse(runs: Sequence[Run]) -> dict[str, float]:
    """What the last run measured as `WORSE` times the least of the runs before it, or more: how many times that is.

    Speed-ups (unit "times"), of which more is better, are inverted.
    """
    found = {}
    *before, last = runs
    for what, (_, unit) in last["values"].items():
        known = [ratio(run, what) for run in before if what in run["values"]]
        if known:
            times = max(known) / ratio(last, what) if unit == "times" else ratio(last, what) / min(known)
            found |= {what: times} if times >= WORSE else {}
    return found
