"""`dpbench verify`: everything that is stored is checked again: whole, what it says it is, paid for, of known code."""

from __future__ import annotations

import argparse
import subprocess
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from dpbench.config import compose
from dpbench.errors import UserError
from dpbench.grid.records import ReleaseKey, Trial, spent_from_dict
from dpbench.grid.releases import stored_release
from dpbench.grid.spending import OverspentError, check_cost, holds
from dpbench.grid.store import Store
from dpbench.report.export import NAME, load_export
from dpbench.resources import PACKAGE

SHOWN = 5  # examples of one problem


def verify(arguments: argparse.Namespace) -> int:
    """Check a folder, of all results or of one paper or run, a line for each export and each experiment; 1 if something
    is wrong with any.

    Of a trial: its checksum, that it and its release are what their identities say, and that what was spent is within
    what was asked for, or by published constants. Of a release also its arrays, and its cost by its ledger, computed
    again. A commit that this checkout does not have is named, and is no fault.
    """
    folders = [Path(item) for item in arguments.overrides if "=" not in item]
    if len(folders) > 1 or (folders and len(arguments.overrides) > 1):
        raise UserError("give one folder, or settings, such as results=FOLDER")
    root = folders[0] if folders else compose(arguments.overrides, arguments.config_dir).results
    exports = sorted([*root.glob(NAME), *root.glob(f"*/{NAME}")])
    found = (
        path.parent.resolve() for one in ("trials", "*/trials") for path in sorted(root.glob(one)) if path.is_dir()
    )
    stores = [Store(folder.parent, folder.name) for folder in found]
    if not exports and not stores:
        raise UserError(f"{root} holds no results: no experiment and no export")
    good = True
    for path in exports:
        trials = [trial for cell in load_export(path) for trial in cell.trials]
        good &= _report(str(path), f"{len(trials)} trials", _of_trials(trials), trials)
    for store in stores:
        stored = set(store.trials.scan())
        trials = list(store.all_trials())
        problems = _of_trials(trials)
        problems["trials are damaged"] = store.trials.damaged()
        problems["trials cannot be read"] = sorted(stored - {trial.id for trial in trials})
        good &= _report(str(store.folder), f"{len(trials)} trials", problems, trials)
    if stores:
        problems, count = _of_releases(stores[0])
        good &= _report(str(stores[0].root / "releases"), f"{count} releases", problems, [])
    return 0 if good else 1


Problems = dict[str, list[str]]  # what is wrong, and the identities of those it is wrong with


def _of_trials(trials: Iterable[Trial]) -> Problems:
    found: Problems = {}
    for trial in trials:
        if (trial.id, trial.release_id) != (trial.key.id, trial.key.release.id):
            found.setdefault("trials are not what their identity says", []).append(trial.id)
        if trial.spent is not None and trial.phase != "budget":  # there it was caught, and its release not stored
            try:
                check_cost(trial.spent, trial.key.release)
            except OverspentError:
                found.setdefault("trials spent more than was asked for", []).append(trial.id)
        elif trial.status == "done":
            found.setdefault("trials do not say what they spent", []).append(trial.id)
    return found


def _of_releases(store: Store) -> tuple[Problems, int]:
    """What is wrong with the releases of a results folder, and how many there are."""
    entries = store.releases.scan()
    found: Problems = {"releases are damaged": store.releases.damaged()}
    for identity in sorted(entries):
        stored = stored_release(store, identity)
        if stored is None:
            found["releases are damaged"].append(identity)
            continue
        key = ReleaseKey.from_dict(stored.record["key"])
        if key.id != identity:
            found.setdefault("releases are not what their identity says", []).append(identity)
        if not holds(stored.release, spent_from_dict(stored.record["spent"]), key):
            found.setdefault("releases have a ledger that costs something else", []).append(identity)
    return found, len(entries)


def _report(where: str, what: str, problems: Problems, trials: Iterable[Trial]) -> bool:
    """Print what was found; whether nothing is wrong."""
    wrong = {text: names for text, names in problems.items() if names}
    print(f"{where}: {what}, {'all well' if not wrong else 'something is wrong'}")
    for text, names in wrong.items():
        shown = ", ".join(names[:SHOWN]) + (", ..." if len(names) > SHOWN else "")
        print(f"  {len(names)} {text}: {shown}")
    commits = Counter(str(trial.provenance.get("commit")) for trial in trials)
    for commit, count in commits.items():
        if not _known(commit):
            print(f"  {count} trials name the commit {commit[:12]}, which is not in this checkout")
    if dirty := sum(bool(trial.provenance.get("dirty")) for trial in trials):
        print(f"  {dirty} trials were made by code that differed from its commit")
    return not wrong


def _known(commit: str) -> bool:
    """Whether HEAD descends from the commit; true outside a checkout, where nothing can be said."""
    root = PACKAGE.parent
    if not (root / ".git").exists():
        return True
    line = ["git", "-C", str(root), "merge-base", "--is-ancestor", commit, "HEAD"]
    return subprocess.run(line, capture_output=True, check=False).returncode == 0
