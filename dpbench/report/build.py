"""The whole report of an experiment, drawn from its stored trials: figures, tables, export of the trials."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from dpbench.errors import UserError
from dpbench.report.figures import draw_figure
from dpbench.report.files import write_file
from dpbench.report.frame import Trial, canonical_json, trial_frame, unique_trials
from dpbench.report.runs import write_runs
from dpbench.report.style import save_figure
from dpbench.report.tables import write_tables

EXPORT = "trials.jsonl"


def build_report(trials: Iterable[Trial], report: Mapping[str, Any], folder: Path, notes: str = "") -> list[Path]:
    """Write `folder`/figures, `folder`/tables and the export `folder`/trials.jsonl; the paths written.

    `report` has `labels` ("mechanism/model" -> label), `metrics` (those with a table; all there are, if
    left out) and `figures` (specs of `draw_figure`). The same trials give the same bytes, in whatever
    order they come. Raises `UserError` if there are no trials or the folder cannot be written to.
    """
    kept = unique_trials(trials)
    if not kept:
        raise UserError(
            f"no stored trials to draw {folder} from; run the experiment first (`dpbench run experiment=...`)"
        )
    frame = trial_frame(kept)
    labels = {str(name): str(label) for name, label in (report.get("labels") or {}).items()}
    metrics = list(report.get("metrics") or sorted(frame["metric"].unique()))
    name = "+".join(sorted({str(trial["experiment"]) for trial in kept}))
    paths = []
    for spec in report.get("figures") or []:
        figure, drawn = draw_figure(frame, labels, spec, notes)
        paths += save_figure(figure, drawn, folder / "figures", str(spec["name"]))
    paths += write_tables(frame, labels, metrics, folder / "tables", name, notes)
    paths.append(write_runs(kept, folder / "tables", name))
    return [*paths, write_export(kept, folder / EXPORT)]


def write_export(trials: Iterable[Trial], path: Path) -> Path:
    """One line of compact JSON a trial, sorted by id, keys sorted, every stored field kept."""
    return write_file(path, "".join(canonical_json(trial) + "\n" for trial in unique_trials(trials)))


def load_export(path: Path) -> list[dict[str, Any]]:
    """The trials of an export. Raises `UserError` if there is no such file or a line of it is not JSON."""
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror or error}; `dpbench figures` writes it") from error
    trials = []
    for place, line in enumerate(lines, start=1):
        if not line:
            continue
        try:
            trials.append(json.loads(line))
        except json.JSONDecodeError as error:
            raise UserError(
                f"{path}, line {place} is not JSON ({error.msg}); write it again with `dpbench figures`"
            ) from error
    return trials
