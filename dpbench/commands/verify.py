"""`dpbench verify`: checks the checksums, identities, privacy cost and code versions of what is stored.

With `--recompute`, stored trials are run again, and their scores compared.
"""

from __future__ import annotations

import argparse
import math
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from random import SystemRandom

from dpbench.commands.run_settings import guard
from dpbench.config import compose
from dpbench.errors import MALFORMED, UserError
from dpbench.grid.plan import read_plan
from dpbench.grid.records import ReleaseKey, Trial, spent_from_dict
from dpbench.grid.releases import stored_release
from dpbench.grid.runner import Options, default_jobs
from dpbench.grid.runner import run as run_plan
from dpbench.grid.spending import OverspentError, check_cost, holds
from dpbench.grid.store import Store
from dpbench.grid.trial import FINISHED
from dpbench.grid.trial_log import Log
from dpbench.grid.versions import of_today
from dpbench.releases import check_release
from dpbench.report.export_file import SUFFIX, exports_in, load_export
from dpbench.report.submissions import FOLDER, read_submission
from dpbench.resources import PACKAGE

SHOWN = 5  # examples of one problem
DAMAGED = "{} are damaged"
BEYOND = (
    "Checksums show damage, not deceit: whoever changes a result can write new ones. --recompute N runs N stored "
    "trials of each experiment again and compares their scores"
)
VERSIONS = (
    "A version counts how often what a mechanism, model or metric computes from tiny tables (conf/golden) has changed: "
    "results of one version were computed by code whose outputs there agree to nine digits"
)
BEYOND_RECOMPUTED = "What was changed in trials that were not run again, with new checksums, cannot be seen"
Problems = dict[str, list[str]]  # what is wrong, and the identities of those it is wrong with
SAME = 1e-6  # relative difference of scores on processors whose sums differ in their last bits


def verify(arguments: argparse.Namespace) -> int:
    """Check a folder, of all results or of one paper or run, a line for each export, submission and experiment; 1 if
    something is wrong with any.

    Of a trial: its checksum, that it and its release are what their identities say, and that what was spent is within
    what was asked for, or by published constants. Of a release also its arrays, and its cost by its ledger, computed
    again. A commit that this checkout does not have is named, and is no fault. With --recompute N, N trials of each
    experiment are run again; with --set-aside, what is damaged is moved out of the logs.
    """
    folders = [Path(item) for item in arguments.overrides if "=" not in item]
    if len(folders) > 1 or (folders and len(arguments.overrides) > 1):
        raise UserError("give one folder, or settings, such as results=FOLDER")
    if arguments.recompute < 0:
        raise UserError(f"--recompute takes how many trials are run again, not {arguments.recompute}")
    root = folders[0] if folders else compose(arguments.overrides, arguments.config_dir).results
    below = sorted(path for path in root.glob("*") if path.is_dir())
    exports = [path for folder in (root, *below) for path in exports_in(folder)]
    found = (
        path.parent.resolve() for one in ("trials", "*/trials") for path in sorted(root.glob(one)) if path.is_dir()
    )
    stores = [Store(folder.parent, folder.name) for folder in found]
    submitted = [
        path for folder in (root, *below) if folder.name == FOLDER for path in sorted(folder.glob(f"*{SUFFIX}"))
    ]
    if not exports and not stores and not submitted:
        raise UserError(f"{root} holds no results: no experiment, no export and no submission")
    good = sum(_of_export(path) for path in exports) == len(exports)
    good &= sum(map(_of_submission, submitted)) == len(submitted)
    for store in stores:
        good &= _of_store(store, arguments)
    if stores:
        problems, count = _of_releases(stores[0])
        good &= _report(str(stores[0].root / "releases"), f"{count} releases", problems, [])
        if arguments.set_aside:
            _set_aside(stores[0], stores[0].releases, problems)
    print(VERSIONS)
    print(BEYOND if not arguments.recompute else BEYOND_RECOMPUTED)
    return 0 if good else 1


def _of_store(store: Store, arguments: argparse.Namespace) -> bool:
    """Report on the trials of one experiment; whether all is well."""
    store.trials.scan()
    trials = list(store.all_trials())
    problems = _of_trials(trials) | _of_log(store.trials, "trials")
    problems["trials cannot be read"] = store.trials.useless()
    good = _report(str(store.folder), f"{len(trials)} trials", problems, trials)
    if arguments.set_aside:
        _set_aside(store, store.trials, problems)
    if arguments.recompute:
        try:
            count, problems = recompute(store, trials, arguments.recompute)
        except UserError as error:
            print(f"{store.folder}: no trial is run again: {error}")
            return False
        good &= _report(str(store.folder), f"{count} trials run again", problems, [])
    return good


def _set_aside(store: Store, log: Log, problems: Problems) -> None:
    folder, wrong = store.root / "damaged", {identity for names in problems.values() for identity in names}
    with store.writing(folder):
        if count := log.set_aside(folder, wrong & log.entries.keys()):
            print(f"  set aside in {folder}: {count}; the same run as before computes what is then missing")


def _of_export(path: Path) -> bool:
    try:
        trials = [trial for cell in load_export(path) for trial in cell.trials]
    except MALFORMED as error:
        print(f"{path}: something is wrong: {error}")
        return False
    return _report(str(path), f"{len(trials)} trials", _of_trials(trials), trials)


