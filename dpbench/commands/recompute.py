"""Stored trials that are run again, to see whether their scores are those that their settings give."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import SystemRandom

from dpbench.commands.run_settings import guard
from dpbench.errors import UserError
from dpbench.grid.plan import read_plan
from dpbench.grid.records import Trial
from dpbench.grid.runner import Options, default_jobs
from dpbench.grid.runner import run as run_plan
from dpbench.grid.store import Store
from dpbench.grid.trial import FINISHED

SAME = 1e-6  # relative difference of scores on processors whose sums differ in their last bits


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
        return "trials cannot be run again", reason
    if again.status != stored.status:
        return "trials end in another way when they are run again", f"{stored.status}, now {again.status}"
    before, now = _values(stored), _values(again)
    for name in {**before, **now}:
        one, two = before.get(name, math.nan), now.get(name, math.nan)
        if not (one == two or math.isclose(one, two, rel_tol=SAME) or (math.isnan(one) and math.isnan(two))):
            return "trials have other scores when they are run again", f"{name} {one:.6g}, now {two:.6g}"
    return "", ""


def _values(trial: Trial) -> Mapping[str, float]:
    return {score.name: score.value for score in trial.scores}
