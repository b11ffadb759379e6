"""Our synthesizers and public code of others, on the same rows of Adult.

    python -m benchmarks.synthesizers FOLDER                  # writes the rows, runs ours, and scores all
    python -m benchmarks.synthesizers FOLDER --out results/synthesis/tables/public_code.csv
    python -m benchmarks.synthesizers FOLDER --packages --out results/synthesis/tables/packages.csv

Each seed has its own split: four fifths of the rows train. FOLDER/SEED.csv has the training rows as codes, and
FOLDER/domain.json how many levels each attribute has, so that all start from the same bins. What other code makes of
them at the same epsilon is read from FOLDER/rows/NAME/SEED.csv, in the same codes. FOLDER/rows/NAME/SEED.json says
what it is: {"code": a name with the settings, "source": repository and commit, "cpu": seconds}.

`--packages` runs the adapters of public packages and what they are compared with, on the attributes ATTRIBUTES and at
EPSILONS: the model of the package's AIM has no limit that holds, and needs few attributes.

Scores are the total variation distances of single attributes and of pairs from the training rows, and the AUC on the
test rows of boosted trees that predict the income. The CSV has means over seeds and their standard errors.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
from collections.abc import Sequence
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
from dpbench.grid.provenance import provenance
from dpbench.grid.single import make_release, private_part
from dpbench.metrics.marginals import marginal_distances
from dpbench.metrics.quality import efficacy_of_trees
from dpbench.privacy.budget import Budget
from dpbench.releases import SyntheticRows

OURS = ["aim", "mst", "privbayes", "privbayes_pgm", "privsyn", "privmrf", "private_gsd", "margnet", "rap_pp", "tab_pe"]
DELTA, RELATION, TARGET = 1e-5, "add_remove", "income>50K"
PACKAGES = ["snsynth_aim", "aim", "mst", "privbayes"]
ATTRIBUTES = ["marital-status", "relationship", "sex", TARGET]
EPSILONS = [0.1, 1.0, 10.0]
Row = dict[str, float | int | str]


def adult(seed: int, attributes: Sequence[str] = ()) -> Split:
    """Adult with the income, in its declared bins, split at random by the seed; with these attributes alone, if any."""
    table = load_dataset(Dataset.of({**composed(["experiment=arena_rows"])["dataset"], "offline": True}))
    table = table.project(list(attributes)) if attributes else table
    rng = np.random.default_rng([seed, 0])
    return split(table, rng, train_rows=len(table), test_rows=round(len(table) / 5))


def write(folder: Path, parts: Split, seed: int) -> None:
    """The training rows as codes, for other code."""
    attributes = parts.train.domain.attributes
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "domain.json").write_text(json.dumps({one.name: one.size for one in attributes}))
    frame = pd.DataFrame(parts.train.codes, columns=parts.train.domain.names)
    frame.to_csv(folder / f"{seed}.csv", index=False)


def cpu_seconds() -> float:
    """Of this process and of those that it waited for: packages run in processes of their own."""
    return sum(os.times()[:4])


def ours(name: str, parts: Split, epsilon: float, seed: int) -> tuple[Table, Row]:
    """The rows of one of our mechanisms with its declared setting."""
    part = private_part(part_of("mechanism", name), RELATION, epsilon, {})
    start = cpu_seconds()
    release = make_release(part, parts.train, Budget(epsilon, DELTA, RELATION), np.random.default_rng([seed, 1]))
    about: Row = {"code": name, "source": "dpbench", "cpu": cpu_seconds() - start}
    return release[SyntheticRows].table, about


def theirs(folder: Path, parts: Split, seed: int) -> tuple[Table, Row]:
    """The rows that other code made of the training rows, and what it is."""
    codes = pd.read_csv(folder / f"{seed}.csv")[list(parts.train.domain.names)].to_numpy(np.int64)
    about = json.loads((folder / f"{seed}.json").read_text())
    return Table(parts.train.domain, codes), {name: about[name] for name in ("code", "source", "cpu")}


def scores(rows: Table, parts: Split, seed: int) -> Row:
    """The distances of marginals from those of the training rows, and the AUC of trees on the test rows."""
    one_way, two_way = (float(marginal_distances(parts.train, rows, k).mean()) / 2 for k in (1, 2))
    design = Design(rows.domain, TARGET, classes=True)
    auc = efficacy_of_trees(rows, parts.test, design, np.random.default_rng(seed))
    return {"one_way": one_way, "two_way": two_way, "auc": auc}


def report(found: list[Row], out: Path | None) -> None:
    """Print the means over seeds, and write `summary` to `out`, if anywhere."""
    table = summary(found)
    if out:
        out.parent.mkdir(parents=True, exist_ok=True)
        table.to_csv(out, index=False)
    print(table.pivot(index=["epsilon", "code"], columns="metric", values="mean").round(4).to_string())


def summary(found: list[Row]) -> pd.DataFrame:
    """One row for each code, epsilon and score: mean, standard error and number of seeds; and where ours was run."""
    frame = pd.DataFrame(found).melt(["code", "source", "epsilon", "seed"], var_name="metric")
    made = provenance()
    means = frame.groupby(["code", "source", "epsilon", "metric"], sort=False)["value"].agg(["mean", "sem", "count"])
    return means.reset_index().rename(columns={"sem": "se"}).assign(commit=made["commit"], machine=made["cpu"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--mechanisms", nargs="*")
    parser.add_argument("--packages", action="store_true", help="those of packages, on few attributes")
    parser.add_argument("--epsilon", type=float, nargs="*")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    names = given.mechanisms or (PACKAGES if given.packages else OURS)
    epsilons = given.epsilon or (EPSILONS if given.packages else [1.0])
    found: list[Row] = []
    for epsilon, seed in itertools.product(epsilons, range(given.seeds)):
        parts = adult(seed, ATTRIBUTES if given.packages else ())
        write(given.folder, parts, seed)
        others = [] if given.packages else sorted(path.parent for path in given.folder.glob(f"rows/*/{seed}.csv"))
        for rows, about in (
            (parts.train, {"code": "training rows", "source": "", "cpu": 0.0}),
            *(ours(name, parts, epsilon, seed) for name in names),
            *(theirs(path, parts, seed) for path in others),
        ):
            found.append({**about, "epsilon": epsilon, "seed": seed, **scores(rows, parts, seed)})
            print(*(f"{value:.4f}" if isinstance(value, float) else value for value in found[-1].values()), flush=True)
    report(found, given.out)


if __name__ == "__main__":
    main()
