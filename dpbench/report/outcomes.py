"""How the methods of an arena did, a row for each table, method, budget and metric: what `dpbench recommend` reads.

Those of the arenas in the repository's results are in conf/outcomes, so that an installed package has them too;
scripts/write_outcomes.py writes them.
"""

from __future__ import annotations

import hashlib
import io
import json
import lzma
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from dpbench.config import Experiment
from dpbench.files import write_file
from dpbench.report.export_file import FOLDER, NAME, SUFFIX, exports_in
from dpbench.report.frames.frame import SERIES, has_value
from dpbench.report.text import csv_text
from dpbench.resources import conf_dir

CELL = ["dataset", *SERIES, "epsilon", "metric", "direction"]
ENDING = ".csv.xz"
NUMBERS = ["runs", "valued", "mean", "sd", "least", "most", "seconds", "mb"]


@dataclass(frozen=True)
class Outcomes:
    """Of one arena: `cells`, with the columns `CELL` and `NUMBERS`, and how to read them.

    Of the `runs` of a cell the `valued` ones have a value: their mean, standard deviation, least and most; the medians
    of `seconds` and of `mb`, the peak memory, are of all runs.
    """

    arena: str
    cells: pd.DataFrame
    notes: Sequence[str]


def method_cells(frame: pd.DataFrame, metrics: Sequence[str]) -> pd.DataFrame:
    """The cells of some trials, a row each of `frame` for these metrics."""
    rows = frame[frame["metric"].isin(list(metrics))]
    seconds = rows["release_seconds"].fillna(0) + rows["model_seconds"].fillna(0)
    rows = rows.assign(seconds=seconds, value=rows["value"].where(has_value(rows)))
    value = ("value", "count"), ("value", "mean"), ("value", "std"), ("value", "min"), ("value", "max")
    columns = dict(zip(NUMBERS, [("value", "size"), *value, ("seconds", "median"), ("peak_mb", "median")], strict=True))
    return rows.groupby(CELL, observed=True, dropna=False).agg(**columns).reset_index()


def shipped(arena: Experiment, paper: str) -> Outcomes | None:
    """What ships of an arena, if its results hold nothing else: no trials, and no other export of them than the one
    that it was made of, in the folder of `paper`.
    """
    file, own = conf_dir() / "outcomes" / f"{arena.name}{ENDING}", arena.results / arena.name
    if not file.is_file() or (own / "trials").is_dir() or exports_in(own) or (arena.results / paper / NAME).exists():
        return None
    about, _, rows = lzma.decompress(file.read_bytes()).decode().partition("\n")
    made = json.loads(about.removeprefix("# "))
    export = arena.results / paper / FOLDER / f"{arena.name}{SUFFIX}"
    if export.exists() and hashlib.sha256(export.read_bytes()).hexdigest() != made["export_sha256"]:
        return None
    texts = {name: "str" for name in CELL if name != "epsilon"}
    cells = pd.read_csv(io.StringIO(rows), dtype=texts, keep_default_na=False, na_values=dict.fromkeys(NUMBERS, ""))
    return Outcomes(arena.name, cells, made["notes"])


def write_shipped(found: Outcomes, export: Path, folder: Path) -> Path:
    """Write the outcomes that were made of an export; the path."""
    about = {"export_sha256": hashlib.sha256(export.read_bytes()).hexdigest(), "notes": list(found.notes)}
    content = f"# {json.dumps(about, ensure_ascii=False)}\n{csv_text(found.cells)}"
    return write_file(folder / f"{found.arena}{ENDING}", lzma.compress(content.encode(), preset=9))
