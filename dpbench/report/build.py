"""The whole report of an experiment, drawn from its stored trials: figures, tables, export of the trials."""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from dpbench.errors import UserError
from dpbench.report.figures import draw_figure
from dpbench.report.files import write_file
from dpbench.report.frame import Trial, canonical_json, trial_frame, unique_trials
from dpbench.report.metric_by_setting import settings_of
from dpbench.report.runs import write_runs
from dpbench.report.style import save_figure
from dpbench.report.table_kinds import is_table, write_table
from dpbench.report.tables import write_tables

EXPORTS = ("trials.jsonl", "trials.jsonl.xz")  # the second where there are more than `MOST_PLAIN` trials
MOST_PLAIN = 2000


def build_report(trials: Iterable[Trial], report: Mapping[str, Any], folder: Path, notes: str = "") -> list[Path]:
    """Write `folder`/figures, `folder`/tables and the export, one of `EXPORTS` in `folder`; the paths written.

    `report` has `labels` ("mechanism/model" -> label), `metrics` (those with a table; all there are, if
    left out) and `figures` (specs of `draw_figure`, or of `write_table`: then there is no table of `metrics`).
    A figure that shows nothing is not written. The same trials give the same bytes, in whatever order they come.

    Raises `UserError` if there are no trials or the folder cannot be written to.
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
    specs = list(report.get("figures") or [])
    for spec in specs:
        if is_table(spec):
            paths += write_table(kept, labels, spec, {}, folder / "tables", [notes])
            continue
        figure, drawn = draw_figure(trial_frame(kept, settings_of(spec)), labels, spec, notes)
        if len(drawn):  # an empty figure must not take the place of one that shows something
            paths += save_figure(figure, drawn, folder / "figures", str(spec["name"]))
    if not any(map(is_table, specs)):
        paths += write_tables(frame, labels, metrics, folder / "tables", name, notes)
    paths.append(write_runs(kept, folder / "tables", name))
    return [*paths, write_export(kept, folder)]


def write_export(trials: Iterable[Trial], folder: Path) -> Path:
    """One line of compact JSON a trial, sorted by id, keys sorted; the path of the file.

    Every stored field is kept, but of an error on private rows its type alone: its text may hold values of theirs.
    """
    lines = [canonical_json(_publishable(trial)) + "\n" for trial in unique_trials(trials)]
    text = "".join(lines).encode()
    plain, packed = (folder / name for name in EXPORTS)
    large = len(lines) > MOST_PLAIN
    path = write_file(packed, lzma.compress(text)) if large else write_file(plain, text)
    (plain if large else packed).unlink(missing_ok=True)
    return path


def _publishable(trial: Trial) -> Trial:
    kept = {name: value for name, value in trial.items() if name != "checksum"}
    if trial.get("public", True) or not trial.get("error"):
        return kept
    return {**kept, "error": {"type": trial["error"]["type"], "message": "(left out: the rows are private)"}}


def export_in(folder: Path) -> Path | None:
    """The export in a folder, if there is one."""
    return next((folder / name for name in EXPORTS if (folder / name).exists()), None)


def load_export(path: Path) -> list[dict[str, Any]]:
    """The trials of an export. Raises `UserError` if there is no such file, or it is damaged."""
    try:
        content = path.read_bytes()
        lines = (lzma.decompress(content) if path.suffix == ".xz" else content).decode().split("\n")
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror or error}; `dpbench figures` writes it") from error
    except (lzma.LZMAError, UnicodeDecodeError) as error:
        raise UserError(f"{path} is damaged ({error}); write it again with `dpbench figures`") from error
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
