"""`Source`: a file that a dataset is read from and that we do not ship."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from dpbench.errors import UserError, text_of
from dpbench.targets import resolve

Part = TypeVar("Part")


@dataclass(frozen=True)
class Source:
    """A file that we do not ship: `file` is "<dataset>/<name>"; `sha256` is of its uncompressed bytes.

    With `members`, the file is a table joined from these CSV members of the zip file at `url`. Its rows may then be in
    any order: `sha256` is of its bytes after `zipped.sort_rows`.

    Where no checksum is known, `sha256` is empty and the file is a zip file: any that contains the undamaged member
    `holds` is accepted, and the checksum of the downloaded one is kept next to it. `fetched_by` are the arguments with
    which `dpbench data fetch` gets the file, for messages.

    Raises `UserError` for a malformed name or checksum.
    """

    file: str
    url: str
    sha256: str
    members: tuple[str, ...] = ()
    holds: str = ""
    fetched_by: str = ""

    def __post_init__(self) -> None:
        """Refuse a name that could leave the cache folder, and an invalid checksum."""
        if not re.fullmatch(r"\w[\w.-]*(/\w[\w.-]*)+", self.file):
            raise UserError(f"a source's file must be <dataset>/<name>, such as adult/adult.data: {self.file!r}")
        if not re.fullmatch(r"[0-9a-f]{64}", self.sha256) and (self.sha256 or not self.holds):
            raise UserError(f"{self.file}: sha256 must be 64 lower-case hex digits, not {self.sha256!r}")

    @property
    def name(self) -> str:
        """The last part of `file`."""
        return self.file.split("/")[-1]


def sources_of(config: Mapping[str, Any]) -> tuple[Source, ...]:
    """The source files in a dataset's config.

    They are listed under `sources`; or named by a function of the config, the `_target_` of `sources`.

    Raises `UserError` for an entry without file, url or sha256.
    """
    entries = config.get("sources") or ()
    if isinstance(entries, Mapping):
        return computed(config, "sources", Source)
    found, name = [], str(config.get("name") or "")
    for entry in entries:
        if not isinstance(entry, Mapping) or set(entry) - {"members"} != {"file", "url", "sha256"}:
            raise UserError(
                f"each of a dataset's sources needs file, url and sha256 only (and may have members): {entry}"
            )
        file, url, sha256 = (str(entry[key]) for key in ("file", "url", "sha256"))
        found.append(Source(file, url, sha256, tuple(entry.get("members") or ()), fetched_by=name))
    return tuple(found)


def computed(config: Mapping[str, Any], key: str, kind: type[Part]) -> tuple[Part, ...]:
    """The list that the `_target_` function of `config[key]` returns for the config, each item of this kind.

    Raises `UserError` if it may not be called (see `dpbench.targets.resolve`), fails, or returns something else.
    """
    where = f"dataset={config.get('name')}: {key}._target_"
    function = resolve("dataset", config[key].get("_target_"), where)
    try:
        items = tuple(function(config))
    except (TypeError, AttributeError, LookupError, ValueError) as error:
        raise UserError(f"{where} {config[key]['_target_']} failed: {text_of(error)}") from error
    if not all(isinstance(item, kind) for item in items):
        raise UserError(f"{where} {config[key]['_target_']} must return a list of {kind.__name__}")
    return items
