"""Tables that others have coded already: CSV files of integer codes, over a declared domain."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from dpbench.data.declare import domain_from_config
from dpbench.data.domain import Codes, Domain
from dpbench.data.fetch import fetch, open_binary
from dpbench.data.source import sources_of
from dpbench.data.table import Table
from dpbench.errors import UserError


def load_coded(config: Mapping[str, Any]) -> Table:
    """The rows of the files `config.sources`, one file after the other, over the domain `config.attributes`.

    Each file is a CSV of integers with the attributes' names in its first line, in any order. The code k stands for
    the k-th level, value or bin that is declared for its attribute, counted from 0. There are no numbers beside the
    codes.

    Raises `UserError` if a file cannot be had, or does not fit its declaration.
    """
    domain, sources = domain_from_config(config["attributes"]), sources_of(config)
    if not sources:
        raise UserError(f"dataset={config.get('name')} needs dataset.sources, the files that its rows are read from")
    offline, alternative = bool(config.get("offline")), config.get("alternative")
    paths = [fetch(source, offline=offline, alternative=alternative) for source in sources]
    codes = [_read(path, domain, source.file) for path, source in zip(paths, sources, strict=True)]
    return Table(domain, np.concatenate(codes))


def _read(path: Path, domain: Domain, file: str) -> Codes:
    """The rows (n, d) of one file, its columns in the domain's order and every code in [0, size)."""
    import pandas as pd

    with open_binary(path) as stream:
        frame = pd.read_csv(stream)
    if differ := sorted(set(frame.columns) ^ set(domain.names)):
        raise UserError(f"{file}: its columns are not those declared; these are in one but not the other: {differ}")
    for name, size in domain.sizes.items():
        column = frame[name]
        if not pd.api.types.is_integer_dtype(column) or not column.between(0, size - 1).all():
            raise UserError(f"{file}: column {name!r} must hold the integers 0 .. {size - 1}, as declared")
    return frame[list(domain.names)].to_numpy(dtype=np.int64)
