"""The rule of `dpbench.mechanisms.dpsgd_rule` on simulated rows: the share of the gain that each setting keeps.

    python -m benchmarks.dpsgd_rule [--seeds 3]

Logistic targets of uniform numbers, or of levels of several attributes, with 1,000 and 10,000 rows and about 8 and 40
features, at epsilon 0.1, 1 and 10 and delta = 1e-5. A share is (log loss of the rate of positives less that of the
fit) / (the same of the fit without noise), on 5,000 other rows: 1 is the fit without noise, 0 the trivial answer, and
what is below -1 counts as -1. The mean is over all of these; the default setting was chosen by it.
"""

from __future__ import annotations

import argparse
import itertools
import os
from collections.abc import Sequence
from typing import cast

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import pandas as pd
from scipy.optimize import minimize
from scipy.special import expit

from benchmarks.arrays import Arrays
from dpbench.data.domain import Floats
from dpbench.data.encode import Design
from dpbench.data.table import Table
from dpbench.mechanisms.dpsgd_rule import dpsgd_rule
from dpbench.privacy.budget import Budget
from dpbench.releases import Coefficients

TIMES, CLIPS, STEPS = (0.015, 0.06, 0.25, 1.0, 4.0), (0.25, 0.5, 0.7, 1.0), (400, 1000)
CASES = tuple(itertools.product(("numbers", "levels"), (1000, 10_000), (8, 40), (0.1, 1.0, 10.0)))
TEST, LEVELS, SIGNAL = 5000, 5, 2.0  # rows, of an attribute, standard deviation of the true scores


def simulated(kind: str, n: int, features: int, rng: np.random.Generator) -> tuple[Arrays, Arrays]:
    """Rows for training and for testing, with an intercept and y in {-1, 1}."""
    many = n + TEST
    if kind == "numbers":
        parts, bound = [rng.uniform(-1, 1, (many, features))], np.sqrt(features + 1)
    else:
        attributes = features // (LEVELS - 1)
        levels = [rng.choice(LEVELS, many, p=rng.dirichlet(np.ones(LEVELS))) for _ in range(attributes)]
        parts, bound = [np.eye(LEVELS)[own][:, 1:] for own in levels], np.sqrt(attributes + 1)
    X = np.concatenate([*parts, np.ones((many, 1))], axis=1)
    theta = rng.normal(size=X.shape[1])
    theta *= SIGNAL / (X @ theta).std()
    theta[-1] -= (X @ theta).mean() + 0.5
    y = np.where(rng.random(many) < expit(X @ theta), 1.0, -1.0)
    train, test = (Arrays(X[part], y[part], float(bound), binary=True) for part in (slice(n), slice(n, None)))
    return train, test


def log_loss(rows: Arrays, theta: Floats) -> float:
    return float(np.mean(np.logaddexp(0, -rows.y * (rows.X @ theta))))


def fitted(rows: Arrays) -> Floats:
    """The fit without noise, with a ridge that makes it finite."""

    def objective(theta: Floats) -> tuple[float, Floats]:
        slope = rows.X.T @ (-rows.y * expit(-rows.y * (rows.X @ theta))) / len(rows)
        return log_loss(rows, theta) + 1e-6 * float(theta @ theta), slope + 2e-6 * theta

    return np.asarray(minimize(objective, np.zeros(rows.X.shape[1]), jac=True, method="L-BFGS-B").x)


def shares(kind: str, n: int, features: int, epsilon: float, seeds: Sequence[int]) -> list[dict[str, float]]:
    """The share of the gain of each setting, and seed."""
    train, test = simulated(kind, n, features, np.random.default_rng(0))
    positive = float(np.mean(test.y > 0))
    trivial = -positive * np.log(positive) - (1 - positive) * np.log(1 - positive)
    gain = trivial - log_loss(test, fitted(train))
    table, design, budget = cast(Table, train), cast(Design, train), Budget(epsilon, 1e-5)
    found = []
    for time, clip, most_steps, seed in itertools.product(TIMES, CLIPS, STEPS, seeds):
        given = {"time": time, "clip": clip, "most_steps": most_steps}
        rng = np.random.default_rng([seed, 1])
        release = dpsgd_rule(table, budget, rng, design=design, expected_rows=n, loss="logistic", **given)
        share = (trivial - log_loss(test, release[Coefficients].values)) / gain
        found.append({**given, "share": max(float(share), -1.0)})
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    given = parser.parse_args()
    found: list[dict[str, float]] = []
    for case in CASES:
        own = shares(*case, range(given.seeds))
        found += own
        best = pd.DataFrame(own).groupby(["time", "clip", "most_steps"])["share"].mean()
        print(*case, f"best {best.max():.3f} at time, clip, most_steps = {best.idxmax()}", flush=True)
    means = pd.DataFrame(found).groupby(["time", "clip", "most_steps"])["share"].mean()
    print(means.sort_values(ascending=False).round(3).to_string())


if __name__ == "__main__":
    main()
