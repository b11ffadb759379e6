"""Our synthesizers and the public code of their authors, on the same rows of Adult.

    python -m benchmarks.synthesizers FOLDER   # writes the rows for other code, runs ours, and scores all
    python -m benchmarks.synthesizers FOLDER --mechanisms aim privsyn --seeds 5

Each seed has its own split: four fifths of the rows train. FOLDER/SEED.csv has the training rows as codes, and
FOLDER/domain.json how many levels each attribute has, so that all start from the same bins. What other code makes of
them is read from FOLDER/rows/NAME/SEED.csv, in the same codes, and its seconds from FOLDER/rows/NAME/SEED.json, as
{"cpu": seconds}. Columns are means over seeds: the total variation distance of single attributes and of pairs from the
training rows, and the AUC on the test rows of boosted trees that predict the income.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import pandas as pd

from dpbench.config import composed
from dpbench.config.parts import part_of
from dpbench.data.dataset import Dataset
from dpbench.data.encode import Design
from dpbench.data.load import load_dataset
from dpbench.data.table import Split, Table, split
from dpbench.grid.single import make_release, private_part
from dpbench.metrics.marginals import marginal_distances
from dpbench.metrics.quality import efficacy_of_trees
from dpbench.privacy.budget import Budget
from dpbench.releases import SyntheticRows

OURS = ["aim", "mst", "privbayes", "privbayes_pgm", "privsyn", "privmrf", "private_gsd", "margnet", "rap_pp", "tab_pe"]
DELTA, RELATION, TARGET = 1e-5, "add_remove", "income>50K"
Row = dict[str, float | int | str]


def adult(seed: int) -> Split:
    """Adult with the income, in its declared bins, split at random by the seed."""
    table = load_dataset(Dataset.of({**composed(["experiment=arena_rows"])["dataset"], "offline": True}))
    rng = np.random.default_rng([seed, 0])
    return split(table, rng, train_rows=len(table), test_rows=round(len(table) / 5))


def write(folder: Path, parts: Split, seed: int) -> None:
    """The training rows as codes, for other code."""
    attributes = parts.train.domain.attributes
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "domain.json").write_text(json.dumps({one.name: one.size for one in attributes}))
    frame = pd.DataFrame(parts.train.codes, columns=parts.train.domain.names)
    frame.to_csv(folder / f"{seed}.csv", index=False)


def ours(name: str, parts: Split, epsilon: float, seed: int) -> tuple[Table, float]:
    """The rows of one of our mechanisms with its declared setting, and its CPU seconds."""
    part = private_part(part_of("mechanism", name), RELATION, epsilon, {})
    start = time.process_time()
    release = make_release(part, parts.train, Budget(epsilon, DELTA, RELATION), np.random.default_rng([seed, 1]))
    return release[SyntheticRows].table, time.process_time() - start


def theirs(folder: Path, parts: Split, seed: int) -> tuple[Table, float]:
    """The rows that other code made of the training rows, and its CPU seconds."""
    codes = pd.read_csv(folder / f"{seed}.csv")[list(parts.train.domain.names)].to_numpy(np.int64)
    seconds = json.loads((folder / f"{seed}.json").read_text())["cpu"]
    return Table(parts.train.domain, codes), float(seconds)


def scores(rows: Table, parts: Split, seed: int) -> Row:
    """The distances of marginals from those of the training rows, and the AUC of trees on the test rows."""
    one_way, two_way = (float(marginal_distances(parts.train, rows, k).mean()) / 2 for k in (1, 2))
    design = Design(rows.domain, TARGET, classes=True)
    auc = efficacy_of_trees(rows, parts.test, design, np.random.default_rng(seed))
    return {"one_way": one_way, "two_way": two_way, "auc": auc}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--mechanisms", nargs="*", default=OURS)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--seeds", type=int, default=3)
    given = parser.parse_args()
    found: list[Row] = []
    for seed in range(given.seeds):
        parts = adult(seed)
        write(given.folder, parts, seed)
        others = sorted(path.parent for path in given.folder.glob(f"rows/*/{seed}.csv"))
        runs = [(f"{path.name}, public code", theirs(path, parts, seed)) for path in others]
        runs += [("training rows", (parts.train, 0.0))] if not seed else []
        for name, (rows, seconds) in runs:
            found.append({"code": name, "seed": seed, **scores(rows, parts, seed), "cpu_seconds": seconds})
        for name in given.mechanisms:
            rows, seconds = ours(name, parts, given.epsilon, seed)
            found.append({"code": name, "seed": seed, **scores(rows, parts, seed), "cpu_seconds": seconds})
            print(found[-1], flush=True)
    frame = pd.DataFrame(found)
    frame.to_csv(given.folder / "scores.csv", index=False)
    print(frame.groupby("code").agg(["mean", "sem", "count"])[["one_way", "two_way", "auc", "cpu_seconds"]].to_string())


if __name__ == "__main__":
    main()
