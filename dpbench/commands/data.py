"""`dpbench data`: fetch, verify, describe and check data sets."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpbench.config import choices, composed
from dpbench.config.registry import read_yaml
from dpbench.data.croissant import croissant
from dpbench.data.dataset import Dataset
from dpbench.data.faults import check_total
from dpbench.data.fetch import fetch, verify
from dpbench.data.load import card, check
from dpbench.data.skeleton import from_public, skeleton
from dpbench.data.tabular import read_frame
from dpbench.errors import UserError, check_known
from dpbench.files import write_file

if TYPE_CHECKING:
    import pandas as pd

    from dpbench.data.csv_format import CsvFormat


def data(arguments: argparse.Namespace) -> int:
    """Run one action on the data sets named (all of them, if none is)."""
    if arguments.action == "declare":
        return _declare(arguments)
    names = [item for item in arguments.overrides if "=" not in item]
    settings = [item for item in arguments.overrides if "=" in item]
    known = choices("dataset", arguments.config_dir)
    for name in names:
        check_known("dataset", name, known)
    if arguments.action == "check":
        config = composed([f"dataset={names[0] if names else 'csv'}", *settings], arguments.config_dir)
        print(check(Dataset.of(config["dataset"]), config["sample"]["test_rows"]))
        return 0
    chosen = names or [name for name in known if name != "csv"]
    if arguments.action in ONE and not names:
        example = f"dpbench data {arguments.action} adult"
        raise UserError(f"name a data set, such as {example}; known: {', '.join(sorted(known))}")
    if arguments.action == "list" and not settings:
        for name in chosen:
            print("{name}: {card[title]}".format_map(_declared(name, known)))
        return 0
    healthy = True
    for name in chosen:
        dataset = Dataset.of(composed([f"dataset={name}", *settings], arguments.config_dir)["dataset"])
        healthy &= ACTIONS[arguments.action](dataset, arguments.offline)
    return 0 if healthy else 1


def _declare(arguments: argparse.Namespace) -> int:
    """Print the skeleton of a domain file for a user's table, or write it where --out says."""
    given = [item for item in arguments.overrides if "=" not in item]
    if len(given) != 1:
        raise UserError("name the table: dpbench data declare my.csv")
    settings = [item for item in arguments.overrides if "=" in item]
    node = composed(["dataset=csv", *settings], arguments.config_dir)["dataset"]

    def read(path: str) -> tuple[pd.DataFrame, CsvFormat]:
        frame, style = read_frame(Dataset.of({**node, "path": path}))
        check_total(frame, f"{path}: ")
        if unnamed := [name for name in frame.columns if name.startswith("Unnamed: ")]:
            raise UserError(
                f"{path}: {len(unnamed)} of {len(frame.columns)} columns have no name in line {style.header}; if that "
                f"is a title above the names, dataset.header={style.header + 1} reads it"
            )
        return frame.drop(columns=[name for name in node["drop"] if name in frame.columns]), style

    frame, style = read(given[0])
    file, public = Path(given[0]).name, arguments.from_public
    text = skeleton(frame, style, file)
    if public is not None:
        text = from_public(frame, read(str(public))[0], style, file, public.name)
    if arguments.out is None:
        print(text, end="")
        return 0
    if arguments.out.exists():
        raise UserError(f"--out {arguments.out}: there is such a file already, and it is kept; name a new one")
    print(write_file(arguments.out, text))
    return 0


def _declared(name: str, known: Mapping[str, Path]) -> dict[str, Any]:
    """What the file of a data set says, over what those say that it builds on; to compose it would take longer."""
    own = read_yaml(known[name])
    bases = [_declared(base, known) for base in own.get("defaults") or [] if base in known]
    found: dict[str, Any] = {"name": name}
    for node in (*bases, own):
        found |= {**node, "card": {**(found.get("card") or {}), **(node.get("card") or {})}}
    return found


def _fetch(dataset: Dataset, offline: bool) -> bool:
    for source in dataset.sources:
        path = fetch(source, offline=offline, alternative=dataset.alternative)
        print(f"{dataset.name}: {source.file} is {path}")
    if not dataset.sources:
        print(f"{dataset.name}: nothing to fetch")
    return True


def _verify(dataset: Dataset, offline: bool) -> bool:
    states = verify(dataset.sources)
    for file, state, where in states:
        print(f"{dataset.name}: {file}: {state} {where}".rstrip())
    return all(state == "ok" for _, state, _ in states)


def _card(dataset: Dataset, offline: bool) -> bool:
    print(card(dataset))
    return True


def _croissant(dataset: Dataset, offline: bool) -> bool:
    print(json.dumps(croissant(dataset), indent=2, ensure_ascii=False))
    return True


def _list(dataset: Dataset, offline: bool) -> bool:
    print(f"{dataset.name}: {dataset.card['title']}")
    return True


ONE = ("card", "croissant")  # of a data set that is named
ACTIONS = {"fetch": _fetch, "verify": _verify, "card": _card, "croissant": _croissant, "list": _list}
