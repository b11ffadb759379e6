"""The cost of the harness itself: start-up, overhead a trial, speed-up of two workers, planning, figures, marginals.

    python -m benchmarks.harness [--trials 1000] [--stored 100000] [--drawn 150000]

Prints one line per number, with its target. Run it on an idle machine; nothing is asserted. A run with the usual sizes
is added to history.jsonl, and what became slower is named.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from benchmarks import history
from dpbench.report.site.speed import WORSE, read_runs, rows_of

MECHANISM = '''
import numpy as np
from dpbench.data.encode import Design
from dpbench.releases import Release, SufficientStatistics
from dpbench.privacy.ledger import Ledger
from dpbench.privacy.noise import gaussian

def cheap(train, budget, rng, *, design: Design, work: int = 0) -> Release:
    """As good as nothing, or a sum of this many terms in plain Python."""
    sum(range(work))
    ledger, p = Ledger(), len(design.columns)
    xty = gaussian(rng, ledger, np.ones(p), sensitivity=1.0, multiplier=1000.0, label="nothing")
    return Release(train.domain, budget, ledger, (SufficientStatistics(np.eye(p), xty, 0.0, 1.0),))
'''


WORK = 30_000_000


class Workbench:
    """A small table and a cheap mechanism in a folder of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        rows = "".join(f"{i % 5},{i % 2},{i % 3}\n" for i in range(200))
        (folder / "my.csv").write_text("a,b,c\n" + rows)
        (folder / "my.yaml").write_text("a: {values: [0, 1, 2, 3, 4]}\nb: {levels: [0, 1]}\nc: {levels: [0, 1, 2]}\n")
        (folder / "mechanism").mkdir()
        (folder / "cheap_mechanism.py").write_text(MECHANISM)
        (folder / "mechanism" / "cheap.yaml").write_text(
            "cheap: {_target_: cheap_mechanism.cheap, _offers_: [statistics], work: 0}\n"
        )

    def settings(self, *more: str) -> list[str]:
        named = [f"dataset.path={self.folder}/my.csv", f"dataset.domain={self.folder}/my.yaml", "dataset.target=a"]
        named += ["dataset=csv", "dataset.public=true", "sample.test_rows=50", "mechanism=[cheap]", "metric=[mse]"]
        return ["--config-dir", str(self.folder), *named, *more]


