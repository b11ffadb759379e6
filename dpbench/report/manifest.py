"""The manifest of a paper's results: where the trials of each experiment come from, and how to reproduce them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from dpbench.config import Paper
from dpbench.files import Json, write_file
from dpbench.grid.records import Trial
from dpbench.report.claims.published import EQUAL, protocol_table
from dpbench.report.export_file import Exported
from dpbench.report.frames.results import Results
from dpbench.report.versions import several_versions


def write_manifest(paper: Paper, results: Sequence[Results], folder: Path) -> Path:
    """Write `folder`/manifest.json: for each experiment with trials its command, the numbers of trials, and of releases
    and trials by commit, the notes on them, and the settings that differ from the published ones.
    """
    found = {one.experiment.name: _entry(paper, one) for one in results if one.trials}
    manifest = {"draw": f"dpbench figures paper={paper.name}", "experiments": found}
    return write_file(folder / "manifest.json", json.dumps(manifest, indent=2, ensure_ascii=False) + "\n")


def _entry(paper: Paper, one: Results) -> Json:
    protocol = protocol_table(paper.published.get("protocol") or [], [one.experiment])
    differs = protocol[protocol["verdict"] != EQUAL]
    origins = list(_origins(one.trials))
    return {
        "run": f"dpbench run experiment={one.experiment.name}",
        "trials": len(one.trials),
        "releases by commit": _counted({release: commit for release, commit, _ in origins}.values()),
        "trials by commit": _counted(commit for *_, commit in origins),
        "notes": [*one.notes, *several_versions([one], one.experiment.report["labels"], {})],
        "differs": [f"{row.fact}: {row.ours}, paper {row.paper}" for row in differs.itertuples()],
    }


def _origins(trials: Sequence[Trial]) -> Iterator[tuple[str, str, str]]:
    """The release of each trial, and the commits of both; trials of an export are not built for it."""
    if isinstance(trials, Exported):
        for cell, places in trials.parts:
            made, releases = cell.shared["provenance"], cell.release_ids
            commit, of_release = str(made["commit"]), str((cell.shared["release_provenance"] or made)["commit"])
            yield from ((releases[place], of_release, commit) for place in places)
        return
    for trial in trials:
        of_release = str((trial.release_provenance or trial.provenance)["commit"])
        yield trial.release_id, of_release, str(trial.provenance["commit"])


def _counted(commits: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(commits).items()))
