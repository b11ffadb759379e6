"""What is recorded of an error: a status, and a message with what happened and where in the user's code."""

from __future__ import annotations

import os
import re
import traceback
from pathlib import Path

from dpbench.errors import ContractError, NoEstimateError, UnconvergedError, UserError
from dpbench.extras import missing_extra
from dpbench.grid.records import Failure
from dpbench.grid.spending import OverspentError
from dpbench.resources import PACKAGE

SENTENCES = (UserError, NoEstimateError, UnconvergedError, ContractError, OverspentError)  # their text is complete
LONGEST = 2000  # characters of a message
_HERE = str(Path(__file__).parent)
_LIBRARY = str(Path(os.__file__).parent)
_PATH = re.compile(r"(?<![\w:/.])~?(?:/[^\s/'\":;,()<>]+)+/([^\s/'\":;,()<>]+)")


def status_of(error: BaseException) -> str:
    """The status of a trial that raised this."""
    if isinstance(error, NoEstimateError):
        return "no_estimate"
    if isinstance(error, UnconvergedError):
        return "unconverged"
    return "oom" if isinstance(error, MemoryError) else "failed"


def described(error: BaseException) -> Failure:
    """Type, message and traceback of an error, without the folders of this machine."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith(_HERE)]
    text = missing_extra(error) or _text(error)
    if not isinstance(error, SENTENCES) and not missing_extra(error):
        place = _place(frames)
        text = f"{type(error).__name__}{': ' if text else ''}{text}" + (f" ({place})" if place else "")
    lines = [f"{_short(frame.filename)}:{frame.lineno} {frame.name}: {frame.line}" for frame in frames]
    return Failure(type(error).__name__, text, "\n".join(lines))


def _text(error: BaseException) -> str:
    """The error's own text, paths cut to what is below the project, or to the file."""
    text = " ".join(map(str, error.args)) if isinstance(error, SystemExit) else str(error)
    text = _PATH.sub(lambda match: _short(match[0]), text)
    return text if len(text) <= LONGEST else text[:LONGEST] + " ... (cut)"


def _place(frames: list[traceback.FrameSummary]) -> str:
    """File and line of the innermost frame in the user's own code, else in the package's, else anywhere."""

    def own(name: str) -> bool:
        return not name.startswith((_LIBRARY, "<")) and "site-packages" not in name

    mine = [frame for frame in frames if own(frame.filename) and not frame.filename.startswith(str(PACKAGE))]
    ours = [frame for frame in frames if frame.filename.startswith(str(PACKAGE))]
    best = (mine or ours or frames)[-1:]
    return f"{_short(best[0].filename)}:{best[0].lineno}" if best else ""


def _short(filename: str) -> str:
    for root in ("site-packages/", f"{PACKAGE.parent}/"):
        if root in filename:
            return filename.split(root, 1)[1]
    return filename.rsplit("/", 1)[-1]
