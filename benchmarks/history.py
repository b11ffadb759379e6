"""What `make bench` measured, run after run: a line of JSON each in history.jsonl, with the seconds of a fixed
reference workload on the same machine at the same time. The site draws it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from dpbench.grid.provenance import provenance
from dpbench.report.site.speed import FILE, Run

HISTORY = Path(__file__).parents[1] / FILE
TIMES = 3


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


def append(values: Mapping[str, tuple[float, str]], reference: float, file: Path = HISTORY) -> None:
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
