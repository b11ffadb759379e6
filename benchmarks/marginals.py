"""Marginals of large tables: CPU seconds and peak memory of counting, planning and releasing them, on one core.

    python -m benchmarks.marginals [--rows 10_000_000]

Random rows. Each line is a separate process, to measure its own peak. The plain version counts each marginal
separately. Nothing is asserted.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import time
from itertools import combinations

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from dpbench.data.domain import Attribute, Domain
from dpbench.data.table import Table
from dpbench.mechanisms.aim_grem import aim_grem
from dpbench.mechanisms.residual_planner import planned, residual_planner
from dpbench.privacy.budget import Budget

LEVELS = (16, 9, 16, 16, 7, 15, 6, 5, 2, 16, 16, 16, 42, 2, 16)  # of the attributes of Adult, which repeat
BUDGET = Budget(1.0, 1e-5, "add_remove")


def domain_of(attributes: int) -> Domain:
    return Domain(tuple(Attribute.categorical(f"a{j}", range(LEVELS[j % len(LEVELS)])) for j in range(attributes)))


def rows_of(domain: Domain, rows: int) -> Table:
    rng, codes = np.random.default_rng(0), np.empty((rows, len(domain.names)), dtype=np.int64)
    for j, size in enumerate(domain.sizes.values()):
        codes[:, j] = rng.integers(0, size, rows)
    return Table(domain, codes)


def triples(rows: int) -> None:
    """All marginals of three of 15 attributes."""
    table = rows_of(domain_of(15), rows)
    cliques = list(combinations(table.domain.names, 3))
    start = time.process_time()
    table.marginals(cliques)
    middle = time.process_time()
    for clique in cliques:
        cells = np.ravel_multi_index([table.column(name) for name in clique], table.domain.shape(clique))
        np.bincount(cells)
    done, plain = middle - start, time.process_time() - middle
    print(f"{done:.2f} CPU s; one by one {plain:.2f}, {plain / done:.1f} times as long")


def plan(_: int) -> None:
    """ResidualPlanner's plan for all marginals of three of 100 attributes."""
    domain = domain_of(100)
    cliques = list(combinations(domain.names, 3))
    start = time.process_time()
    planned(domain.sizes, cliques, dict.fromkeys(cliques, 1.0))
    print(f"{len(cliques):,} marginals planned in {time.process_time() - start:.1f} CPU s")


def planner(rows: int) -> None:
    """ResidualPlanner on all pairs of 40 attributes."""
    table = rows_of(domain_of(40), rows)
    start = time.process_time()
    residual_planner(table, BUDGET, np.random.default_rng(0), workload=2)
    print(f"{rows:,} rows released in {time.process_time() - start:.1f} CPU s")


def aim(rows: int) -> None:
    """AIM with GReM on all pairs of 40 attributes."""
    table = rows_of(domain_of(40), rows)
    start = time.process_time()
    aim_grem(table, BUDGET, np.random.default_rng(0), workload=2)
    print(f"{rows:,} rows released in {time.process_time() - start:.1f} CPU s")


STEPS = {"triples": triples, "plan": plan, "planner": planner, "aim": aim}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--step", choices=STEPS)
    given = parser.parse_args()
    if given.step:
        print(STEPS[given.step].__doc__, end=" ", flush=True)
        STEPS[given.step](given.rows)
        print(f"  peak {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10:,.0f} MB")
    else:
        for step in STEPS:
            command = [sys.executable, "-m", "benchmarks.marginals", "--rows", str(given.rows), "--step", step]
            subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
