"""AIM over all marginals of four attributes: CPU seconds and peak memory, one row per dataset and epsilon.

    python -m benchmarks.aim_degree4 [--datasets churn heart] [--limit 900] [--profile adult_risk] [--table2]

The datasets of the paper on excess risk with the settings of its authors' code: all 4-way marginals of up to 1,000,000
cells, delta = 1/n^2, models of up to 100 MB, 16 d rounds, all rows. A row is one run in a separate process on one core,
loading included; `AIM s` is the mechanism alone. Nothing is asserted; each number is printed with its target, and with
the time of the public reference if known. A run is stopped after --limit CPU seconds.

--table2 runs one release at each epsilon of Table 2 and estimates the table from them: ten releases each, on two cores.
The classifiers are not in the estimate.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

BARS = {  # dataset -> {epsilon: CPU seconds on one core}
    "heart": {1.0: 3.0},
    "compas": {0.25: 10.0, 2.0: 10.0},
    "churn": {1.0: 10.0},
    "law": {2.0: 120.0},
    "dutch": {2.0: 120.0},
    "adult_risk": {2.0: 120.0},
}
REFERENCE = {("compas", 0.25): 251, ("compas", 2.0): 368}  # CPU seconds of the public reference
TABLE2 = (0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0)  # epsilon
TABLE2_RELEASES, TABLE2_CORES, TABLE2_MINUTES = 10, 2, 90
MOST_MB = 1536
WORKLOAD = {"degree": 4, "max_cells": 1_000_000}


def one(dataset: str, epsilon: float) -> None:
    """One run in this process; its result as JSON."""
    import numpy as np

    from dpbench.config import composed
    from dpbench.data.dataset import Dataset
    from dpbench.data.load import load_dataset
    from dpbench.mechanisms.aim import aim
    from dpbench.privacy.budget import Budget

    table = load_dataset(Dataset.of({**composed([f"dataset={dataset}"])["dataset"], "offline": True}))
    budget, rng = Budget(epsilon, len(table) ** -2), np.random.default_rng(0)
    start = time.process_time()
    release = aim(table, budget, rng, workload=WORKLOAD, answers=False, max_model_mb=100)
    result = {
        "rows": len(table),
        "attributes": len(table.domain.names),
        "aim": time.process_time() - start,
        "rounds": len(release.diagnostics["rounds"]),
        "iterations": sum(found["iterations"] for found in release.diagnostics["rounds"]),
        "model_mb": release.diagnostics["model_mb"],
    }
    print(json.dumps(result))


def row(dataset: str, epsilon: float, limit: int) -> float:
    """One run in a fresh process: its line of the table, and its CPU seconds."""
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "benchmarks.aim_degree4", "--one", dataset),
            *("--epsilon", str(epsilon), "--limit", str(limit)),
        ],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    said = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    cpu, mb = usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024
    head = f"{dataset:<12}{epsilon:>8g}{cpu:>9.1f}{mb:>9.0f}"
    if process.returncode:
        print(f"{head}  ended with {process.returncode}; the limit is {limit} CPU seconds", flush=True)
        return cpu
    found, remarks = json.loads(said), []
    if epsilon in BARS[dataset]:
        bar = BARS[dataset][epsilon]
        remarks.append(f"target {bar:g} CPU s, {MOST_MB} MB: {'met' if cpu <= bar and mb <= MOST_MB else 'MISSED'}")
    if (dataset, epsilon) in REFERENCE:
        remarks.append(f"public reference {REFERENCE[dataset, epsilon]} CPU s")
    line = (
        f"{head}{found['aim']:>9.1f}{found['rows']:>8,}{found['attributes']:>4}{found['rounds']:>8}"
        f"{found['iterations']:>12,}{found['model_mb']:>10.2f}  {'; '.join(remarks)}"
    )
    print(line.rstrip(), flush=True)
    return cpu


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--datasets", nargs="+", choices=list(BARS), default=list(BARS), help="those to run")
    parser.add_argument("--limit", type=int, default=900, help="CPU seconds after which a run is stopped")
    parser.add_argument("--table2", action="store_true", help="every epsilon of Table 2, and an estimate of the table")
    parser.add_argument("--one", choices=list(BARS), help="one run, its result as JSON")
    parser.add_argument("--epsilon", type=float, default=1.0, help="of --one")
    parser.add_argument("--profile", choices=list(BARS), help="the functions of one run with the most own time")
    given = parser.parse_args()
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    os.chdir(Path(__file__).resolve().parents[1])
    if given.one:
        resource.setrlimit(resource.RLIMIT_CPU, (given.limit, given.limit))
        one(given.one, given.epsilon)
        return
    if given.profile:
        import cProfile
        import pstats

        profile = cProfile.Profile(time.process_time)
        profile.runcall(one, given.profile, max(BARS[given.profile]))
        pstats.Stats(profile).strip_dirs().sort_stats("tottime").print_stats(15)
        return
    print(
        f"{'dataset':<12}{'epsilon':>8}{'CPU s':>9}{'peak MB':>9}{'AIM s':>9}{'rows':>8}{'d':>4}{'rounds':>8}", end=""
    )
    print(f"{'iterations':>12}{'model MB':>10}", flush=True)
    runs = [(dataset, epsilon) for dataset in given.datasets for epsilon in (TABLE2 if given.table2 else BARS[dataset])]
    seconds = sum(row(dataset, epsilon, given.limit) for dataset, epsilon in runs)
    if given.table2:
        print(
            f"Table 2 on {', '.join(given.datasets)}, {TABLE2_RELEASES} releases each, on {TABLE2_CORES} cores: "
            f"{seconds * TABLE2_RELEASES / TABLE2_CORES / 60:.0f} minutes by these {len(runs)}; "
            f"the target is {TABLE2_MINUTES} for all of its datasets"
        )


if __name__ == "__main__":
    main()
