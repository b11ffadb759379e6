"""Tables that are already coded: CSV files of integer codes, over a declared domain."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from dpbench.data.dataset import Dataset
from dpbench.data.domain import Codes, Domain
from dpbench.data.fetch import fetch_all, open_binary
from dpbench.data.table import Table
from dpbench.errors import UserError, check_known

PARTS = ("private", "public", "all")  # of `load_part`


def load_coded(config: Dataset) -> Table:
    """The rows of the files `config.sources`, one file after the other, over the domain `config.attributes`.

    Each file is a CSV of integers with the attributes' names in its first line, in any order; a first column without a
    name numbers the rows, and is ignored. The code k is the k-th level, value or bin that is declared for
    its attribute, counted from 0. It has codes only, no numbers.

    Raises `UserError` if a file is missing, or does not fit its declaration.
    """
    domain = config.full_domain
    return Table(domain, np.concatenate([_read(path, domain, source.file) for source, path in fetch_all(config)]))


def load_part(config: Dataset) -> Table:
    """The rows of `load_coded` that are in `config.part`: `private`, a random 90%, `public`, the others, or `all`.

    **Source** Liu, Vietri and Wu 2021, section 3, "a 90-10 split". The draw is that of the authors' code
    (iterative-dp): no other gives the paper's counts.

    Raises `UserError` for another part, and as `load_coded` does.
    """
    check_known("dataset.part", config.get("part"), PARTS)
    table = load_coded(config)
    if config["part"] == "all":
        return table
    private = np.random.RandomState(0).binomial(1, 0.9, len(table)) == 1
    return table.take(np.flatnonzero(private if config["part"] == "private" else ~private))


def _read(path: Path, domain: Domain, file: str) -> Codes:
    """The rows (n, d) of one file, its columns in the domain's order and every code in [0, size)."""
    import pandas as pd

    with open_binary(path) as stream:
        frame = pd.read_csv(stream)
    if frame.columns[0] == "Unnamed: 0":
        frame = frame.iloc[:, 1:]
    if differ := sorted(set(frame.columns) ^ set(domain.names)):
        raise UserError(f"{file}: its columns differ from the declared ones; only one of the two has {differ}")
    for name, size in domain.sizes.items():
        numbers = pd.to_numeric(frame[name], errors="coerce")
        wrong = np.flatnonzero(~numbers.isin(range(size)))
        if len(wrong):
            raise UserError(
                f"{file}: column {name!r} must hold the integers 0 .. {size - 1}, as declared; {len(wrong):,} of "
                f"{len(frame):,} rows do not, such as row {wrong[0] + 1}: {frame[name].iloc[wrong[0]]}"
            )
    return frame[list(domain.names)].to_numpy(dtype=np.int64)
