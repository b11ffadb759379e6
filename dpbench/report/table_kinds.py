"""Writing one table that a report asks for among its figures; the kinds are configs of the group `table`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from dpbench.config.reports import kind_of
from dpbench.errors import ContractError
from dpbench.report.frame import Trial, trial_frame
from dpbench.report.metric_by_setting import settings_of
from dpbench.report.series import shown
from dpbench.report.text_table import TextTable, write_text_table


def is_table(spec: Mapping[str, Any]) -> bool:
    """Whether the spec asks for a table."""
    return kind_of(spec).group == "table"


def make_table(
    frame: pd.DataFrame, labels: Mapping[str, str], spec: Mapping[str, Any], published: Mapping[str, Any]
) -> TextTable:
    """The table of `spec`, by its kind. Raises `ContractError` for a kind that returns no `TextTable`."""
    kind = kind_of(spec)
    table = kind.function(frame, labels, spec, published)
    if not isinstance(table, TextTable):
        raise ContractError(f"table {kind.name} must return a TextTable, not {type(table).__name__}")
    return table


def write_table(
    trials: Iterable[Trial],
    labels: Mapping[str, str],
    spec: Mapping[str, Any],
    published: Mapping[str, Any],
    folder: Path,
    notes: Iterable[str] = (),
) -> list[Path]:
    """Write the table of `spec`, beside what the paper has of it, into `folder`; nothing without trials of it."""
    frame, absent = shown(trial_frame(trials, [*settings_of(spec), *kind_of(spec).reads]), labels, spec.get("show"))
    if frame.empty:
        return []
    table = make_table(frame, labels, spec, published)
    missing = f"Methods not run: {'; '.join(absent)}" if absent else ""
    told = [str(spec.get("caption") or ""), *table.told, *notes, missing]
    return write_text_table(table._replace(told=told), folder, str(spec["name"]), str(spec["title"]))
