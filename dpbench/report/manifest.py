"""The manifest of a paper's results: where the trials of each experiment come from, and how to make them again."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dpbench.config import Paper
from dpbench.files import write_file
from dpbench.report.claims.published import EQUAL, protocol_table
from dpbench.report.frames.results import Results


def write_manifest(paper: Paper, results: Sequence[Results], folder: Path) -> Path:
    """Write `folder`/manifest.json: of each experiment with trials its command, the number of trials, of releases and
    trials by the commit that made them, the notes on them, and the settings that differ from the published ones.
    """
    found = {one.experiment.name: _entry(paper, one) for one in results if one.trials}
    told = {"draw": f"dpbench figures paper={paper.name}", "experiments": found}
    return write_file(folder / "manifest.json", json.dumps(told, indent=2, ensure_ascii=False) + "\n")


def _entry(paper: Paper, one: Results) -> dict[str, Any]:
    protocol = protocol_table(paper.published.get("protocol") or [], [one.experiment])
    differs = protocol[protocol["verdict"] != EQUAL]
    releases = {trial.release_id: trial.release_provenance or trial.provenance for trial in one.trials}
    return {
        "run": f"dpbench run experiment={one.experiment.name}",
        "trials": len(one.trials),
        "releases by commit": _commits(list(releases.values())),
        "trials by commit": _commits([trial.provenance for trial in one.trials]),
        "notes": list(one.notes),
        "differs": [f"{row.fact}: {row.ours}, paper {row.paper}" for row in differs.itertuples()],
    }


def _commits(records: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    return dict(sorted(Counter(str(record["commit"]) for record in records).items()))
