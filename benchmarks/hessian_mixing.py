"""Iterative Hessian Mixing at the protocol of its authors' code (omrilev1/HessianMix 3765136).

    python -m benchmarks.hessian_mixing [--epsilon 1] [--seeds 20]

Four of its tables, prepared as there. Features, without an intercept, are divided by the largest norm of a training
row, targets by the largest one, outside of the budget. Four fifths of the rows train, and each seed has its own split;
delta = 1 / n^2. Test MSE, mean and standard error over the seeds.

The files of the folder `datasets` there are read from hessian_mixing/ in the folders of DPBENCH_DATA_MIRRORS.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import pandas as pd

from benchmarks.arrays import Arrays
from dpbench.data.domain import Floats
from dpbench.data.encode import Design
from dpbench.data.fetch import mirror_dirs
from dpbench.data.table import Table
from dpbench.errors import UserError
from dpbench.mechanisms.adassp import adassp
from dpbench.mechanisms.fastmix import fastmix
from dpbench.mechanisms.gaussmix import gaussmix
from dpbench.mechanisms.hessian_mixing import iterative_hessian_mixing
from dpbench.models.linear import linear_statistics
from dpbench.privacy.accounting import spent
from dpbench.privacy.budget import Budget
from dpbench.releases import Coefficients

Rows = tuple[Floats, Floats]
METHODS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "AdaSSP (paper)": (adassp, {"calibration": "paper"}),
    "AdaSSP (tight)": (adassp, {"calibration": "tight"}),
    "GaussMix (paper)": (gaussmix, {"calibration": "paper"}),
    "GaussMix (tight)": (gaussmix, {"calibration": "tight"}),
    "FastMix": (fastmix, {}),
    "Hessian mixing (paper)": (iterative_hessian_mixing, {"calibration": "paper"}),
    "Hessian mixing (tight)": (iterative_hessian_mixing, {"calibration": "tight"}),
}


# --- the tables -------------------------------------------------------------------------------------------------------


def file(name: str) -> Path:
    """The file in a folder of DPBENCH_DATA_MIRRORS. Raises `UserError` if it is in none."""
    for folder in mirror_dirs():
        if (path := folder / "hessian_mixing" / name).is_file():
            return path
    raise UserError(f"hessian_mixing/{name} is in no folder of DPBENCH_DATA_MIRRORS")


def housing() -> Rows:
    rows = np.loadtxt(file("housing.txt"))
    return rows[:, :-1], rows[:, -1]


def gas() -> Rows:
    rows = pd.read_csv(file("GasDataset.csv")).drop_duplicates().dropna().to_numpy(float)
    return rows[:, :-1], rows[:, -1]


def bike() -> Rows:
    table = pd.read_csv(file("bike_train.csv"), parse_dates=["datetime"])
    when, y = table["datetime"].dt, table["count"].to_numpy(float)
    table = pd.get_dummies(table, columns=["season", "weather"], dtype=float)
    table = table.assign(hour=when.hour, day=when.day_of_week, month=when.month, year=when.year - 2011)
    return table.drop(columns=["datetime", "casual", "registered", "count"]).to_numpy(float), y


def crime() -> Rows:
    names = [
        line.split()[1] for line in file("communities.names").read_text().splitlines() if line[:10] == "@attribute"
    ]
    table = pd.read_csv(file("communities.data"), names=names, na_values=["?"])
    table = table.drop(columns=["state", "county", "community", "fold", "communityname"])
    table["OtherPerCap"] = table["OtherPerCap"].fillna(table["OtherPerCap"].mean())
    table = table.dropna(axis=1)
    y, kept = table.pop("ViolentCrimesPerPop").to_numpy(float), table.pop("racepctblack") >= 0.1
    X = (table - table.mean()) / table.std()
    return X[kept].to_numpy(float), y[kept]


TABLES = {"housing": housing, "crime": crime, "Gas": gas, "bike": bike}


# --- the runs ---------------------------------------------------------------------------------------------------------


def errors(rows: Rows, epsilon: float, seed: int) -> dict[str, tuple[float, float, float]]:
    """Test MSE, the epsilon spent and CPU seconds of each method, and of least squares, on one split."""
    X, y = rows
    order = np.random.default_rng([seed, 0]).permutation(len(y))
    train, test = np.split(order, [int(0.8 * len(y))])
    norm, most = np.linalg.norm(X[train], axis=1).max(), np.abs(y[train]).max()
    given = Arrays(X[train] / norm, y[train] / most)
    budget, found = Budget(epsilon, len(train) ** -2.0), {}

    def mse(theta: Floats) -> float:
        return float(np.mean((y[test] / most - X[test] / norm @ theta) ** 2))

    found["least squares"] = mse(np.linalg.lstsq(given.X, given.y, rcond=None)[0]), 0.0, 0.0
    design = cast(Design, given)
    for name, (mechanism, settings) in METHODS.items():
        start = time.process_time()
        release = mechanism(cast(Table, given), budget, np.random.default_rng([seed, 1]), design=design, **settings)
        fit = release.get(Coefficients) or linear_statistics(release, design=design)
        theta = fit.values if isinstance(fit, Coefficients) else fit.coefficients
        cost = spent(release.ledger, budget.delta).epsilon
        found[name] = mse(theta), cost, time.process_time() - start
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--seeds", type=int, default=20)
    given = parser.parse_args()
    for name, load in TABLES.items():
        rows = load()
        runs = [errors(rows, given.epsilon, seed) for seed in range(given.seeds)]
        print(f"\n{name}: {rows[0].shape[0]} rows, {rows[0].shape[1]} features, epsilon = {given.epsilon:g}")
        for method in runs[0]:
            mses, costs, seconds = np.array([one[method] for one in runs]).T
            print(
                f"  {method:<24}{mses.mean():>9.4f} ± {mses.std(ddof=1) / np.sqrt(len(mses)):<9.4f}"
                f"spent {costs.max():.3f}, CPU s {seconds.mean():.3f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
