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

from dpbench.commands.report import notes_of, papers_of
from dpbench.commands.run_settings import check_asked, guard, recall
from dpbench.commands.stored_trials import stored_trials
from dpbench.config import compose, paper_of
from dpbench.data.coding import decoded
from dpbench.errors import UserError, shown
from dpbench.files import write_file
from dpbench.grid.records import ReleaseKey, Trial, spent_from_dict
from dpbench.grid.releases import stored_release
from dpbench.grid.spending import holds
from dpbench.grid.store import Store
from dpbench.releases import SyntheticRows
from dpbench.report.export_file import Exported, exports_in, load_export, publishable
from dpbench.report.frames.frame import TIDY_COLUMNS, tidy_frame
from dpbench.report.text import plain_cells

FOLDER = "export"  # in the results folder


def export(arguments: argparse.Namespace) -> int:
    """Write the trials of an experiment or a paper, a row for each score, or the rows of a release with its ledger."""
    if arguments.release:
        return _export_release(arguments)
    if not any(item.startswith("name=") for item in arguments.overrides):
        check_asked(arguments, "export")
    recall(arguments)
    papers, rest = papers_of(arguments.overrides)
    if len(papers) > 1:
        raise UserError("give one paper; each is exported into a file of its own")
    experiment = compose(rest, arguments.config_dir)
    guard(grid.dataset for grid in experiment.grids)
    if papers:
        name = paper_of(papers[0], arguments.config_dir).name
        cells = [cell for path in exports_in(experiment.results / name) for cell in load_export(path)]
        trials: Sequence[Trial] = Exported([(cell, range(cell.count)) for cell in cells])
        notes = list[str]()
    else:
        name, found = experiment.name, stored_trials(experiment, arguments.config_dir, other_code=arguments.other_code)
        trials, notes = found.trials, [*experiment.follows, *notes_of(experiment, found)]
    if not trials:
        raise UserError(f"{experiment.results} has no trials of {name}; run it first, with the same settings")
    for path in write_parquet(trials, experiment.results / FOLDER, name, notes):
        print(path)
    return 0


def write_parquet(trials: Sequence[Trial], folder: Path, name: str, notes: Sequence[str] = ()) -> list[Path]:
    """Write `name`.parquet, a row for each score, and `name`.json, which says what it is; the paths.

    The trials are written as they are `publishable`.
    """
    import pyarrow  # noqa: F401  by which pandas writes

    frame = tidy_frame([publishable(trial) for trial in trials])
    buffer = io.BytesIO()
    frame.to_parquet(buffer, index=False, compression="zstd")
    about = {
        "parquet": f"{name}.parquet",
        "sha256": hashlib.sha256(buffer.getvalue()).hexdigest(),
        "rows": len(frame),
        "trials": frame["trial"].nunique(),
        "trials by commit": dict(Counter(frame.drop_duplicates("trial")["commit"])),
        "trials by status": dict(Counter(frame.drop_duplicates("trial")["status"])),
        "notes": list(notes),
        "columns": TIDY_COLUMNS,
    }
    return [
        write_file(folder / f"{name}.parquet", buffer.getvalue()),
        write_file(folder / f"{name}.json", json.dumps(about, indent=2, ensure_ascii=False) + "\n"),
    ]


def _export_release(arguments: argparse.Namespace) -> int:
    """The rows of a release as a CSV, numbers in their units and levels by name, and all else as JSON next to it."""
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
    if not holds(release, spent_from_dict(record["spent"]), ReleaseKey.from_dict(record["key"])):
        raise UserError(
            f"{identity}: its ledger's cost differs from the recorded one, or exceeds its budget: see dpbench verify"
        )
    rows = release.get(SyntheticRows)
    if rows is None:
        raise UserError(f"{identity} has no synthetic rows; it offers {', '.join(release.offers)}")
    about = {
        "release": identity,
        "rows": len(rows.table),
        "budget": vars(release.budget),
        "spent": record.get("spent"),
        "ledger": release.ledger.to_list(),
        "nonprivate inputs": list(release.nonprivate_inputs),
        "settings": record["key"],
        "provenance": record.get("provenance"),
    }
    paths = [
        write_file(
            root / FOLDER / f"{identity}.csv", plain_cells(decoded(rows.table)).to_csv(index=False, lineterminator="\n")
        ),
        write_file(root / FOLDER / f"{identity}.json", json.dumps(about, indent=2, ensure_ascii=False) + "\n"),
    ]
    for path in paths:
        print(path)
    return 0
