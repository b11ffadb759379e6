"""`dpbench export`: trials as one parquet file with a manifest, and the synthetic rows of a release as a CSV."""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from dpbench.commands.recorded import recall
from dpbench.commands.report import notes_of, papers_of
from dpbench.commands.stored import stored_trials
from dpbench.config import compose, paper_of
from dpbench.data.table import Table
from dpbench.errors import UserError, shown
from dpbench.files import write_file
from dpbench.grid.records import Trial, without_repetition
from dpbench.grid.releases import stored_release
from dpbench.grid.seeds import canonical
from dpbench.grid.store import Store
from dpbench.releases import SyntheticRows
from dpbench.report.export import NAME, Exported, load_export, publishable
from dpbench.report.frames.frame import joined_frame, rows_of

FOLDER = "export"  # in the results folder
COLUMNS = {
    "trial": "identity of the trial: one fit of a model to a release",
    "release": "identity of the release",
    "experiment": "name of the experiment that it was run for",
    "dataset": "name of the data set",
    "mechanism": "name of the mechanism",
    "calibration": "noise by the paper's constants (paper), the least that is private (tight), or by the authors' code",
    "variant": "settings by which rows with the same names differ",
    "model": "name of the model",
    "epsilon": "asked for; inf: the non-private reference",
    "delta": "asked for",
    "relation": "of neighbouring tables: add_remove or replace",
    "spent_epsilon": "at delta, by the ledger",
    "nonprivate_inputs": "what was taken from the private rows without paying for it, a list of texts",
    "train_rows": "asked for; all that there are if there are fewer",
    "test_rows": "asked for: a number, or a part of all rows and the most that it comes to",
    "seed": "of the splits and, on public data, of the noise",
    "repetition": "repetitions have splits of their own; methods are compared on the same ones",
    "status": "done, or why there is no value",
    "metric": "name of the score",
    "value": "of the score; missing if there is none",
    "unit": "of the value",
    "direction": "which values are better: lower, higher or none",
    "detail": "what the score has beside its value, as JSON; empty if nothing, and for private rows",
    "release_seconds": "of making the release",
    "model_seconds": "of fitting the model",
    "commit": "of the code that made the trial",
    "settings": "all settings of the trial but its repetition, as JSON",
}


def export(arguments: argparse.Namespace) -> int:
    """Write the trials of an experiment or a paper, a row for each score, or the rows of a release with its ledger."""
    if arguments.release:
        return _export_release(arguments)
    recall(arguments)
    papers, rest = papers_of(arguments.overrides)
    if len(papers) > 1:
        raise UserError("give one paper; each is exported into a file of its own")
    experiment = compose(rest, arguments.config_dir)
    if papers:
        name = paper_of(papers[0], arguments.config_dir).name
        cells = load_export(experiment.results / name / NAME)
        trials: Sequence[Trial] = Exported([(cell, range(cell.count)) for cell in cells])
        notes = list[str]()
    else:
        name, found = experiment.name, stored_trials(experiment, arguments.config_dir, other_code=arguments.other_code)
        trials, notes = found.trials, notes_of(experiment, found)
    if not trials:
        raise UserError(f"{experiment.results} has no trials of {name}; run it first, with the same settings")
    for path in write_parquet(trials, experiment.results / FOLDER, name, notes):
        print(path)
    return 0


def write_parquet(trials: Sequence[Trial], folder: Path, name: str, notes: Sequence[str] = ()) -> list[Path]:
    """Write `name`.parquet, a row for each score, and `name`.json, which says what it is; the paths.

    The trials are written as they are `publishable`.
    """
    rows = rows_of([publishable(trial) for trial in trials])
    settings = pd.Series([canonical(without_repetition(key.to_dict())[0]) for key in rows.keys], dtype="str")
    seeds = pd.Series([key.release.seed for key in rows.keys])
    place = rows.scores.drop_duplicates("trial").set_index("trial")["setting"]
    commits = {trial.id: str(trial.provenance.get("commit")) for trial in rows.trials}
    frame = joined_frame([rows])
    setting = frame["trial"].map(place).to_numpy()
    details = [json.dumps(detail) if detail is not None else "" for detail in frame["detail"]]
    frame = frame.assign(
        seed=seeds.take(setting).to_numpy(),
        commit=frame["trial"].map(commits),
        settings=settings.astype("category").take(setting).array,
        detail=details,
    )
    buffer = io.BytesIO()
    frame[list(COLUMNS)].to_parquet(buffer, index=False, compression="zstd")
    about = {
        "parquet": f"{name}.parquet",
        "sha256": hashlib.sha256(buffer.getvalue()).hexdigest(),
        "rows": len(frame),
        "trials": len(rows.trials),
        "trials by commit": dict(Counter(frame.drop_duplicates("trial")["commit"])),
        "trials by status": dict(Counter(frame.drop_duplicates("trial")["status"])),
        "notes": list(notes),
        "columns": COLUMNS,
    }
    return [
        write_file(folder / f"{name}.parquet", buffer.getvalue()),
        write_file(folder / f"{name}.json", json.dumps(about, indent=2, ensure_ascii=False) + "\n"),
    ]


def _export_release(arguments: argparse.Namespace) -> int:
    """The rows of a release as a CSV, numbers in their units and levels by name, and all else as JSON beside it."""
    root, identity = compose(arguments.overrides, arguments.config_dir).results, str(arguments.release)
    store = Store(root, "")
    store.releases.scan()
    stored = stored_release(store, identity)
    if stored is None:
        raise UserError(
            f"{root / 'releases'} holds no release {shown(identity)}; the column `release` of an exported table and "
            "the trials name them"
        )
    release, record = stored.release, stored.record
    if math.isinf(release.budget.epsilon):
        raise UserError(f"{identity} is a non-private reference: its rows are the private ones")
    rows = release.get(SyntheticRows)
    if rows is None:
        raise UserError(f"{identity} has no synthetic rows; it offers {', '.join(release.offers)}")
    about = {
        "release": identity,
        "rows": len(rows.table),
        "budget": vars(release.budget),
        "spent": record["spent"],
        "ledger": release.ledger.to_list(),
        "nonprivate inputs": list(release.nonprivate_inputs),
        "settings": record["key"],
        "provenance": record["provenance"],
    }
    paths = [
        write_file(root / FOLDER / f"{identity}.csv", decoded(rows.table).to_csv(index=False, lineterminator="\n")),
        write_file(root / FOLDER / f"{identity}.json", json.dumps(about, indent=2, ensure_ascii=False) + "\n"),
    ]
    for path in paths:
        print(path)
    return 0


def decoded(table: Table) -> pd.DataFrame:
    """The rows of a table: levels by name, and for a number that is not known the value that its bin stands for."""
    columns: dict[str, Any] = {}
    for attribute in table.domain.attributes:
        codes, known = table.column(attribute.name), table.numbers.get(attribute.name)
        names = pd.Series(attribute.values if attribute.numeric else attribute.levels)
        columns[attribute.name] = names.iloc[codes].to_numpy() if known is None else known
    return pd.DataFrame(columns)
