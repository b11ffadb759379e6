"""What identifies the rows that a result was made from."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from dpbench.data.dataset import Dataset
from dpbench.data.load import fingerprint, load_dataset
from dpbench.data.simulate import Simulation
from dpbench.data.table import Table
from dpbench.errors import UserError
from dpbench.grid.code import code_of, is_ours
from dpbench.grid.seeds import digest, keyed


def dataset_key(dataset: Dataset) -> dict[str, Any]:
    """A dataset as it stands in a key. The checksums of private rows are keyed (HMAC) with the secret salt.

    The loaders of the project declare the files that they read. What a user's own reads nobody else knows: its rows
    are loaded for a checksum of themselves, so that others never share their noise; one that draws rows has its code.

    Raises `UserError` if the data cannot be read or their declaration is wrong.
    """
    found = fingerprint(dataset)
    found["domain"] = digest(found.pop("attributes"))
    if not is_ours(found["_target_"]):
        rows = load_dataset(dataset)
        if isinstance(rows, Simulation):
            found["sources"] |= {"code": code_of(found["_target_"])}
        else:
            found["sources"] |= {"rows": _sha256(rows)}
    if not dataset.public:
        found["sources"] = {name: keyed(sha256) for name, sha256 in found["sources"].items()}
    return found


def _sha256(table: Table) -> str:
    found = hashlib.sha256(table.codes.tobytes())
    for name, column in sorted(table.numbers.items()):
        found.update(name.encode() + column.tobytes())
    return found.hexdigest()


def verify_data(dataset: Dataset, key: Mapping[str, Any]) -> None:
    """`UserError` unless the data of a plan's dataset are those which the plan was made with."""
    now = dataset_key(dataset)
    changed = [name for name in key if now.get(name) != key[name]]
    if changed:
        raise UserError(
            f"dataset={key['name']}: its {' and '.join(changed)} changed after the plan was made; restore the data, or "
            "run the line again from the start, so that a new plan is made (with the salt of the machine that made the "
            "plan, if the data are private)"
        )
