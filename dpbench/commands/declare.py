"""`dpbench data declare`: the domain file of a table, to be filled in, from a public table, or paid for."""

from __future__ import annotations

import argparse
import json
import logging
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dpbench.commands.release import counting
from dpbench.config import composed
from dpbench.config.sizes import delta_of, sample_of
from dpbench.data.cell_counts import MISSING_KIND, chosen_kind, from_places, kind_counts, place_counts
from dpbench.data.dataset import Dataset
from dpbench.data.domain_draft import IDENTIFIES, check_stray, from_public, skeleton
from dpbench.data.row_errors import check_total
from dpbench.data.tabular import read_frame
from dpbench.errors import UserError
from dpbench.files import Json, write_file
from dpbench.grid.odometer import DECLARED, Odometer, TableKey
from dpbench.grid.provenance import provenance
from dpbench.grid.records import spent_to_dict
from dpbench.privacy.budget import Budget
from dpbench.privacy.ledger import Ledger
from dpbench.privacy.stable_histograms import Stage, stable_cost, stable_histograms, stages
from dpbench.report.text import number

if TYPE_CHECKING:
    import pandas as pd

    from dpbench.data.csv_format import CsvFormat

log = logging.getLogger(__name__)
NUMBER = re.compile(r"(?!(?:19|20)\d\d$)[+-]?\d+(?:[.,]\d+)?")  # a year may well be a name
SHARES = {"kinds of": 0.2, "values of": 0.8}  # of mu^2: kinds have more rows each
HEAD = """\
# What {file} may contain, by a private release of it: epsilon = {epsilon} and delta = {delta}, between tables
# that differ by adding or removing a row. The ledger is in {ledger}. Names of columns were read as they are.
# Of a column only those cells count that are written like most of them. What few rows have is left out: of kinds of
# values less than about {kinds:.0f} rows, of levels, years and ranges of numbers less than about {values:.0f}.
# Add what is known of the field; dataset.outside=clip moves numbers to the bounds, and =drop leaves out rows.
"""


def declare(arguments: argparse.Namespace) -> int:
    """Print the skeleton of a domain file for a user's table, or write it where --out says."""
    given = [item for item in arguments.overrides if "=" not in item]
    if len(given) != 1:
        raise UserError("name the table: dpbench data declare my.csv")
    if arguments.out is not None and arguments.out.exists():
        raise UserError(f"--out {arguments.out}: there is such a file already, and it is kept; name a new one")
    settings = [item for item in arguments.overrides if "=" in item]
    config = composed(["dataset=csv", *settings], arguments.config_dir)
    node, file, public = config["dataset"], Path(given[0]).name, arguments.from_public
    frame, style = _read(node, given[0])
    if arguments.private is not None:
        if public is not None:
            raise UserError("--private pays for bounds and levels, --from-public takes them from elsewhere: give one")
        return _private(arguments, config, Dataset.of({**node, "path": given[0]}), frame, style)
    text = skeleton(frame, style, file)
    if public is not None:
        text = from_public(frame, _read(node, str(public))[0], style, file, public.name)
    if arguments.out is None:
        print(text, end="")
    else:
        print(write_file(arguments.out, text))
    return 0


def _read(node: dict[str, Any], path: str) -> tuple[pd.DataFrame, CsvFormat]:
    """The columns of a file that are not dropped, as texts, and how it is written."""
    frame, style = read_frame(Dataset.of({**node, "path": path}))
    check_total(frame, f"{path}: ")
    check_stray(frame, style, f"{path}: ")
    if numbers := [name for name in frame.columns if NUMBER.fullmatch(name)]:
        log.warning(
            "%s: the first line gives numbers as names of columns: %s. If that line is a row, put a line of names "
            "above it: no budget protects names",
            path,
            ", ".join(numbers[:3]),
        )
    return frame.drop(columns=[name for name in node["drop"] if name in frame.columns]), style


# --- paid for --------------------------------------------------------------------------------------------------------


def _private(
    arguments: argparse.Namespace, config: dict[str, Any], dataset: Dataset, frame: pd.DataFrame, style: CsvFormat
) -> int:
    """Write a domain file by a private release of the table, and its ledger; the odometer has both.

    Raises `UserError`; before any noise is drawn if the releases of the table would exceed their limit.
    """
    out, ledger_file = _places(arguments.out)
    if config["relation"] != "add_remove":
        raise UserError("--private is for tables that differ by adding or removing a row: relation=add_remove")
    budget = Budget(arguments.private, delta_of(config["delta"], dataset, sample_of(config["sample"])))
    if not np.isfinite(budget.epsilon):
        raise UserError("--private needs a finite epsilon")
    dropped = [name for name in frame.columns if IDENTIFIES.fullmatch(name)]
    frame = frame.drop(columns=dropped)
    if not len(frame.columns):
        raise UserError("all columns look like identifiers by their names: declare them by hand")
    steps, key, odometer = stages(budget, len(frame.columns), SHARES), TableKey.of(dataset), Odometer()
    begun = odometer.begin(key, DECLARED, budget)
    with counting(odometer, begun) as rng:
        ledger = Ledger()
        lines = _released(rng, ledger, steps, frame, style, dropped)
        cost = stable_cost(ledger, budget)
        odometer.end(key, begun, ledger, cost)
    about: Json = {"release": begun, "table": key.content, "budget": vars(budget), "spent": spent_to_dict(cost)}
    about |= {"stages": [{**vars(one), "threshold": one.threshold} for one in steps], "ledger": ledger.to_list()}
    content = json.dumps({**about, "provenance": provenance()}, indent=2, ensure_ascii=False) + "\n"
    kinds, values = (one.threshold for one in steps)
    spent = {"epsilon": number(budget.epsilon), "delta": number(budget.delta)}
    head = HEAD.format(file=key.label, ledger=ledger_file.name, kinds=kinds, values=values, **spent)
    for path in (write_file(ledger_file, content), write_file(out, head + lines)):
        print(path)
    print(f"epsilon = {number(cost.epsilon)} at delta = {number(cost.delta)} spent")
    return 0


def _places(out: Path | None) -> tuple[Path, Path]:
    """Where the domain file and the ledger go. Raises `UserError` if they cannot go there."""
    if out is None:
        raise UserError("what is paid for must have a place: give --out, such as --out my.yaml")
    ledger_file = out.with_name(f"{out.stem}.ledger.json")
    if ledger_file.exists():
        raise UserError(f"{ledger_file}, for the ledger, is there already, and is kept; name another --out")
    if not os.access(out.parent, os.W_OK):
        raise UserError(f"--out {out}: {out.parent} is no folder that can be written to")
    return out, ledger_file


def _released(
    rng: np.random.Generator,
    ledger: Ledger,
    steps: tuple[Stage, ...],
    frame: pd.DataFrame,
    style: CsvFormat,
    dropped: list[str],
) -> str:
    """The lines of a domain file: of each column the kind of its cells, and then the places of cells of that kind."""
    counts = {name: kind_counts(frame[name], style) for name in frame.columns}
    kinds = stable_histograms(rng, ledger, steps[0], counts)
    chosen = {name: chosen_kind(own) for name, own in kinds.items()}
    cells = {name: place_counts(frame[name], kind, style) for name, kind in chosen.items()}
    places = stable_histograms(rng, ledger, steps[1], cells)
    return from_places({name: (chosen[name], MISSING_KIND in kinds[name], places[name]) for name in chosen}, dropped)
