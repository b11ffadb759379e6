"""`dpbench audit`: what mechanisms are asked for, what their ledgers say, and what their answers measurably cost."""

from __future__ import annotations

import argparse
import math
import shlex
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from dpbench.commands.plugins import ROWS, made, tiny_settings, tiny_table
from dpbench.config import Part, composed
from dpbench.config.parts import parts_of
from dpbench.config.registry import declared
from dpbench.config.sizes import delta_of, epsilons_of, sample_of
from dpbench.config.values import listed
from dpbench.errors import UserError, bounded, text_of
from dpbench.grid.audits import AuditRecord, store_audit
from dpbench.grid.provenance import provenance
from dpbench.mechanisms.audit import LEAST_RUNS, Audit, audit, not_audited
from dpbench.mechanisms.one_run import corners, levels, one_run_audit
from dpbench.privacy.budget import Budget

EPSILON = "epsilon=[10]"  # unless another is set: at 1, thousands of runs show as much as hundreds do at 10
RELEASES = "epsilon=[1]"  # the same for an audit of releases: what some hundred guesses can tell ends at 4 or so
CONFIDENCE = 0.95
CANARIES = {"levels": 100, "corners": 50}  # in a table
ATTRIBUTES = 200  # of corners
SMALL: dict[str, Any] = {  # settings that make a run large or do not fit a tiny table, unless others are given
    **{"batch_size": ROWS // 4, "batch_sizes": [None, ROWS // 4]},
    **{"hidden": [16, 16], "latent": 8, "components": 20, "most": 10, "pretraining": 1, "gap": 1e6},
}


class Case(NamedTuple):
    """A mechanism under one budget; its calibration, if it has any, is among its parameters."""

    part: Part
    budget: Budget

    @property
    def name(self) -> str:
        """Everything but the epsilon."""
        return " ".join(filter(None, (self.part.name, self.calibration, self.budget.relation)))

    @property
    def calibration(self) -> str:
        """Empty if it has none."""
        return str(self.part.parameters.get("calibration", ""))


def run(arguments: argparse.Namespace) -> int:
    """Audit the mechanisms that the settings name, all private ones if they name none; a line each.

    The exit code is 1 if one measurably costs more than its ledger says, or failed.
    """
    if arguments.runs < LEAST_RUNS:
        raise UserError(f"--runs {arguments.runs}: an audit takes {LEAST_RUNS} runs at least on each neighbour")
    config, cases = _cases(arguments)
    if not cases:
        raise UserError(
            "nothing to audit: name a private mechanism, and a calibration and a relation that it has, or none of them"
        )
    width = max(len(case.name) for case in cases)
    print(f"{'mechanism':<{width}}  {'asked':>7}  {'spent':>7}  {'measured':>8}  by")
    good = True
    for case in cases:
        start = f"{case.name:<{width}}  {case.budget.epsilon:>7.4g}"
        try:
            if arguments.releases:
                found: Audit | str = _of_releases(case, arguments, sample_of(config["sample"]).train_rows)
            else:
                found = _of_answers(case, arguments.runs)
        except Exception as error:  # whatever a mechanism raises is a finding
            print(f"{start}  failed: {bounded(str(error) if isinstance(error, UserError) else text_of(error))}")
            good = False
            continue
        if isinstance(found, str):
            print(f"{start}  not audited: {found}; see --releases", flush=True)
            continue
        told = "; ".join(filter(None, (f"{found.estimate}, {found.neighbour}", _verdict(found, case))))
        print(f"{start}  {found.spent.epsilon:>7.4g}  {found.epsilon:>8.3f}  {told}", flush=True)
        good &= found.epsilon <= found.spent.epsilon
        if arguments.store:
            store_audit(Path(config["results"]), _record(case, found, arguments))
    print(f"measured: epsilon is at least this, with a confidence of {CONFIDENCE:.0%} each, at the delta of the budget")
    return 0 if good else 1


def _cases(arguments: argparse.Namespace) -> tuple[dict[str, Any], list[Case]]:
    """The settings, and what they name."""
    overrides, config_dir = arguments.overrides, arguments.config_dir
    given = {item.partition("=")[0] for item in overrides}
    private = [name for name, node in declared("mechanism", config_dir).items() if node.get("_private_", True)]
    named = [] if given & {"mechanism", "experiment"} else [f"mechanism=[{','.join(private)}]"]
    epsilon = RELEASES if arguments.releases else EPSILON
    config = composed([*tiny_settings(), epsilon, *named, *overrides], config_dir)
    delta = delta_of(config, sample_of(config["sample"]))
    epsilons, calibrations = epsilons_of(config, delta), listed(config["calibration"]) if "calibration" in given else []
    cases = []
    for part in parts_of("mechanism", config, config_dir):
        relations = [name for name in part.relations if "relation" not in given or name == config["relation"]]
        small = {name: value for name, value in SMALL.items() if f"mechanism.{part.name}.{name}" not in given}
        own = {**part.parameters, **{name: value for name, value in small.items() if part.parameters.get(name)}}
        parts = [replace(part, parameters=own)]
        if part.takes("calibration") and "calibration" not in part.parameters:
            asked = [name for name in calibrations or part.calibrations if name in part.calibrations]
            parts = [replace(part, parameters={**own, "calibration": name}) for name in asked]
        chosen = product(parts if part.private else [], epsilons, relations)
        cases += [Case(one, Budget(epsilon, delta, relation)) for one, epsilon, relation in chosen]
    return config, cases


def _of_answers(case: Case, runs: int) -> Audit | str:
    """What was found, or why nothing can be."""
    part, budget = case
    make = partial(made, part, budget=budget)
    table = tiny_table(labels=part.labels)
    reason = not_audited(make, table, budget.relation)
    return reason or audit(make, table, budget.delta, relation=budget.relation, runs=runs, confidence=CONFIDENCE)


def _of_releases(case: Case, arguments: argparse.Namespace, rows: int) -> Audit:
    """What was found with twice as many coins as there would be runs on each neighbour; of levels in about `rows`."""
    part, budget = case
    count, one_hot = CANARIES[arguments.canaries], arguments.canaries == "levels"
    canaries = levels(count, rows, labels=part.labels) if one_hot else corners(count, ATTRIBUTES)
    make = partial(made, part, budget=budget, canaries=canaries)
    runs = math.ceil(2 * arguments.runs / count)
    return one_run_audit(make, canaries, budget.delta, relation=budget.relation, runs=runs, confidence=CONFIDENCE)


def _line(arguments: argparse.Namespace) -> str:
    """The command, without where it stores and finds what it audits."""
    settings = [item for item in arguments.overrides if not item.startswith("results=")]
    how = ["--releases", "--canaries", arguments.canaries] if arguments.releases else []
    return shlex.join(["dpbench", "audit", *settings, "--runs", str(arguments.runs), *how])


def _record(case: Case, found: Audit, arguments: argparse.Namespace) -> AuditRecord:
    code, budget = provenance(), case.budget
    return AuditRecord(
        case.part.name,
        case.calibration,
        budget.relation,
        budget.epsilon,
        budget.delta,
        found.spent.epsilon,
        found.epsilon,
        found.estimate,
        CONFIDENCE,
        found.runs,
        found.neighbour,
        case.part.parameters,
        _line(arguments),
        code["commit"],
        code["dirty"],
        arguments.canaries if arguments.releases else "",
    )


def _verdict(found: Audit, case: Case) -> str:
    if found.epsilon > found.spent.epsilon:
        return "more than its ledger says"
    return "more than was asked for" if found.epsilon > case.budget.epsilon else ""
