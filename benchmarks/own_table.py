"""CPU seconds to read and check a user's CSV file, next to those of pandas for the texts alone.

    OMP_NUM_THREADS=1 python -m benchmarks.own_table [--rows 500000]

The table has eight columns, five of them of numbers. The least of two runs each, and their ratio; nothing is asserted.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from dpbench.data.dataset import Dataset
from dpbench.data.tabular import load_csv

DOMAIN = """\
age: {bounds: [16, 100], bins: 32}
income: {bounds: [-100, 100], bins: 40}
hours: {bounds: [0, 1], bins: 10}
share: {bounds: [0, 1], bins: 10}
children: {values: {from: 0, to: 5}}
region: {levels: [north, south]}
code: {levels: [x0, x1, x2, x3, x4]}
owner: {levels: ["no", "yes"]}
"""


def seconds(run: Callable[[], object]) -> float:
    """CPU seconds of the faster of two runs."""
    found = []
    for _ in range(2):
        start = time.process_time()
        run()
        found.append(time.process_time() - start)
    return min(found)


def table(rows: int) -> pd.DataFrame:
    """Rows that fit `DOMAIN`."""
    rng = np.random.default_rng(0)
    made = {"age": rng.integers(16, 100, rows), "income": rng.uniform(-100, 100, rows).round(2)}
    made |= {name: rng.uniform(0, 1, rows).round(3) for name in ("hours", "share")}
    made |= {"children": rng.integers(0, 6, rows), "region": rng.choice(["north", "south"], rows)}
    return pd.DataFrame(
        {**made, "code": rng.choice([f"x{k}" for k in range(5)], rows), "owner": rng.choice(["no", "yes"], rows)}
    )


def main() -> None:
    """Write a table, and read it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=500_000)
    rows = parser.parse_args().rows
    with tempfile.TemporaryDirectory() as folder:
        path, domain = Path(folder) / "my.csv", Path(folder) / "my.yaml"
        table(rows).to_csv(path, index=False)
        domain.write_text(DOMAIN)
        config = Dataset.of({"name": "csv", "path": str(path), "domain": str(domain)})
        plain = seconds(partial(pd.read_csv, path, dtype=str, na_filter=False))
        ours = seconds(partial(load_csv, config))
    print(f"{rows:,} rows: {ours:.2f} CPU s, pandas {plain:.2f}, ratio {ours / plain:.1f}")


if __name__ == "__main__":
    main()
