"""Make data/adult_synth.csv.gz, a differentially private synthetic copy of Adult, from the real table.

    python scripts/make_adult_synth.py --epsilon 1 --delta 1e-6 --seed 0

The rows come from one release of the project's own AIM on all 15 attributes. The number of rows is Adult's
published one. data/adult_synth.json records how they were made.
"""

from __future__ import annotations

import argparse
import os
import sys

os.environ.setdefault("OMP_NUM_THREADS", "1")

from dpbench.config import composed
from dpbench.data.dataset import Dataset
from dpbench.data.load import load_dataset
from dpbench.data.tabular import write_shipped
from dpbench.errors import UserError
from dpbench.grid.provenance import provenance
from dpbench.grid.seeds import generator
from dpbench.mechanisms.aim import aim
from dpbench.privacy.accounting import spent
from dpbench.privacy.budget import Budget
from dpbench.releases import SyntheticRows
from dpbench.resources import data_dir

ROWS = 48_842  # the number of records in adult.data and adult.test, as adult.names states it


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--delta", type=float, default=1e-6)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    made_by = provenance()
    if made_by["dirty"]:
        raise UserError("the sources differ from the commit that the card would name; commit them first")
    table = load_dataset(Dataset.of(composed(["dataset=adult"])["dataset"]))
    budget = Budget(given.epsilon, given.delta)
    release = aim(table, budget, generator("adult_synth", given.seed), rows=ROWS)
    facts = {
        "mechanism": "AIM, all pairs of the 15 attributes",
        "epsilon": given.epsilon,
        "delta": given.delta,
        "relation": budget.relation,
        "epsilon_spent": spent(release.ledger, given.delta).epsilon,
        "seed": given.seed,
        "commit": made_by["commit"],
        "versions": made_by["versions"],
        "command": f"python scripts/make_adult_synth.py --epsilon {given.epsilon:g} --delta {given.delta:g} "
        f"--seed {given.seed}",
    }
    write_shipped(release[SyntheticRows].table, data_dir().resolve(), "adult_synth", facts)
    sys.stdout.write(f"wrote {data_dir().resolve() / 'adult_synth.csv.gz'}\n")


if __name__ == "__main__":
    main()
