"""What identifies the rows that a result was made from."""

from __future__ import annotations

import hashlib

from dpbench.data.dataset import Dataset
from dpbench.data.load import fingerprint, load_dataset
from dpbench.data.simulate import Simulation
from dpbench.data.table import Table
from dpbench.errors import UserError
from dpbench.grid.code import code_of, is_ours
from dpbench.grid.records import DatasetKey
from dpbench.grid.seeds import digest, keyed


def dataset_key(dataset: Dataset) -> DatasetKey:
    """A dataset as it stands in a key. The checksums of private rows are keyed (HMAC) with the secret salt.

    The loaders of the project declare the files that they read. What a user's own reads nobody else knows: its rows
    are loaded for a checksum of themselves, so that others never share their noise; one that draws rows has its code.

    Raises `UserError` if the data cannot be read or their declaration is wrong.
    """
    found = fingerprint(dataset)
    sources = found["sources"]
    if not is_ours(found["_target_"]):
        rows = load_dataset(dataset)
        if isinstance(rows, Simulation):
            sources["code"] = code_of(found["_target_"])
        else:
            sources["rows"] = _sha256(rows)
    if not dataset.public:
        sources = {name: keyed(sha256) for name, sha256 in sources.items()}
    return {
        "name": found["name"],
        "_target_": found["_target_"],
        "sources": sources,
        "domain": digest(found["attributes"]),
        "outside": found["outside"],
        "drop": found["drop"],
        "parameters": found["parameters"],
    }


def _sha256(table: Table) -> str:
    found = hashlib.sha256(table.codes.tobytes())
    for name, column in sorted(table.numbers.items()):
        found.update(name.encode() + column.tobytes())
    return found.hexdigest()


def verify_data(dataset: Dataset, key: DatasetKey) -> None:
    """`UserError` unless the data of a plan's dataset are those which the plan was made with."""
    now = dataset_key(dataset)
    changed = [name for name, value in key.items() if now.get(name) != value]
    if changed:
        raise UserError(
            f"dataset={key['name']}: its {' and '.join(changed)} changed after the plan was made; restore the data, or "
            "run the line again from the start, so that a new plan is made (with the salt of the machine that made the "
            "plan, if the data are private)"
        )
