"""Stored releases: a record of what is plain, the arrays for its bytes."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

from dpbench.errors import MALFORMED
from dpbench.files import Json
from dpbench.grid.arrays import SMALL, Arrays, packed, unpacked
from dpbench.grid.log_file import Place, warn
from dpbench.grid.records import ReleaseKey, with_repetition, without_repetition
from dpbench.grid.store import Store
from dpbench.releases import Release

KEPT = 8  # small releases that a process has read or written last
_KEPT: dict[tuple[Path, Place], tuple[str, Arrays]] = {}


@dataclass(frozen=True)
class StoredRelease:
    """A release as it is stored, its arrays read-only; `record`: key, cost, provenance, run time, checksum."""

    release: Release
    record: Json


def write_release(store: Store, key: ReleaseKey, release: Release, record: Json, turn: int = 0) -> tuple[Place, Json]:
    """Store a release with its record (cost, provenance, run time); where it stands, and the record as `read_release`
    gives it.
    """
    data, arrays = release.to_parts()
    about, body = packed(arrays)
    whole = {**record, "id": key.id, "key": key.to_dict(), "release": data}
    whole["arrays_sha256"] = hashlib.sha256(body).hexdigest()
    own = {name: value for name, value in whole.items() if name not in ("key", "provenance")}
    own["release"] = {name: value for name, value in data.items() if name != "domain"}
    plain, own["repetition"] = without_repetition(whole["key"])
    shared = {"key": plain, "domain": data["domain"], "provenance": whole["provenance"]}
    with store.writing(store.root / "releases"):
        place = store.releases.append({**own, "arrays": about}, shared, body, turn)
    if len(body) < SMALL:
        _keep(store, place, whole, unpacked(about, body))
    return place, whole


def find_release(store: Store, identity: str) -> Place | None:
    """Where a release stands, by what was last seen of the log; None if it is not stored."""
    entry = store.releases.entries.get(identity)
    return None if entry is None else entry.place


def stored_release(store: Store, identity: str) -> StoredRelease | None:
    """A release by what was last seen of the log; None if it is not stored, or damaged."""
    place = find_release(store, identity)
    return None if place is None else read_release(store, identity, place)


def read_release(store: Store, identity: str, place: Place) -> StoredRelease | None:
    """The release that stands at a place; None if it is not there, was damaged or is another one."""
    held = (store.root, place)
    try:
        if held not in _KEPT:
            found = _read(store, place)
            if found is None:
                return None
            record, arrays = found
            if sum(array.nbytes for array in arrays.values()) < SMALL:
                _keep(store, place, record, arrays)
        else:
            text, arrays = _KEPT[held]
            record = json.loads(text)  # each reader has its own
        if record["id"] == identity:
            return StoredRelease(Release.from_parts(record.pop("release"), arrays), record)
        warn(store.root / "releases" / place[0], "is not the release of its name")
    except MALFORMED as error:
        warn(store.root / "releases" / place[0], f"holds no release at byte {place[1]} ({error})")
    return None


def _keep(store: Store, place: Place, record: Json, arrays: Arrays) -> None:
    if len(_KEPT) == KEPT:
        del _KEPT[next(iter(_KEPT))]
    _KEPT[store.root, place] = (json.dumps(record), arrays)


def _read(store: Store, place: Place) -> tuple[Json, Arrays] | None:
    found = store.releases.read(place)
    if found is None:
        warn(store.root / "releases" / place[0], f"is damaged at byte {place[1]}")
        return None
    record, body = found
    record["key"] = with_repetition(record["key"], record.pop("repetition"))
    record["release"]["domain"] = record.pop("domain")
    return record, unpacked(record.pop("arrays"), body)
