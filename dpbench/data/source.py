"""`Source`: a file that a dataset is read from and that we do not ship."""

from __future__ import annotations

import re
from dataclasses import dataclass

from dpbench.errors import UserError


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
