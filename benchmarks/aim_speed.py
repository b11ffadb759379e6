"""AIM on Adult: seconds, CPU seconds, peak memory and error of our engine, of a mixture and of mbi with its defaults.

    python -m benchmarks.aim_speed [--epsilons 0.05 0.5 2] [--limit 900] [--spread 5] [--only native]

Adult in the domain of `experiment=linreg_adult`, all pairs, delta = 1e-5, 80 MB, up to 1,000 iterations a round. A row
is one run in a separate process on one core: CPU seconds of the process, and of the release alone, which has the
target. `mbi` has its defaults: a fresh estimate by MirrorDescent with its default settings in each round (in 64 bits,
as `mbi_engine` sets it). A run of mbi is stopped after --limit seconds: its row says `> limit` and how many estimates
it had made, and the ratio is then a lower bound. Ratios are of CPU seconds of the process. Nothing is asserted; each
number is printed with its target.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any
from unittest.mock import patch

from dpbench.data.dataset import Dataset
from dpbench.inference.mbi_engine import Mbi

BARS = {0.05: 3.0, 0.1: 3.0, 0.5: 3.0, 1.0: 3.0, 2.0: 6.0, 10.0: 15.0}  # CPU seconds of a release by our engine
MOST_MB = 1024  # of our engine
HEADER = (
    f"{'epsilon':>7} {'engine':<7}{'seed':>5}{'seconds':>10}{'CPU s':>9}{'release':>9}{'peak MB':>9}{'mean error':>12}"
    f"{'max error':>11}{'rounds':>8}{'model MB':>10}  remarks"
)
made = 0  # estimates in this process


class AsItComes(Mbi):
    """mbi with its defaults: the earlier model is not reused. Counts the estimates."""

    def estimate(self, sizes: Any, measurements: Any, warm_start: Any = None) -> Any:
        """The model, and a line with the number of estimates so far."""
        global made  # noqa: PLW0603
        model = super().estimate(sizes, measurements)
        made += 1
        print(json.dumps({"estimates": made}), flush=True)
        return model


def one(engine: str, epsilon: float, seed: int) -> None:
    """One run in this process; the last line printed is its result as JSON."""
    import numpy as np

    from dpbench.config import composed
    from dpbench.data.load import load_dataset
    from dpbench.mechanisms import aim as mechanism
    from dpbench.mechanisms.fitting import ENGINES
    from dpbench.privacy.budget import Budget
    from dpbench.releases import Marginals

    table = load_dataset(Dataset.of({**composed(["experiment=linreg_adult"])["dataset"], "offline": True}))
    with patch.dict(ENGINES, {"mbi as it comes": AsItComes}):
        start = time.process_time()
        chosen = "mbi as it comes" if engine == "mbi" else engine
        release = mechanism.aim(table, Budget(epsilon, 1e-5), np.random.default_rng(seed), engine=chosen)
    cpu = time.process_time() - start
    marginals = release[Marginals].tables
    errors = [float(np.abs(table.marginal(r) - answer).sum()) / len(table) for r, answer in marginals.items()]
    result = {
        "release": cpu,
        "mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "mean": float(np.mean(errors)),
        "max": max(errors),
        "rounds": len(release.diagnostics["rounds"]),
        "model_mb": release.diagnostics["model_mb"],
    }
    print(json.dumps(result), flush=True)


def profiled(epsilon: float, seed: int) -> None:
    """One run of our engine under cProfile; the twelve functions with the most own time."""
    import cProfile
    import pstats

    profile = cProfile.Profile()
    profile.runcall(one, "native", epsilon, seed)
    pstats.Stats(profile, stream=sys.stdout).strip_dirs().sort_stats("tottime").print_stats(12)


def child(arguments: list[str], limit: float | None) -> dict[str, Any]:
    """A fresh process on one core: its last line, wall and CPU seconds and peak memory, however it ended."""
    with tempfile.TemporaryFile("w+") as said:
        start = time.perf_counter()
        process = subprocess.Popen([sys.executable, "-m", "benchmarks.aim_speed", *arguments], stdout=said)
        pid, stopped = 0, False
        while not pid:
            time.sleep(0.02)
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            if not pid and not stopped and limit and time.perf_counter() - start > limit:
                process.kill()
                stopped = True
        process.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.perf_counter() - start
        said.seek(0)
        lines = said.read().splitlines()
    if process.returncode and not stopped:
        sys.exit(f"{' '.join(arguments)} ended with {process.returncode}")
    result = {"cpu": usage.ru_utime + usage.ru_stime, "mb": usage.ru_maxrss / 1024, "seconds": seconds}
    try:
        printed = json.loads(lines[-1])
    except (IndexError, ValueError):
        printed = {}
    return {**result, **printed, "seconds": seconds, "stopped": stopped, "lines": lines}


def row(epsilon: float, engine: str, seed: int, found: dict[str, Any], remarks: str) -> None:
    if found["stopped"]:
        what = f"{'-':>12}{'-':>11}{'-':>8}{'-':>10}"
        remarks = f"> limit, after {found.get('estimates', 0)} estimates; {remarks}"
    else:
        what = f"{found['mean']:>12.4f}{found['max']:>11.4f}{found['rounds']:>8}{found['model_mb']:>10.3f}"
    over = ">" if found["stopped"] else ""
    seconds, cpu, release = (format(found.get(name, math.nan), ".1f") for name in ("seconds", "cpu", "release"))
    print(
        f"{epsilon:>7g} {engine:<7}{seed:>5}{over + seconds:>10}{over + cpu:>9}{release:>9}{found['mb']:>9.0f}{what}"
        f"  {remarks}",
        flush=True,
    )


def native(epsilon: float, seed: int, shown: bool = True) -> dict[str, Any]:
    """Our row, with its target."""
    found = child(["--one", "native", str(epsilon), str(seed)], None)
    bar = BARS.get(epsilon)
    kept = bar is None or (found["release"] <= bar and found["mb"] <= MOST_MB)
    if shown:
        row(
            epsilon,
            "native",
            seed,
            found,
            "" if bar is None else f"target {bar:g} CPU s: {'met' if kept else 'MISSED'}",
        )
    return {**found, "kept": kept}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epsilons", type=float, nargs="+", default=[0.05, 0.5, 2.0], help="at which both are run")
    parser.add_argument("--more", type=float, nargs="*", default=[0.1, 1.0], help="at which only ours is run")
    parser.add_argument("--limit", type=float, default=900.0, help="seconds after which a run of mbi is stopped")
    parser.add_argument("--seed", type=int, default=0, help="of the side by side rows")
    parser.add_argument("--spread", type=int, default=0, help="run ours with this many seeds at the largest epsilon")
    parser.add_argument("--only", choices=["native", "mixture", "mbi"], help="leave the other engines out")
    parser.add_argument("--one", nargs=3, metavar=("ENGINE", "EPSILON", "SEED"), help="one run, its result as JSON")
    parser.add_argument("--profile", nargs=2, metavar=("EPSILON", "SEED"), help="the profile of one run of ours")
    given = parser.parse_args()
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    os.chdir(Path(__file__).resolve().parents[1])
    if (given.one or given.profile) and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})  # one core
    if given.one:
        one(given.one[0], float(given.one[1]), int(given.one[2]))
        return
    if given.profile:
        profiled(float(given.profile[0]), int(given.profile[1]))
        return
    # Compiled modules are kept, as in any installation: without them each start compiles pandas anew, for 2 seconds.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    native(min(BARS), given.seed, shown=False)  # so that the first row finds compiled modules and cached files
    print(HEADER, flush=True)
    missed = []
    for epsilon in sorted({*given.epsilons, *given.more}):
        ours = native(epsilon, given.seed) if given.only in (None, "native") else None
        if ours and not ours["kept"]:
            missed.append((epsilon, given.seed))
        if epsilon in given.epsilons and given.only in (None, "mixture"):
            row(epsilon, "mixture", given.seed, child(["--one", "mixture", str(epsilon), str(given.seed)], None), "")
        if epsilon in given.epsilons and given.only in (None, "mbi"):
            theirs = child(["--one", "mbi", str(epsilon), str(given.seed)], given.limit)
            bound = "at least " if theirs["stopped"] else ""
            remarks = f"{bound}{theirs['cpu'] / ours['cpu']:.0f} times our CPU seconds" if ours else ""
            row(epsilon, "mbi", given.seed, theirs, remarks)
    top = max(given.epsilons)
    for seed in range(given.spread):
        if seed != given.seed and not native(top, seed)["kept"]:
            missed.append((top, seed))
    for epsilon, seed in missed:
        print(f"\nThe profile of epsilon = {epsilon:g}, seed {seed}, which is above its target:")
        print("\n".join(child(["--profile", str(epsilon), str(seed)], None)["lines"]), flush=True)


if __name__ == "__main__":
    main()