def _of_submission(path: Path) -> bool:
    try:
        found = read_submission(path)
    except UserError as error:
        print(f"something is wrong: {error}")
        return False
    trials = [trial for cell in found.cells for trial in cell.trials]
    return _report(f"{path} ({found.about.mark})", f"{len(trials)} trials", {}, trials if found.about.ran_here else [])


def _of_log(log: Log, what: str) -> Problems:
    """What a scan found wrong with the files of a log."""
    return {
        DAMAGED.format(what): log.damaged(),
        "logs cannot be read": sorted(f"{name} {problem}" for name, problem in log.unreadable.items()),
        "logs hold nothing (cut, or of a run that was killed as it began)": log.empty,
    }


def _of_trials(trials: Iterable[Trial]) -> Problems:
    found: Problems = {}
    for trial in trials:
        if not _is_what_it_says(trial):
            found.setdefault("trials do not match their id", []).append(trial.id)
        if trial.spent is not None and trial.phase != "budget":  # there it was caught, and its release not stored
            try:
                check_cost(trial.spent, trial.key.release)
            except OverspentError:
                found.setdefault("trials spent more than was asked for", []).append(trial.id)
        elif trial.status == "done":
            found.setdefault("trials have no recorded cost", []).append(trial.id)
    return found


def _is_what_it_says(trial: Trial) -> bool:
    try:
        return (trial.id, trial.release_id) == (trial.key.id, trial.key.release.id)
    except MALFORMED:  # keys that no digest can be taken of
        return False


def _of_releases(store: Store) -> tuple[Problems, int]:
    """What is wrong with the releases of a results folder, and how many there are."""
    entries = store.releases.scan()
    found = _of_log(store.releases, "releases")
    for identity in sorted(entries):
        try:
            problem = _of_release(store, identity)
        except MALFORMED:
            problem = DAMAGED.format("releases")
        if problem:
            found.setdefault(problem, []).append(identity)
    return found, len(entries)


def _of_release(store: Store, identity: str) -> str:
    stored = stored_release(store, identity)
    if stored is None:
        return DAMAGED.format("releases")
    check_release(stored.release)
    key = ReleaseKey.from_dict(stored.record["key"])
    if key.id != identity:
        return "releases do not match their id"
    if not holds(stored.release, spent_from_dict(stored.record["spent"]), key):
        return "releases have a ledger whose cost differs from the record"
    return ""


def _report(where: str, what: str, problems: Problems, trials: Iterable[Trial]) -> bool:
    """Print what was found; whether nothing is wrong."""
    wrong = {text: names for text, names in problems.items() if names}
    print(f"{where}: {what}, {'no problem found' if not wrong else 'something is wrong'}")
    for text, names in wrong.items():
        shown = ", ".join(names[:SHOWN]) + (", ..." if len(names) > SHOWN else "")
        print(f"  {len(names)} {text}: {shown}")
    if other := sum(not of_today(trial.key) for trial in trials):
        print(f"  {other} trials are by earlier versions of a mechanism, model or metric (--other-code shows them)")
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


def recompute(store: Store, trials: Sequence[Trial], count: int) -> tuple[int, dict[str, list[str]]]:
    """Run some trials of the store's plan again, in a folder that is then removed: how many, and what is wrong with
    which. They are drawn in a way that nobody can foresee.

    Raises `UserError` if there is no plan, or its data cannot be used.
    """
    plan = read_plan(store.plan_file)
    planned = set(plan.trial_ids)
    known = {trial.id: trial for trial in trials if trial.id in planned and trial.status in FINISHED}
    if not known:
        raise UserError(f"{store.folder} has no trial of its plan that ended well: none can be run again")
    drawn = SystemRandom().sample(sorted(known), min(count, len(known)))
    part = plan.without(planned.difference(drawn))
    guard(setting.dataset for setting in part.settings)
    with tempfile.TemporaryDirectory(prefix="dpbench-") as folder:
        again = Store(Path(folder), plan.name)
        again.prepare()
        run_plan(part, again, Options(jobs=min(default_jobs(), len(part.releases))), lambda summary: None)
        made = {trial.id: trial for trial in again.read_trials(part.trials)}
    found: dict[str, list[str]] = {}
    for identity in sorted(drawn):
        problem, detail = _compared(known[identity], made.get(identity))
        if problem:
            found.setdefault(problem, []).append(f"{identity} ({detail})")
    return len(drawn), found


def _compared(stored: Trial, again: Trial | None) -> tuple[str, str]:
    """What is wrong, and the first thing that differs; empty if nothing does."""
    if again is None or (again.status not in FINISHED and again.status != stored.status):
        reason = "it was not run" if again is None else again.error.message if again.error else again.status
        return "trials cannot be rerun", reason
    if again.status != stored.status:
        return "trials have another status when rerun", f"{stored.status}, now {again.status}"
    before, now = _values(stored), _values(again)
    for name in {**before, **now}:
        one, two = before.get(name, math.nan), now.get(name, math.nan)
        if not (one == two or math.isclose(one, two, rel_tol=SAME) or (math.isnan(one) and math.isnan(two))):
            return "trials have other scores when rerun", f"{name} {one:.6g}, now {two:.6g}"
    return "", ""


def _values(trial: Trial) -> Mapping[str, float]:
    return {score.name: score.value for score in trial.scores}
