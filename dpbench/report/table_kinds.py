"""The kinds of table that a report can ask for among its figures; each has a module of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from dpbench.report.bins_table import BINS, bins_table
from dpbench.report.comparison import comparison_table
from dpbench.report.coverage_table import LEVEL, coverage_table
from dpbench.report.frame import Trial, trial_frame
from dpbench.report.metric_by_setting import settings_of
from dpbench.report.series import shown
from dpbench.report.text_table import TextTable, write_text_table

KINDS: dict[str, Callable[..., TextTable]] = {
    "comparison_table": comparison_table,
    "coverage_table": coverage_table,
    "bins_table": bins_table,
}
READ = {"coverage_table": [LEVEL], "bins_table": [BINS]}  # what a kind reads of a trial besides the spec's settings


def write_table(
    trials: Iterable[Trial],
    labels: Mapping[str, str],
    spec: Mapping[str, Any],
    printed: Mapping[str, Any],
    folder: Path,
    notes: Iterable[str] = (),
) -> list[Path]:
    """Write the table of `spec`, beside what the paper prints of it, into `folder`; nothing without trials of it."""
    by = [*settings_of(spec), *READ.get(spec["kind"], [])]
    frame, absent = shown(trial_frame(trials, by), labels, spec.get("show"))
    if frame.empty:
        return []
    table = KINDS[spec["kind"]](frame, labels, spec, printed)
    missing = f"Methods not run: {'; '.join(absent)}" if absent else ""
    told = [str(spec.get("caption", "")), *table.told, *notes, missing]
    return write_text_table(table._replace(told=told), folder, str(spec["name"]), str(spec["title"]))
