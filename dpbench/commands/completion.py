"""Help with settings: completion in the shell, by argcomplete, and suggestions for a word that is unknown."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path

from dpbench.config.experiment import SETTINGS
from dpbench.config.registry import choices, read_yaml
from dpbench.errors import shown
from dpbench.privacy.budget import CALIBRATIONS, NOISES, RELATIONS
from dpbench.resources import conf_dir

LISTS = ("mechanism", "model", "metric", "calibration")  # settings with several values, such as mechanism=[aim,mst]
GROUPS = ("mechanism", "model", "metric", "dataset", "experiment", "paper", "sample", "limits", "as")
WORDS = {"relation": RELATIONS, "calibration": CALIBRATIONS, "noise": NOISES}
NAMED = ("experiment", "paper", "mechanism", "model", "metric", "dataset", "figure", "table")  # likeliest first
NO_FOLDER = {"show", "check"}  # commands that take none


def offered(prefix: str, parsed_args: argparse.Namespace, **_: object) -> list[str]:
    """What a setting that begins with `prefix` can be: names of settings, configs of a group, words of a setting.

    >>> offered("relation=r", argparse.Namespace()), offered("mechanism=[exact,adas", argparse.Namespace())
    (['relation=replace'], ['mechanism=[exact,adassp]', 'mechanism=[exact,adassp,'])
    >>> offered("slurm.t", argparse.Namespace()), offered("mechanism.adassp.f", argparse.Namespace())
    (['slurm.throttle=', 'slurm.time='], ['mechanism.adassp.failure='])
    """
    name, given, value = prefix.partition("=")
    config_dir = getattr(parsed_args, "config_dir", None)
    if getattr(parsed_args, "command", "") == "data:data" and not given:
        return [one for one in choices("dataset") if one.startswith(name)]
    if not given:
        parent, dot = name.rpartition(".")[:2]
        settings = [f"{parent}.{one}" for one in _below(parent, config_dir)] if dot else {*SETTINGS, *GROUPS}
        return [f"{one}=" for one in sorted(settings) if one.startswith(name)]
    before = value[: max(value.rfind("["), value.rfind(",")) + 1] or "[" * (name in LISTS)
    known = choices(name, config_dir) if name in GROUPS else WORDS.get(name, ())
    found = [f"{name}={before}{one}" for one in known if one.startswith(value.removeprefix(before))]
    return [f"{found[0]}]", f"{found[0]},"] if before and len(found) == 1 else found


def _below(parent: str, config_dir: Path | None) -> list[str]:
    """The settings below another: of sample and limits, of a part such as mechanism.aim, else those of config.yaml."""
    group, _, part = parent.partition(".")
    if group in GROUPS:
        path = choices(group, config_dir).get(part or "full")
        config = read_yaml(path) if path else {}
        settings = config.get(part) if part else config
    else:
        settings = read_yaml(conf_dir() / "config.yaml").get(parent)
    names = settings if isinstance(settings, dict) else {}
    return [name for name in names if name != "name" and not name.startswith("_")]


# --- words that cannot be read --------------------------------------------------------------------------------------


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
