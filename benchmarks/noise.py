"""Seconds of discrete and continuous noise: for one large marginal, and a release of each mechanism.

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python -m benchmarks.noise [--cells 100000] [--rows 48842]

Adult (the synthetic copy if it is not available) in the domain of `experiment=linreg_adult`, epsilon = 1, AIM at 0.1;
the least of three runs, of AIM and MST one. Prints a line each, with the ratio; nothing is asserted.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial

import numpy as np


def seconds(run: Callable[[], object], times: int) -> float:
    """Of the fastest of this many runs."""
    found = []
    for _ in range(times):
        start = time.perf_counter()
        run()
        found.append(time.perf_counter() - start)
    return min(found)


def say(what: str, run: Callable[[str], object], times: int = 3) -> None:
    """One line: `run` with each kind of noise."""
    continuous, discrete = (seconds(partial(run, noise), times) for noise in ("continuous", "discrete"))
    print(f"{what:<40}{continuous:>9.3f} s{discrete:>10.3f} s{discrete / continuous:>9.1f}", flush=True)


def main() -> None:
    from dpbench.config import composed
    from dpbench.data.dataset import Dataset
    from dpbench.data.encode import Design
    from dpbench.data.load import load_dataset
    from dpbench.errors import UserError
    from dpbench.mechanisms.adassp import adassp
    from dpbench.mechanisms.aim import aim
    from dpbench.mechanisms.binagg import binagg
    from dpbench.mechanisms.mst import mst
    from dpbench.mechanisms.ssp import ssp
    from dpbench.privacy.budget import Budget
    from dpbench.privacy.discrete import whole
    from dpbench.privacy.ledger import Ledger
    from dpbench.privacy.noise import gaussian

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", type=int, default=100_000, help="of the marginal")
    parser.add_argument("--rows", type=int, default=48_842, help="of the table, at most")
    given = parser.parse_args()
    try:
        table = load_dataset(Dataset.of({**composed(["experiment=linreg_adult"])["dataset"], "offline": True}))
    except UserError:
        table = load_dataset(Dataset.of(composed(["experiment=quickstart"])["dataset"]))
    table = table.take(np.arange(min(given.rows, len(table))))
    design = Design(table.domain, "education-num")

    def marginal(noise: str) -> object:
        value = whole(np.zeros(given.cells), noise)
        return gaussian(np.random.default_rng(0), Ledger(), value, sensitivity=1.0, multiplier=20.0, label="marginal")

    def release(mechanism: Callable[..., object], epsilon: float, noise: str, **settings: object) -> object:
        return mechanism(table, Budget(epsilon, 1e-5), np.random.default_rng(0), noise=noise, **settings)

    print(f"{f'{len(table)} rows, {len(design.columns)} features':<40}{'continuous':>11}{'discrete':>12}{'ratio':>9}")
    say(f"a marginal of {given.cells} cells", marginal)
    for mechanism in (ssp, adassp, binagg):
        say(mechanism.__name__, partial(release, mechanism, 1.0, design=design))
    say("mst", partial(release, mst, 1.0), 1)
    say("aim, epsilon = 0.1", partial(release, aim, 0.1), 1)


if __name__ == "__main__":
    main()
