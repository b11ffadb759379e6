"""Seconds of DP-SGD: a search of 108 runs, a panel of searches on two workers, and the native engine against Opacus.

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/dpsgd.py [--rows 50000] [--panel] [--random]

Made-up rows: 12 categorical attributes, 100 features with the intercept, a label of two levels. Prints one line a
number, with its target. Run it on an idle machine; nothing is asserted.
"""

from __future__ import annotations

import argparse
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np

EPSILONS = (0.05, 0.1, 0.5, 1.0, 2.0)
REPETITIONS = 5
LEVELS = (28, 16, 15, 9, 7, 6, 5, 4, 4, 2, 2, 1)  # without the first of each: 99 features


def made_up(rows):
    """A table and its design: labels that depend on the attributes."""
    from dpbench.data.domain import Attribute, Domain
    from dpbench.data.encode import Design
    from dpbench.data.table import Table

    attributes = [Attribute.categorical(f"a{i}", [str(k) for k in range(m + 1)]) for i, m in enumerate(LEVELS)]
    domain = Domain((*attributes, Attribute.categorical("label", ["no", "yes"])))
    rng = np.random.default_rng(0)
    codes = np.stack([rng.integers(0, a.size, rows) for a in attributes], axis=1)
    label = (codes[:, :3].sum(axis=1) + rng.normal(0, 5, rows) > 30).astype(np.int64)
    return Table(domain, np.column_stack([codes, label])), Design(domain, "label")


def search(tuning, epsilon, loss, rows, seed=0, data=None):
    """Seconds of one release, calibration included where this process has not done it yet."""
    from dpbench.config import part_of
    from dpbench.mechanisms.dpsgd_search import dpsgd_search
    from dpbench.privacy.budget import Budget

    table, design = data or made_up(rows)
    name = {"optimistic": "dpsgd_optimistic", "advanced_composition": "dpsgd_advanced", "random_search": "dpsgd_random"}
    parameters = {**part_of("mechanism", name[tuning]).parameters, "loss": loss, "expected_rows": rows}
    start = time.perf_counter()
    dpsgd_search(table, Budget(epsilon), np.random.default_rng(seed), design=design, **parameters)
    return time.perf_counter() - start


def panel(rows, loss):
    """Seconds of 5 epsilons x 5 repetitions x (optimistic, advanced composition), on two fresh processes."""
    jobs = [
        (tuning, epsilon, loss, rows, seed)
        for epsilon in EPSILONS
        for seed in range(REPETITIONS)
        for tuning in ("optimistic", "advanced_composition")
    ]
    start = time.perf_counter()
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        list(pool.map(search, *zip(*jobs, strict=True)))
    return time.perf_counter() - start


def engines(rows):
    """Seconds of one setting (batch 256, 1 epoch) by each engine, the least of three."""
    from dpbench.mechanisms import _opacus
    from dpbench.mechanisms.dpsgd import Setting, descend
    from dpbench.privacy.ledger import Ledger

    table, design = made_up(rows)
    X, y = design.encode(table)
    setting = Setting(256, 0.1, 1, 1.0, rows)

    def seconds(engine):
        start = time.perf_counter()
        engine(np.random.default_rng(0), Ledger(), X, y, loss="squared", settings=[setting], multiplier=1.0)
        return time.perf_counter() - start

    seconds(_opacus.descend)  # imports PyTorch
    return [min(seconds(engine) for _ in range(3)) for engine in (descend, _opacus.descend)]


def say(what, value, unit, bar):
    print(f"{what:<62} {value:>9.3f} {unit:<6} (target: {bar})", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=50_000, help="rows of the table (default 50000)")
    parser.add_argument("--panel", action="store_true", help="also the full panel, some minutes")
    parser.add_argument(
        "--random", action="store_true", help="also a random search (about 100 runs, one after the other)"
    )
    given = parser.parse_args()
    data = made_up(given.rows)
    print(f"{given.rows} rows, {len(data[1].columns)} features")
    tunings = ["optimistic", "advanced_composition", *(["random_search"] if given.random else [])]
    for tuning in tunings:
        for epsilon in EPSILONS:
            first, again = (search(tuning, epsilon, "squared", given.rows, seed, data) for seed in range(2))
            say(f"{tuning}, eps {epsilon:g}, with calibration", first, "s", "5 s a search")
            say("  and without", again, "s", "5 s a search")
    say("optimistic, logistic loss, eps 1", search("optimistic", 1.0, "logistic", given.rows, 0, data), "s", "5 s")
    native, opacus = engines(given.rows)
    say("one setting, 1 epoch of batches of 256, native", native, "s", "-")
    say("  Opacus against native, in the same run", opacus / native, "times", "-")
    if given.panel:
        for loss in ("squared", "logistic"):
            say(f"a panel: 50 searches on two workers, {loss} loss", panel(given.rows, loss), "s", "300 s")


if __name__ == "__main__":
    main()
