"""CPU seconds of PATE and of DP minibatch SGD on the panels of Figure 4 of the excess-risk paper, and their accuracy.

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python -m benchmarks.figure4 [--panels heart adult]

One release a line, of the settings in conf/experiment/excess_risk, epsilon 1, with the largest number of teachers; the
calibration of the noise is included. Prints the target; nothing is asserted.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

PANELS = ("heart", "compas", "churn", "law", "dutch", "adult")


def panel(name):
    """Print one line per mechanism and calibration."""
    from dpbench.config import compose
    from dpbench.data.encode import Design
    from dpbench.data.load import load_dataset
    from dpbench.data.table import split
    from dpbench.privacy.accounting import spent
    from dpbench.privacy.budget import Budget
    from dpbench.releases import Coefficients

    grid = compose([f"experiment=risk_figure4_{name}"]).grids[-1]  # its last point has most teachers
    table, sample = load_dataset(grid.dataset), grid.sample
    sizes = {"train_rows": sample.train_rows, "test_rows": sample.test_rows}
    design = Design(table.domain, **grid.design)
    budget = Budget(grid.epsilons[0], grid.delta, grid.relation)
    for part in grid.mechanisms:
        if part.name not in ("dpsgd_minibatch", "pate", "pate_laplace"):
            continue
        public = {"public_rows": sample.public_rows} if part.takes("public") else {}
        rows = split(table, np.random.default_rng(0), **sizes, **public)
        supplied = {"public": rows.public} if public else {}
        X, y = design.encode(rows.test)
        for calibration in grid.calibrations:
            parameters = {**part.parameters, **supplied, "calibration": calibration}
            start = time.process_time()
            made = part.function(rows.train, budget, np.random.default_rng(1), design=design, **parameters)
            seconds = time.process_time() - start
            right = np.mean((X @ made[Coefficients].values > 0) == (y > 0))
            what = f"{name}, {part.name} ({calibration}), teachers {parameters.get('teachers', '-')}"
            cost = spent(made.ledger, budget.delta).epsilon
            print(f"{what:<52} {seconds:>7.2f} CPU s (target: 30)   accuracy {right:.3f}, spent {cost:.3f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--panels", nargs="+", choices=PANELS, default=list(PANELS))
    for name in parser.parse_args().panels:
        panel(name)


if __name__ == "__main__":
    main()
