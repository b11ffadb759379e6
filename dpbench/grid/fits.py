"""Stored fits: what a metric is added to without a model running again.

A record has the arrays of a fit for its bytes, or the pickled fit if it has a predictor. What is pickled is signed with
the user's secret salt, so that nothing is loaded that this user did not write.
"""

from __future__ import annotations

import hmac
import pickle
from dataclasses import fields

import numpy as np

from dpbench.errors import ContractError
from dpbench.files import Json
from dpbench.grid.arrays import Arrays, packed, unpacked
from dpbench.grid.log_file import Place
from dpbench.grid.records import FitKey
from dpbench.grid.seeds import secret_salt
from dpbench.grid.store import Store
from dpbench.models.fit import Fit


def write_fit(store: Store, key: FitKey, fit: Fit, record: Json, turn: int = 0) -> Place:
    """Store a fit with its record: `arrays_sha256` of the release, and `runtime`, its seconds and peak_mb.

    Raises `StoreError` if it cannot be written, `ContractError` for a predictor that cannot be pickled.
    """
    header = {**record, "notes": dict(fit.notes), "id": key.id}
    if fit.predictor is not None:
        body = _pickled(fit)
        header["signed"] = _signature(body)
    else:
        header["arrays"], body = packed(_arrays(fit))
    with store.writing(store.root / "fits"):
        return store.fits.append(header, None, body, turn)


def read_header(store: Store, key: FitKey, arrays_sha256: str) -> tuple[Json, Place] | None:
    """The record and the notes of a stored fit, and its place; None where `read_fit` gives None."""
    entry = store.fits.entries.get(key.id)
    found = None if entry is None else _read(store, key, arrays_sha256, entry.place)
    return None if found is None or entry is None else (found[0], entry.place)


def read_fit(store: Store, key: FitKey, arrays_sha256: str, place: Place) -> Fit | None:
    """A stored fit, its arrays read-only; None if none of a release with these arrays is there, or it was damaged."""
    if (found := _read(store, key, arrays_sha256, place)) is None:
        return None
    header, body = found
    if "signed" in header:
        fit: Fit = pickle.loads(body)
        return fit
    arrays = unpacked(header["arrays"], body)
    moments = (arrays.pop("xtx"), arrays.pop("xty")) if "xtx" in arrays else None
    return Fit(**arrays, moments=moments, notes=header["notes"])  # type: ignore[arg-type]


def _read(store: Store, key: FitKey, arrays_sha256: str, place: Place) -> tuple[Json, bytes] | None:
    found = store.fits.read(place)
    if found is None or (found[0].get("id"), found[0].get("arrays_sha256")) != (key.id, arrays_sha256):
        return None
    header, body = found
    return found if "signed" not in header or hmac.compare_digest(header["signed"], _signature(body)) else None


def _signature(body: bytes) -> str:
    return hmac.digest(secret_salt(), body, "sha256").hex()


def _arrays(fit: Fit) -> Arrays:
    """The arrays of a fit by name."""
    given = {one.name: getattr(fit, one.name) for one in fields(fit)}
    if fit.moments is not None:
        given["xtx"], given["xty"] = fit.moments
    return {name: value for name, value in given.items() if isinstance(value, np.ndarray)}


def _pickled(fit: Fit) -> bytes:
    try:
        return pickle.dumps(fit, protocol=pickle.HIGHEST_PROTOCOL)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise ContractError(
            f"the fit cannot be stored ({error}): a predictor must be a function or an instance of a class at the top "
            "level of a module, not a function within a function"
        ) from error
