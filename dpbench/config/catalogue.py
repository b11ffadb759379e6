"""What there is to choose from: the configs of a group, each with what it says of itself, in a useful order."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from dpbench.config.registry import PARTS, check_own_files, choices, folder_of, read_yaml
from dpbench.config.schema import Part

TASKS = ("regression", "classification", "marginals", "synthetic data")  # what a mechanism's release is for
NOT_PRIVATE = "not private"


class Entry(NamedTuple):
    """A config: its name, the facts by which its group is ordered, and one sentence on it."""

    name: str
    facts: Mapping[str, str]
    about: str


def catalogue(group: str, config_dir: Path | None = None) -> list[Entry]:
    """The configs of a group, those of `config_dir` among them.

    Mechanisms have the facts `task` (of `TASKS`), `privacy` (the neighbouring relations under which they are private,
    or `NOT_PRIVATE`) and `releases` (the kinds of release), and stand in this order, the private ones first. Models
    have what each `reads`, experiments their `paper`, and all else nothing but a name.

    Raises `UserError` for a file of `config_dir` that cannot be a config.
    """
    if config_dir is not None:
        check_own_files(config_dir)
    entries = [_entry(group, name, path) for name, path in choices(group, config_dir).items()]
    return sorted(entries, key=_place)


def _entry(group: str, name: str, path: Path) -> Entry:
    part = Part.of(group, name, (read_yaml(path).get(name) or {}) if group in PARTS else {})
    facts: dict[str, str] = {}
    if group == "mechanism":
        privacy = ", ".join(part.relations) if part.private else NOT_PRIVATE
        facts = {"task": _task(part), "privacy": privacy, "releases": ", ".join(part.offers)}
    elif group == "model":
        facts = {"reads": " or ".join(part.needs)}
    elif group == "experiment":
        facts = {"paper": folder_of(path).rstrip("/")}
    return Entry(name, facts, headline(path.read_text(encoding="utf-8", errors="replace")))


def _task(part: Part) -> str:
    if {"rows", "distribution"} & set(part.offers):
        return "synthetic data"
    if "marginals" in part.offers:
        return "marginals"
    return "classification" if part.labels else "regression"


def _place(entry: Entry) -> tuple[object, ...]:
    """Where an entry stands among those of its group."""
    facts = entry.facts
    task = TASKS.index(facts["task"]) if "task" in facts else 0
    rest = [value for name, value in facts.items() if name not in ("task", "releases", "reads")]
    return facts.get("privacy") == NOT_PRIVATE, task, rest, entry.name


def headline(text: str) -> str:
    """What a config says of itself: the first sentence of its first comment, else the title in its card.

    >>> headline("# @package _global_\\n# AIM, after McKenna et\\n# al. 2022. It is\\n# slow.\\nname: a")
    'AIM, after McKenna et al. 2022'
    >>> headline("card:\\n  title: Adult")
    'Adult'
    """
    comment = re.search(r"(?:^# (?!@package).*\n)+", text, re.MULTILINE)
    if comment:
        return re.split(r"(?<!\bal)\. ", comment[0].removeprefix("# ").replace("\n# ", " "))[0].strip()
    title = re.search(r"^\s*title: *(.*)", text, re.MULTILINE)
    return title[1].strip("\"' ") if title else ""