def dpbench(*arguments: str) -> float:
    """Wall seconds of one command in a fresh process."""
    start = time.perf_counter()
    done = subprocess.run([sys.executable, "-m", "dpbench", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"dpbench {' '.join(arguments)} ended with {done.returncode}:\n{done.stderr}")
    return time.perf_counter() - start


def cpu(command: Callable[[], object]) -> float:
    """CPU seconds of the processes that it starts."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def cost(*arguments: str) -> tuple[float, float]:
    """CPU seconds of one command in a fresh process, and its peak memory, MB."""
    process = subprocess.Popen([sys.executable, "-m", "dpbench", *arguments], stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"dpbench {' '.join(arguments)} ended with status {status}")
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def best(measure: Callable[[], float], times: int = 3) -> float:
    return min(measure() for _ in range(times))


SAID: dict[str, tuple[float, str]] = {}


def say(what: str, value: float, unit: str, bar: str) -> None:
    """Print a number, and keep it; what begins with spaces belongs to the number above that does not."""
    above = next((name for name in reversed(SAID) if ": " not in name), "")
    SAID[f"{above}: {what.strip()}" if what.startswith(" ") else what] = value, unit
    print(f"{what:<58} {value:>9.3f} {unit:<8} (target: {bar})", flush=True)


def start_up() -> None:
    say("dpbench --help", best(lambda: dpbench("--help")), "s", "0.3 s")
    say("dpbench list mechanisms", best(lambda: dpbench("list", "mechanisms")), "s", "1 s")


def overhead(bench: Workbench, trials: int) -> None:
    """CPU of all processes for each further cheap trial, and the files that a run leaves on the disk."""

    def settings(repetitions: int) -> list[str]:
        return bench.settings(f"repetitions={repetitions}", "jobs=1", f"results={bench.folder}/cheap{repetitions}")

    def run(repetitions: int) -> float:
        shutil.rmtree(bench.folder / f"cheap{repetitions}", ignore_errors=True)
        return cpu(lambda: dpbench("run", *settings(repetitions)))

    first, all_of_them = best(lambda: run(10)), best(lambda: run(trials))
    more = 1e3 * (all_of_them - first) / (trials - 10)
    say(f"CPU of a further trial, {trials} cheap trials, 1 worker", more, "ms", "3 ms")
    left = list((bench.folder / f"cheap{trials}").rglob("*"))
    say("  files and folders in the results", len(left), "", "100")
    say(f"the same line again, {trials} stored trials", dpbench("run", *settings(trials)), "s", "-")


def many_splits(folder: Path) -> None:
    """CPU of all processes for quick methods on many splits of one table: each is made once, not once per method."""
    settings = ["mechanism=[exact,ssp,adassp,analyze_gauss]", "model=[linear_statistics]", "metric=[mse,excess_mse]"]
    settings += ["dataset=adult_synth", "epsilon=[0.1,1]", "repetitions=20", "jobs=1", f"results={folder}/splits"]
    say("CPU of 140 quick releases on 20 splits of 48,842 rows", cpu(lambda: dpbench("run", *settings)), "s", "-")


def speed_up(bench: Workbench) -> None:
    """Trials of some tenths of a second: the work scales, start-up does not."""

    def seconds(jobs: int) -> float:
        shutil.rmtree(bench.folder / "busy", ignore_errors=True)
        more = ["repetitions=120", f"mechanism.cheap.work={WORK}", f"jobs={jobs}", f"results={bench.folder}/busy"]
        return dpbench("run", *bench.settings(*more))

    def plain(processes: int) -> float:
        """Seconds of this many parallel processes that only sum: the machine's own speed-up from two."""
        line = [sys.executable, "-c", f"for _ in range(20): sum(range({WORK}))"]
        start = time.perf_counter()
        for process in [subprocess.Popen(line) for _ in range(processes)]:
            process.wait()
        return time.perf_counter() - start

    one, two = seconds(1), seconds(2)
    say("two workers against one, 120 trials of half a second", one / two, "times", "1.8 times")
    say("  two plain Python processes against one, here and now", 2 * plain(1) / plain(2), "times", "-")


def stored_grid(bench: Workbench, trials: int, name: str) -> list[str]:
    """Write about this many trials with distinct values and seconds into the folder; the settings of their grid."""
    sys.path.insert(0, str(bench.folder))
    from dpbench.config import compose
    from dpbench.grid.plan import make_plan
    from dpbench.grid.store import Store

    template = next(Store(bench.folder / "cheap10", "grid").all_trials())
    points = -(-trials // 100_000)
    epsilons = f"epsilon=[{','.join(str(1 + i) for i in range(points))}]"
    grid = ["model=[linear_statistics]", f"repetitions={-(-trials // points)}", epsilons]
    settings = bench.settings(*grid, f"results={bench.folder}/{name}")
    store, rng = Store(bench.folder / name, "grid"), random.Random(0)
    store.prepare()
    for key in make_plan(compose(settings[2:], bench.folder)).trials:
        scores = tuple(replace(score, value=rng.random()) for score in template.scores)
        runtime = replace(template.runtime, release_seconds=round(rng.random(), 4), model_seconds=rng.random())
        own = {"id": key.id, "release_id": key.release.id, "key": key, "scores": scores, "runtime": runtime}
        store.write_trial(replace(template, **own))
    return settings


def planning(bench: Workbench, stored: int) -> None:
    """A grid whose trials are all stored: the commands that find nothing to do; then plan, shard, scan, summarise, in
    this process, for its memory.
    """
    settings = stored_grid(bench, stored, "many")
    for name in ("run", "status"):
        seconds, megabytes = cost(name, *settings)
        say(f"dpbench {name}, {stored} trials stored, nothing to do (CPU)", seconds, "s", "30 s for 1,000,000")
        say("  peak memory", megabytes, "MB", "2000 MB for 1,000,000")
    from dpbench.config import compose
    from dpbench.grid.plan import make_plan, read_plan
    from dpbench.grid.runner import missing
    from dpbench.grid.store import Store

    experiment = compose(settings[2:], bench.folder)
    start, store = time.process_time(), Store(bench.folder / "many", "grid")
    plan = make_plan(experiment)
    store.write_text(store.plan_file, plan.lines())
    say(f"plan of {stored} trials, made and written (CPU)", time.process_time() - start, "s", "-")
    start = time.process_time()
    planned, left = read_plan(store.plan_file).shard(1, 25), missing(plan, store)
    say(f"  read, a shard of {len(planned.releases)}; scan, {len(left)} left", time.process_time() - start, "s", "-")
    start, entries = time.process_time(), store.trials.entries
    done = sum(entries[identity].status == "done" for identity in plan.trial_ids)
    say(f"  summary, {done} done", time.process_time() - start, "s", "60 s in all for 1,000,000")
    say("  peak memory", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, "MB", "4000 MB")


def figures(bench: Workbench, drawn: int) -> None:
    """Seconds for the figures and tables of a grid that is stored, and for those of its export alone."""
    settings = stored_grid(bench, drawn, "drawn")
    say(f"figures of {drawn} stored trials", dpbench("figures", "name=grid", *settings), "s", "20 s")
    say("  again, nothing new", dpbench("figures", "name=grid", *settings), "s", "20 s")
    shutil.rmtree(bench.folder / "drawn" / "grid" / "trials")
    say("  of their export alone", dpbench("figures", "name=grid", *settings), "s", "20 s")


def adult(folder: Path) -> None:
    """Numbers that need the real table; skipped without it."""
    from dpbench.config import composed
    from dpbench.data.dataset import Dataset
    from dpbench.data.encode import pairs
    from dpbench.data.load import load_dataset
    from dpbench.errors import UserError

    try:
        table = load_dataset(Dataset.of({**composed(["dataset=adult"])["dataset"], "offline": True}))
    except UserError as error:
        print(f"without Adult: {str(error).splitlines()[0]}")
        return

    def marginals() -> float:
        start = time.perf_counter()
        for clique in pairs(table.domain):
            table.marginal(clique)
        return time.perf_counter() - start

    say(f"all {len(pairs(table.domain))} pairwise marginals of Adult", best(marginals), "s", "0.5 s")
    settings = ["experiment=linreg_adult", "mechanism=[exact,ssp,adassp]", f"results={folder}/adult"]
    say("linreg_adult without AIM, 105 trials", dpbench("run", *settings), "s", "30 s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=1000, help="cheap trials for the overhead")
    parser.add_argument("--stored", type=int, default=100_000, help="stored trials for planning and scanning")
    parser.add_argument("--drawn", type=int, default=150_000, help="stored trials for figures")
    given = parser.parse_args()
    usual = given == parser.parse_args([])
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    with tempfile.TemporaryDirectory() as name:
        bench, before = Workbench(Path(name)), history.reference()
        start_up()
        overhead(bench, given.trials)
        many_splits(Path(name))
        speed_up(bench)
        planning(bench, given.stored)
        figures(bench, given.drawn)
        adult(Path(name))
    if usual:
        history.append(SAID, (before + history.reference()) / 2)
        for row in rows_of(read_runs(history.HISTORY)):
            if row.times is not None and row.times >= WORSE:
                print(f"{row.what}: {row.times:.1f} times the best run before, in units of the reference workload")


if __name__ == "__main__":
    main()
