"""What was found once, kept in a file from one process to the next; it can be lost without harm."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

from dpbench.files import Json, write_file

MOST = 2_000  # answers that are kept


class Memo:
    """Answers (JSON) by key, as they stand in a file, and those that are added; the last `MOST` are kept."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known, self._added = self._stored(), Json()

    def get(self, key: str) -> Any:
        """The answer, None where there is none."""
        return self._added.get(key, self._known.get(key))

    def add(self, key: str, answer: Any) -> None:
        """Hold an answer, until `keep` writes it."""
        self._added[key] = answer

    def keep(self) -> None:
        """Write what was added, if anything, to what others have written meanwhile. Raises `UserError` if it cannot."""
        if self._added:
            self._known, self._added = {**self._stored(), **self._added}, {}
            write_file(self._path, json.dumps(dict(list(self._known.items())[-MOST:])))

    def _stored(self) -> Json:
        with suppress(OSError, ValueError, RecursionError):
            found = json.loads(self._path.read_text())
            return found if isinstance(found, dict) else {}
        return {}
