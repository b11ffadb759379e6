"""What to say of a word of the line that is neither a setting nor a folder."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path

from dpbench.config.registry import choices
from dpbench.errors import shown

NAMED = ("experiment", "paper", "mechanism", "model", "metric", "dataset", "figure", "table")  # likeliest first
NO_FOLDER = {"show", "check"}  # commands that take none


def hint(word: str, line: Sequence[str], config_dir: Path | None) -> str:
    """What is wrong with `word`, the first of `line` (a command and what follows it) that cannot be read.

    Either the shell has cut a setting at its spaces, or the word is the name of a config, perhaps mistyped.
    """
    if (whole := _cut(word, line)) is not None:
        plain = whole.replace(" ", "")
        return f"the shell has cut {shown(whole)} at its spaces: write {plain}, without any, or put it in quotes"
    problem = "no setting" if line[0] in NO_FOLDER else "no such folder"
    meant = [f"{group}={name}" for group, name in _meant(word, config_dir)]
    return f"{word}: {problem} (settings look like name=value)" + (
        f"; did you mean {' or '.join(meant)}?" if meant else ""
    )


def _cut(word: str, line: Sequence[str]) -> str | None:
    """The setting that `word` is a piece of: one with an open bracket before it, up to where all are closed."""
    place = list(line).index(word)
    for start in range(place - 1, 0, -1):
        if "=" in line[start] and _open(line[start]) > 0:
            ends = (end for end in range(place, len(line)) if _open(" ".join(line[start : end + 1])) <= 0)
            return " ".join(line[start : next(ends, len(line) - 1) + 1])
    return None


def _open(text: str) -> int:
    """How many brackets are open at its end."""
    return sum(text.count(sign) for sign in "[{(") - sum(text.count(sign) for sign in "]})")


def _meant(word: str, config_dir: Path | None) -> list[tuple[str, str]]:
    """The group and name of the configs that are called so; else of the one that is called nearly so."""
    known = {group: list(choices(group, config_dir)) for group in NAMED}
    if called := [(group, word) for group, names in known.items() if word in names]:
        return called
    near = get_close_matches(word[:200], [name for names in known.values() for name in names], n=1, cutoff=0.75)
    return [(group, near[0]) for group, names in known.items() if near and near[0] in names][:1]
