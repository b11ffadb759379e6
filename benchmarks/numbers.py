"""What synthesizers make of numbers: in declared bins, in intervals of a binary tree, and by hyperplanes, on Adult.

    python -m benchmarks.numbers
    python -m benchmarks.numbers --out results/synthesis/tables/numbers.csv

Splits, budgets and rows are those of `benchmarks.synthesizers`. Scores are against the training rows:

- `two_way`: the total variation distance of pairs, in the declared bins; the mean over pairs
- `ks`: the Kolmogorov-Smirnov distance of numbers, rounded to a thousandth of their bounds; the mean over attributes,
  and that of each
- `wasserstein`: their Wasserstein distance, as a part of the width of their bounds, likewise
- `efficacy_linear`, `efficacy_trees`: the area under the ROC curve on the test rows, of models of the income that read
  numbers as they are

A row without numbers has the middles of its bins. The CSV has means over seeds and their standard errors.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from benchmarks.synthesizers import TARGET, Row, adult, ours, report
from dpbench.data.domain import Floats
from dpbench.data.encode import Design
from dpbench.data.table import Split, Table
from dpbench.mechanisms.intervals import scaled
from dpbench.metrics.marginals import marginal_distances
from dpbench.metrics.quality import efficacy

PARTS = 1000  # of the bounds, to which numbers are rounded
OURS = ["private_gsd", "private_gsd_intervals", "rap_pp"]


def scores(rows: Table, parts: Split, seed: int) -> Row:
    """All of them."""
    names = [one.name for one in rows.domain.attributes if one.numeric]
    real, other = scaled(parts.train, names), scaled(rows, names)
    distances = {name: distances_of(x, z) for name, x, z in zip(names, real, other, strict=True)}
    found: Row = {"two_way": float(marginal_distances(parts.train, rows, 2).mean()) / 2}
    for place, score in enumerate(("ks", "wasserstein")):
        found[score] = float(np.mean([pair[place] for pair in distances.values()]))
        found |= {f"{score} {name}": pair[place] for name, pair in distances.items()}
    design = Design(rows.domain, TARGET, exact=True)
    models = efficacy(rows, parts.test, design, np.random.default_rng(seed))
    return found | {name: value for (name, _), value in models.items()}


def distances_of(real: Floats, other: Floats) -> tuple[float, float]:
    """The Kolmogorov-Smirnov and the Wasserstein distance of numbers (n,) and (m,) in [0, 1].

    >>> [round(one, 3) for one in distances_of(np.array([0.0, 0.5]), np.array([0.2, 0.5]))]
    [0.5, 0.1]
    """
    shares = [np.bincount(np.rint(x * PARTS).astype(int), minlength=PARTS + 1) / len(x) for x in (real, other)]
    gaps = np.abs(np.cumsum(shares[0] - shares[1]))
    return float(gaps.max()), float(gaps.sum()) / PARTS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mechanisms", nargs="*", default=OURS)
    parser.add_argument("--epsilon", type=float, nargs="*", default=[1.0, 10.0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    found: list[Row] = []
    for seed in range(given.seeds):
        parts = adult(seed)
        pairs = [(epsilon, name) for epsilon in given.epsilon for name in given.mechanisms]
        for epsilon, (rows, about) in (
            (np.inf, (parts.train, {"code": "training rows", "source": "", "cpu": 0.0})),
            *((epsilon, ours(name, parts, epsilon, seed)) for epsilon, name in pairs),
        ):
            found.append({**about, "epsilon": epsilon, "seed": seed, **scores(rows, parts, seed)})
            print(*(f"{value:.4f}" if isinstance(value, float) else value for value in found[-1].values()), flush=True)
    report(found, given.out)


if __name__ == "__main__":
    main()
