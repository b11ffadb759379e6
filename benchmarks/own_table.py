"""CPU seconds to read and check a user's CSV file, next to those of pandas for the texts alone.

    OMP_NUM_THREADS=1 python -m benchmarks.own_table [--rows 500000] [--large [TABLE ...]]

The table has eight columns, five of them of numbers. The least of two runs each, and their ratio; nothing is asserted.
With `--large`, the seconds and the largest memory of a process of whole commands on tables that are long, wide, or have
an attribute of many levels: some minutes.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
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
SSP = ["release", "mechanism=ssp", "model=linear_statistics", "dataset.target=y"]
MST = ["release", "mechanism=mst"]
RUN = ["run", "mechanism=[exact,adassp]", "epsilon=[1]", "repetitions=1", "dataset.target=y"]
LARGE = {  # rows, numbers, columns of three levels, levels of one column; and the commands
    "long": (10_000_000, 2, 2, 0, [SSP, MST, RUN]),
    "wide": (5_000, 1_000, 1_000, 0, [SSP, RUN]),
    "wide for mst": (5_000, 100, 100, 0, [MST]),
    "wider for mst": (5_000, 1, 1_999, 0, [[*MST, "mechanism.mst.workload=1"]]),
    "many levels": (300_000, 2, 1, 100_000, [MST]),
}


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


def reading(rows: int) -> None:
    """Write a table, read it, and print the seconds."""
    with tempfile.TemporaryDirectory() as folder:
        path, domain = Path(folder) / "my.csv", Path(folder) / "my.yaml"
        table(rows).to_csv(path, index=False)
        domain.write_text(DOMAIN)
        config = Dataset.of({"name": "csv", "path": str(path), "domain": str(domain)})
        plain = seconds(partial(pd.read_csv, path, dtype=str, na_filter=False))
        ours = seconds(partial(load_csv, config))
    print(f"{rows:,} rows: {ours:.2f} CPU s, pandas {plain:.2f}, ratio {ours / plain:.1f}")


def write_large(folder: Path, rows: int, numbers: int, small: int, levels: int) -> None:
    """A table and its declaration; the last number is `y`."""
    rng, names = np.random.default_rng(0), [*(f"x{k}" for k in range(numbers - 1)), "y"]
    declared = [f"{name}: {{bounds: [0, 100], bins: 10}}" for name in names]
    columns: dict[str, object] = {name: rng.integers(0, 100, rows) for name in names}
    letters = np.array(["a", "b", "c"], dtype=object)
    columns |= {f"c{k}": letters[rng.integers(0, 3, rows)] for k in range(small)}
    declared += [f"c{k}: {{levels: [a, b, c]}}" for k in range(small)]
    if levels:
        codes = np.array([f"L{k}" for k in range(levels)], dtype=object)
        columns["code"] = codes[rng.integers(0, levels, rows)]
        declared.append(f"code: {{levels: [{', '.join(codes)}]}}")
    pd.DataFrame(columns).to_csv(folder / "my.csv", index=False)
    (folder / "my.yaml").write_text("\n".join(declared) + "\n")


def measured(line: list[str], folder: Path, environment: Mapping[str, str]) -> str:
    """Wall and CPU seconds of one command, and the memory of its largest process, by a process that starts it alone."""
    code = (
        "import ctypes, os, resource, subprocess, sys, time\n"
        "ctypes.CDLL(None).prctl(36, 1)\n"  # processes that its own children leave behind are its children
        "start = time.time()\n"
        "code = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL).returncode\n"
        "wall = time.time() - start\n"
        "try:\n"
        "    while True: os.wait()\n"
        "except ChildProcessError: pass\n"
        "used = resource.getrusage(resource.RUSAGE_CHILDREN)\n"
        "cpu, memory = used.ru_utime + used.ru_stime, used.ru_maxrss // 1024\n"
        "print(f'{wall:7.1f} s {cpu:7.1f} CPU s {memory:6,} MB, exit {code}')\n"
    )
    command = [sys.executable, "-c", code, sys.executable, "-m", "dpbench", *line]
    return subprocess.run(command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout


def large(names: Sequence[str]) -> Iterator[str]:
    """What each command takes on each of these tables of `LARGE`."""
    for name in names:
        *size, commands = LARGE[name]
        with tempfile.TemporaryDirectory() as made:
            folder = Path(made)
            write_large(folder, *size)
            environment = {**os.environ, "DPBENCH_SALT": str(folder / "state" / "salt")}
            own = ["dataset=csv", "dataset.path=my.csv", "dataset.domain=my.yaml"]
            for place, line in enumerate([["data", "check"], *commands]):
                more = ["--out", f"out{place}"] if line[0] == "release" else []
                shown = " ".join(line[:2])
                settings = own[1:] if line[0] == "data" else own
                yield f"{name:14} {shown:32} {measured([*line, *settings, *more], folder, environment).strip()}"


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=500_000)
    parser.add_argument(
        "--large", nargs="*", metavar="TABLE", choices=LARGE, help=f"all, or some of {', '.join(LARGE)}"
    )
    given = parser.parse_args()
    if given.large is not None:
        for line in large(given.large or list(LARGE)):
            print(line, flush=True)
    else:
        reading(given.rows)


if __name__ == "__main__":
    main()
