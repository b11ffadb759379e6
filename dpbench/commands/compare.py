"""`dpbench compare`: two sets of results, cell by cell."""

from __future__ import annotations

import argparse
import io
import subprocess
import tarfile
import tempfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pandas as pd

from dpbench.errors import UserError, shown
from dpbench.grid.records import Trial
from dpbench.grid.store import Store
from dpbench.report.comparisons import BROKEN, EQUAL, GONE, MIXED, ROUNDED, Comparison, compare_trials
from dpbench.report.export_file import FOLDER, NAME, exports_in, load_export
from dpbench.report.frames.frame import LEVEL
from dpbench.report.paired_methods import method_name, methods_table
from dpbench.report.tables.text_table import write_text_table
from dpbench.report.text import aligned, number

ROWS = 40  # that are shown unless all are asked for


def compare(arguments: argparse.Namespace) -> int:
    """Print the cells of which the scores differ; 1 if one is beyond the tolerance, if given, or lost its values."""
    if arguments.methods:
        return _methods(arguments)
    if arguments.second is None:
        raise UserError("compare takes two sets of results, A and B; --methods compares the methods of one")
    if arguments.out is not None:
        raise UserError("--out is for --methods")
    tolerance = arguments.tolerance
    if tolerance is not None and not 0 <= tolerance < 1:
        raise UserError(f"--tolerance is a fraction of A's mean, at least 0 and below 1, not {tolerance:g}")
    first, second = _trials_at(arguments.first), _trials_at(arguments.second)
    for given, trials in ((arguments.first, first), (arguments.second, second)):
        print(f"{given}: {len(trials):,} trials, {_commits(trials)}")
    found = compare_trials(first, second, tolerance)
    print("\n" + "\n".join(_summary_lines(found, tolerance)))
    rows = found.cells[~found.cells["verdict"].isin([EQUAL, ROUNDED])]
    kept = rows if arguments.all else rows.head(ROWS)
    if len(kept):
        print("\n" + _table(kept))
    if len(kept) < len(rows):
        print(f"\n{len(rows) - len(kept)} more; --all shows them")
    return int(found.cells["verdict"].isin([BROKEN, GONE]).any())


def _methods(arguments: argparse.Namespace) -> int:
    """Print how the methods of one set compare, and write that where --out says."""
    if arguments.second is not None or arguments.tolerance is not None:
        raise UserError("--methods compares those of one set of results: leave out B and --tolerance")
    table = methods_table(_trials_at(arguments.first))
    shown = table.rows if arguments.all else table.rows[:ROWS]
    print(aligned(zip(table.header, *shown, strict=True)))
    if len(shown) < len(table.rows):
        print(f"\n{len(table.rows) - len(shown)} more; --all shows them")
    print("\n" + "\n".join(table.footnotes))
    if arguments.out is not None:
        for path in write_text_table(table, arguments.out, "methods", f"The methods of {Path(arguments.first).name}"):
            print(path)
    return 0


def _summary_lines(found: Comparison, tolerance: float | None) -> list[str]:
    cells, counts = found.cells, Counter(found.cells["verdict"])
    lines = [f"{cells['cell'].nunique()} cells are in both, with {len(cells)} scores: {_listed(counts)}"]
    for which, count in (("first", found.first_only), ("second", found.second_only)):
        lines += [f"{count} cells are in the {which} alone"] if count else []
    if any(found.unpaired):
        one, other = (f"{count:,}" for count in found.unpaired)
        what = f"{one} trials of the first and {other} of the second have no partner of their seed and repetition"
        lines.append(f"In the cells of both, {what}")
    differ = cells[~cells["verdict"].isin([EQUAL, ROUNDED, MIXED])]
    beyond = int(((differ["low"] > 0) | (differ["high"] < 0)).sum())
    lines += [
        f"Of {len(differ)} differences {beyond} have a {100 * LEVEL:.0f} % interval without 0; by chance "
        f"{(1 - LEVEL) * len(differ):.0f} would, were there none"
    ] * bool(len(differ))
    return lines if tolerance is None else [*lines, f"The tolerance is {100 * tolerance:g} % of A's mean"]


def _listed(counts: Counter[str]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counts.most_common())


def _table(cells: pd.DataFrame) -> str:
    interval = f"{100 * LEVEL:.0f} % interval"
    header = ["data set", "method", "ε", "metric", "first", "second", "difference", interval, "pairs", ""]
    rows = []
    for row in cells.to_dict("records"):
        means = [f"{row[name]:.4g}" for name in ("first", "second", "difference")]
        method = method_name(row["mechanism"], row["calibration"], row["model"], row["variant"])
        between = f"{row['low']:.2g} to {row['high']:.2g}"
        epsilon, rest = number(row["epsilon"]), [between, str(row["pairs"]), row["verdict"]]
        rows.append([row["dataset"], method, epsilon, row["metric"], *means, *rest])
    return aligned(zip(header, *rows, strict=True))


def _commits(trials: Iterable[Trial]) -> str:
    commits = (trial.provenance.get("commit") for trial in trials)
    counts = Counter(str(commit)[:12] if commit else "an installation without a commit" for commit in commits)
    return "made by " + ", ".join(f"{commit} ({count:,})" for commit, count in counts.most_common())


def _trials_at(given: str) -> list[Trial]:
    """The trials of a folder (of an experiment, of a paper, or a whole results folder), or of a commit of this
    repository, COMMIT or COMMIT:FOLDER.
    """
    if (folder := Path(given)).is_dir():
        return _checked(_below(folder), given)
    commit, _, inside = given.partition(":")
    done = subprocess.run(["git", "archive", "--", commit, inside or "results"], capture_output=True, check=False)
    if done.returncode:
        raise UserError(
            f"{shown(given)} is neither a folder nor, in this repository, a commit with results (COMMIT or "
            f"COMMIT:FOLDER): {done.stderr.decode().strip()[:200]}"
        )
    with tempfile.TemporaryDirectory() as aside, tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        safely: Any = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}  # Python 3.11.4
        archive.extractall(aside, [one for one in archive if one.isfile() or one.isdir()], **safely)
        return _checked(_below(Path(aside) / (inside or "results")), given)


def _below(folder: Path) -> list[Trial]:
    """The trials of the exports and stores in a folder and in its folders; what is stored stands before an export."""
    folders = [folder, *sorted(path for path in folder.iterdir() if path.is_dir())]
    stores = [Store(path.parent, path.name) for path in folders if (path / "trials").is_dir()]
    found = {trial.id: trial for store in stores for trial in store.all_trials()}
    for path in (path for folder in folders for path in exports_in(folder)):
        for cell in load_export(path):
            for trial in cell.trials:
                found.setdefault(trial.id, trial)
    return list(found.values())


def _checked(trials: list[Trial], given: str) -> list[Trial]:
    if not trials:
        raise UserError(f"{shown(given)} holds no trials: no {NAME}, no {FOLDER}, and no experiment's folder of trials")
    return trials
