"""`dpbench list` and `dpbench show`: what the config folders hold."""

from __future__ import annotations

import argparse
import inspect

from dpbench.config import choices, part_of, resolve
from dpbench.errors import UserError

SHOWN = ("mechanism", "model", "metric")


def listing(arguments: argparse.Namespace) -> int:
    """Print the names of a group, each with the first comment or the title of its config."""
    group = arguments.group.removesuffix("s") if arguments.group != "limits" else "limits"
    found = choices(group, arguments.config_dir)
    width = max(map(len, found), default=0)
    for name, path in sorted(found.items()):
        print(f"{name:<{width}}  {_headline(path.read_text(encoding='utf-8'))}".rstrip())
    return 0


def _headline(text: str) -> str:
    """What a config says of itself: its first comment, else the title in its card."""
    for line in text.splitlines():
        if line.startswith("# ") and not line.startswith("# @package"):
            return line[2:].strip()
        if line.strip().startswith("title:"):
            return line.split(":", 1)[1].strip().strip("\"'")
    return ""


def show(arguments: argparse.Namespace) -> int:
    """Print what a mechanism, model or metric is: its docstring, and its parameters with their defaults."""
    named = [item.split("=", 1) for item in arguments.overrides if item.split("=", 1)[0] in SHOWN]
    if not named:
        raise UserError("say what to show, such as dpbench show mechanism=aim (or model=..., metric=...)")
    for group, name in named:
        part = part_of(group, name, arguments.config_dir)
        function = resolve(part.target)
        print(f"{group} {name}  ({part.target}, version {part.version})\n")
        print(inspect.getdoc(function) or "")
        reads = f"reads {' or '.join(part.needs)}" if part.needs else ""
        offers = f"offers {', '.join(part.offers)}" if part.offers else ""
        print("\n" + ", ".join(filter(None, [offers, reads])) if offers or reads else "")
        for parameter, value in part.parameters.items():
            print(f"  {group}.{name}.{parameter}={'null' if value is None else value}")
        if group == "mechanism" and part.takes("calibration") and "calibration" not in part.parameters:
            print("  calibration=[tight,paper] is an axis of the grid")
    return 0
