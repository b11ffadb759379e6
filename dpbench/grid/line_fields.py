"""The fields of a stored trial's line that a scan needs, found without parsing all of it.

It takes a fraction of the time, which counts at a million trials. A line that is in any way other than most are is
not for this: it is parsed. Keys are sorted, and a quote within a text has a backslash before it: so what is found
here is what the record says, not what something in it says.
"""

from __future__ import annotations

import json
import math
import re
import sys
from functools import lru_cache
from typing import NamedTuple

from dpbench.grid.records import ScoreData


class Scored(NamedTuple):
    """Of a trial: its status, epsilon that was spent (NaN: nothing is known), and its score of a metric, if any."""

    status: str
    spent_epsilon: float
    score: ScoreData | None


# The id, status and turn of a record, where the line starts that it shares with others, and what it scored, if asked.
LineFields = tuple[str, str, int, int, Scored | None]


# --- of any record that shares something ----------------------------------------------------------------------------

_HEAD = re.compile(rb'\{(?:"\w+": null, )*"id": "(\w+)", ')
_SHARED = re.compile(rb'"of": \[(\d{1,18}), \d+\]')
_TAIL = re.compile(rb', "status": "(\w+)"(?:, "turn": (\d{1,9}))?')
_TAIL_BYTES = 60  # it is not looked for in more


def fields_of(body: bytes) -> LineFields | None:
    """The fields of a line with this content (`log_file.content`); None if it must be parsed for them."""
    head, tail = _HEAD.match(body), _TAIL.fullmatch(body, max(body.rfind(b', "status": ', -_TAIL_BYTES), 0))
    shared = None if head is None else _SHARED.search(body, head.end())
    if head is None or tail is None or shared is None:
        return None
    return head[1].decode(), sys.intern(tail[1].decode()), int(tail[2] or 0), int(shared[1]), None


# --- of a trial that is done ----------------------------------------------------------------------------------------


def _object(*names: str, taken: str = "") -> str:
    """An object with these names, sorted, and flat values; that of the name `taken` is a group."""
    values = {name: "[^}]+" if name == names[-1] else "[^,]+" for name in names}
    values |= {taken: f"({values[taken]})"} if taken else {}
    members = ", ".join(f'"{name}": {value}' for name, value in values.items())
    return rf"\{{{members}\}}"


# A class of one character is passed over at once, so each stands for "up to the next": if that is not the end of the
# value, what follows does not fit, and the line is parsed.
_RUNTIME = _object("metrics_seconds", "model_seconds", "peak_mb", "release_peak_mb", "release_seconds")
_SPENT = _object("delta", "epsilon", "ex_post", "mu", "rho", taken="epsilon")


@lru_cache
def _done(metric: str) -> re.Pattern[bytes]:
    """A trial that is done, with a score of this metric without details: what it has besides its value, and that."""
    about = rf'"direction": "[^"]+", "name": {re.escape(json.dumps(metric))}, "unit": "[^"]*"'
    score, another = rf'\{{({about}), "value": ([^}}]+)\}}', r"\{[^}]*\}"
    return re.compile(
        r'\{"error": null, "id": "(\w+)", "notes": \{[^}]*\}, "of": \[(\d{1,18}), \d+\], "phase": null, '
        rf'"release_id": "[^"]+", "repetition": [^,]+, "runtime": {_RUNTIME}, '
        rf'"scores": \[(?:{another}, )*?{score}(?:, {another})*\], '
        rf'"spent": (?:null|{_SPENT}), "status": "done"(?:, "turn": (\d{{1,9}}))?'.encode()
    )


def fields_with_score(body: bytes, metric: str) -> LineFields | None:
    """The same, with the score of a metric if the trial is done and has one."""
    if (done := _done(metric).fullmatch(body)) is None:
        return fields_of(body)
    identity, shared, about, value, spent, turn = done.groups()
    try:
        spent_epsilon = math.nan if spent is None else _number(spent)
        score = _about(about).copy()
        score["value"] = float(value.strip(b'"'))
        scored = Scored("done", spent_epsilon, score)
    except (ValueError, TypeError):
        return fields_of(body)
    return identity.decode(), "done", int(turn or 0), int(shared), scored


@lru_cache
def _about(text: bytes) -> ScoreData:
    found: ScoreData = json.loads(b"{" + text + b"}")
    return found


@lru_cache
def _number(text: bytes) -> float:
    return float(json.loads(text))
