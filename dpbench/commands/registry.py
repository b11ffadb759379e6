"""`dpbench list` and `dpbench show`: what the config folders hold."""

from __future__ import annotations

import argparse
import inspect
import re

from dpbench.config import choices, part_of
from dpbench.config.registry import PARTS, folder_of
from dpbench.config.reports import GROUPS, kinds
from dpbench.errors import UserError, check_known


def listing(arguments: argparse.Namespace) -> int:
    """Print the names of a group, each with the first comment or the title of its config; experiments by paper."""
    group = arguments.group if arguments.group in ("limits", "as") else arguments.group.removesuffix("s")
    found = choices(group, arguments.config_dir)
    papers = {name: folder_of(path).rstrip("/") if group == "experiment" else "" for name, path in found.items()}
    width, paper_width = (max(map(len, texts), default=0) for texts in (found, papers.values()))
    for name, path in sorted(found.items(), key=lambda item: (papers[item[0]], item[0])):
        paper = f"  {papers[name]:<{paper_width}}" if paper_width else ""
        print(f"{name:<{width}}{paper}  {_headline(path.read_text(encoding='utf-8', errors='replace'))}".rstrip())
    return 0


def _headline(text: str) -> str:
    """What a config says of itself: the first sentence of its first comment, else the title in its card.

    >>> _headline("# @package _global_\\n# AIM, after McKenna et\\n# al. 2022. It is\\n# slow.\\nname: a")
    'AIM, after McKenna et al. 2022'
    >>> _headline("card:\\n  title: Adult")
    'Adult'
    """
    comment = re.search(r"(?:^# (?!@package).*\n)+", text, re.MULTILINE)
    if comment:
        return re.split(r"(?<!\bal)\. ", comment[0].removeprefix("# ").replace("\n# ", " "))[0].strip()
    title = re.search(r"^\s*title: *(.*)", text, re.MULTILINE)
    return title[1].strip("\"' ") if title else ""


def show(arguments: argparse.Namespace) -> int:
    """Print what a part or a kind of figure is: its docstring, and its parameters or keys."""
    named = [item.split("=", 1) for item in arguments.overrides if item.split("=", 1)[0] in (*PARTS, *GROUPS)]
    if not named:
        raise UserError("say what to show, such as dpbench show mechanism=aim (or model, metric, figure, table)")
    for group, name in named:
        if group in PARTS:
            _show_part(group, name, arguments)
        else:
            _show_kind(group, name)
    return 0


def _show_part(group: str, name: str, arguments: argparse.Namespace) -> None:
    part = part_of(group, name, arguments.config_dir)
    print(f"{group} {name}  ({part.target})\n")
    print(inspect.getdoc(part.function) or "")
    reads = f"reads {' or '.join(part.needs)}" if part.needs else ""
    offers = f"offers {', '.join(part.offers)}" if part.offers else ""
    proves = f"private under {' and '.join(part.relations)}" if part.relations and part.private else ""
    print("\n" + ", ".join(filter(None, [offers, proves, reads])) if offers or reads else "")
    for parameter, value in part.parameters.items():
        print(f"  {group}.{name}.{parameter}={'null' if value is None else value}")
    if group == "mechanism" and part.takes("calibration") and "calibration" not in part.parameters:
        print("  calibration=[tight,paper] is an axis of the grid")


def _show_kind(group: str, name: str) -> None:
    known = {found.name: found for found in kinds().values() if found.group == group}
    check_known(group, name, known)
    kind = known[name]
    print(f"{group} {name}  ({kind.target})\n")
    print(inspect.getdoc(kind.function) or "")
    for verb, keys in (("needs", kind.required), ("may have", kind.optional)):
        if keys:
            print(f"\na spec {verb} " + ", ".join(f"{key} ({one.replace('|', 'or')})" for key, one in keys.items()))
