"""What was found once, kept from one process to the next in a file of the cache folder; it can be lost without harm."""

from __future__ import annotations

import json
import logging
from contextlib import suppress
from pathlib import Path
from typing import Any

from dpbench.errors import UserError
from dpbench.files import write_file

MOST = 2_000  # answers that are kept

log = logging.getLogger(__name__)


class Memo:
    """Answers (JSON) by key, as they stand in a file, and those that are added; the last `MOST` are kept."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._answers = self._stored()

    def get(self, key: str) -> Any:
        """The answer, None where there is none."""
        return self._answers.get(key)

    def add(self, key: str, answer: Any) -> None:
        """Hold an answer, until `keep` writes it."""
        self._answers[key] = answer

    def keep(self) -> None:
        """Write what was added beside what others wrote meanwhile; where that cannot be done, it is found anew."""
        together = {**self._stored(), **self._answers}
        with suppress(UserError):
            write_file(self._path, json.dumps(dict(list(together.items())[-MOST:])))

    def _stored(self) -> dict[str, Any]:
        with suppress(OSError, ValueError, RecursionError):
            found = json.loads(self._path.read_text())
            return found if isinstance(found, dict) else {}
        return {}
