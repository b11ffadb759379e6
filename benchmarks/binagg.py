"""Seconds of BinAgg: a release with its regression, and its synthetic rows, on D1 to D8; BinAgg's Table 1; exact sums.

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/binagg.py

mu = 1; the median of 20 runs for each available data set. Prints one line per number, with its target. Run it on an
idle machine; nothing is asserted.
"""

from __future__ import annotations

import time

import numpy as np

DATASETS = (
    "lt_fs_id",
    "liver_disorders",
    "auction_verification",
    "abalone",
    "parkinsons",
    "wine_quality",
    "air_quality",
    "appliances_energy",
)
RUNS, REPETITIONS, ROWS = 20, 2000, 1000


def dataset(name, **options):
    """A table and a design for it, BinAgg's by default, or None if the table is not available."""
    from dpbench.config import composed
    from dpbench.data.dataset import Dataset
    from dpbench.data.encode import Design
    from dpbench.data.load import load_dataset
    from dpbench.errors import UserError

    config = composed([f"dataset={name}"])["dataset"]
    try:
        table = load_dataset(Dataset.of({**config, "offline": True}))
    except UserError as error:
        print(f"without {name}: {str(error).splitlines()[0]}")
        return None
    options = options or {"intercept": False, "categorical": "one_hot", "scaled": False, "exact": True}
    return table, Design(table.domain, config["target"], **options)


def release(table, design, seed):
    from dpbench.mechanisms.binagg import binagg
    from dpbench.privacy.accounting import gaussian_epsilon
    from dpbench.privacy.budget import Budget

    delta = len(table) ** -1.1
    asked = Budget(gaussian_epsilon(1.0, delta), delta)
    return binagg(table, asked, np.random.default_rng(seed), design=design, calibration="paper")


def regress(bins, design, correction):
    from dpbench.errors import NoEstimateError
    from dpbench.models.bin_regression import bin_regression

    try:
        bin_regression(bins, design=design, correction=correction)
    except NoEstimateError:
        return


def median(measure):
    seconds = []
    for seed in range(RUNS):
        start = time.perf_counter()
        measure(seed)
        seconds.append(time.perf_counter() - start)
    return float(np.median(seconds))


def table_1():
    """Seconds of its repetitions: rows, release and intervals, in one process and without the harness."""
    from dpbench.config import composed
    from dpbench.data.encode import Design
    from dpbench.data.simulate import load

    simulation = load(composed(["dataset=simulation"])["dataset"])
    design = Design(simulation.domain, "y", False, "one_hot", scaled=False, exact=True)
    start = time.perf_counter()
    for seed in range(REPETITIONS):
        rows = simulation.split(np.random.default_rng(seed), train_rows=ROWS, test_rows=0).train
        regress(release(rows, design, seed), design, "sum")
    return time.perf_counter() - start


def exact_sums():
    """Seconds of the exact sums in Adult's bins at epsilon = 10, and of a scan of all rows for each bin."""
    from dpbench.mechanisms.binagg import binagg
    from dpbench.privacy.budget import Budget
    from dpbench.releases import BinSums

    found = dataset("adult_regression", intercept=True)
    if found is None:
        return None
    table, design = found
    bins = binagg(table, Budget(10.0, 1e-5), np.random.default_rng(0), design=design)[BinSums]
    start = time.perf_counter()
    sums = bins.exact(table, design).sums
    middle = time.perf_counter()
    X, top = np.clip(design.encode(table)[0], *design.box), bins.upper == design.box[1]
    scanned = [
        X[((low <= X) & ((high > X) | last)).all(axis=1)].sum(axis=0)
        for low, high, last in zip(bins.lower, bins.upper, top, strict=True)
    ]
    assert np.allclose(sums, [row for row in scanned if row.any()])
    return middle - start, time.perf_counter() - middle


def say(what, value, bar):
    print(f"{what:<62} {value:>9.4f} s (target: {bar})", flush=True)


def main():
    from dpbench.models.training_rows import bin_rows
    from dpbench.releases import BinSums

    for name in DATASETS:
        found = dataset(name)
        if found is None:
            continue
        table, design = found
        bins = release(table, design, 0)[BinSums]
        seconds = median(lambda seed, t=table, d=design: regress(release(t, d, seed), d, "published"))
        say(f"{name}: {len(table)} rows, {len(design.columns)} features; regression", seconds, "0.05 s")
        seconds += median(lambda seed, b=bins: bin_rows(b, np.random.default_rng(seed)))
        say("  the same and a set of synthetic rows", seconds, "0.15 s; BinAgg's Table 5: 0.13 s on average")
    if (found := exact_sums()) is not None:
        say("exact sums in the bins of Adult", found[0], f"a scan of all rows for each bin takes {found[1]:.1f} s")
    say(f"Table 1: {REPETITIONS} repetitions of {ROWS} rows", table_1(), "60 s")


if __name__ == "__main__":
    main()
