"""`dpbench data`: fetch, verify, describe and check data sets."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path

from dpbench.config import choices, composed
from dpbench.config.registry import read_yaml
from dpbench.config.sizes import delta_of, epsilons_of, sample_of
from dpbench.data.croissant import croissant
from dpbench.data.dataset import Dataset
from dpbench.data.fetch import fetch, verify
from dpbench.data.load import card, check
from dpbench.errors import UserError, check_known
from dpbench.files import Json


def data(arguments: argparse.Namespace) -> int:
    """Run one action on the data sets named (all of them, if none is)."""
    if arguments.action == "declare":
        from dpbench.commands.declare import declare

        return declare(arguments)
    names = [item for item in arguments.overrides if "=" not in item]
    settings = [item for item in arguments.overrides if "=" in item]
    known = choices("dataset", arguments.config_dir)
    for name in names:
        check_known("dataset", name, known)
    if arguments.action == "check":
        config = composed([f"dataset={names[0] if names else 'csv'}", *settings], arguments.config_dir)
        dataset, sample = Dataset.of(config["dataset"]), sample_of(config["sample"])
        delta = delta_of(config["delta"], dataset, sample)
        budgets = [(epsilon, delta) for epsilon in epsilons_of(config, delta)]
        print(check(dataset, config["sample"]["test_rows"], budgets))
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


def _declared(name: str, known: Mapping[str, Path]) -> Json:
    """What the file of a data set says, over what those say that it builds on; to compose it would take longer."""
    own = read_yaml(known[name])
    bases = [_declared(base, known) for base in own.get("defaults") or [] if base in known]
    found: Json = {"name": name}
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
