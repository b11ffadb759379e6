"""`dpbench audit`: what mechanisms are asked for, what their ledgers say, and what their answers measurably cost."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import NamedTuple

from dpbench.commands.plugins import made, tiny_settings, tiny_table
from dpbench.config import Part, composed
from dpbench.config.parts import parts_of
from dpbench.config.registry import declared
from dpbench.config.sizes import delta_of, epsilons_of, sample_of
from dpbench.config.values import listed
from dpbench.errors import UserError, bounded, text_of
from dpbench.mechanisms.audit import LEAST_RUNS, Audit, audit, not_audited
from dpbench.privacy.budget import Budget

EPSILON = "epsilon=[10]"  # unless another is set: at 1, thousands of runs show as much as hundreds do at 10
CONFIDENCE = 0.95


class Case(NamedTuple):
    """A mechanism under one budget; its calibration, if it has any, is among its parameters."""

    part: Part
    budget: Budget

    @property
    def name(self) -> str:
        """Everything but the epsilon."""
        calibration = self.part.parameters.get("calibration", "")
        return " ".join(filter(None, (self.part.name, calibration, self.budget.relation)))


def run(arguments: argparse.Namespace) -> int:
    """Audit the mechanisms that the settings name, all private ones if they name none; a line each.

    The exit code is 1 if one measurably costs more than its ledger says, or failed.
    """
    if arguments.runs < LEAST_RUNS:
        raise UserError(f"--runs {arguments.runs}: an audit takes {LEAST_RUNS} runs at least on each neighbour")
    cases = list(_cases(arguments.overrides, arguments.config_dir))
    if not cases:
        raise UserError(
            "nothing to audit: name a private mechanism, and a calibration and a relation that it has, or none of them"
        )
    width = max(len(case.name) for case in cases)
    print(f"{'mechanism':<{width}}  {'asked':>7}  {'spent':>7}  {'measured':>8}  ({arguments.runs} runs each)")
    good = True
    for case in cases:
        start = f"{case.name:<{width}}  {case.budget.epsilon:>7.4g}"
        try:
            found = _audited(case, arguments.runs)
        except Exception as error:  # whatever a mechanism raises is a finding
            print(f"{start}  failed: {bounded(str(error) if isinstance(error, UserError) else text_of(error))}")
            good = False
            continue
        if isinstance(found, str):
            print(f"{start}  not audited: {found}", flush=True)
            continue
        print(f"{start}  {found.spent.epsilon:>7.4g}  {found.epsilon:>8.3f}  {_verdict(found, case)}", flush=True)
        good &= found.epsilon <= found.spent.epsilon
    print(f"measured: epsilon is at least this, with a confidence of {CONFIDENCE:.0%} each, at the delta of the budget")
    return 0 if good else 1


def _cases(overrides: list[str], config_dir: Path | None) -> Iterator[Case]:
    given = {item.partition("=")[0] for item in overrides}
    private = [name for name, node in declared("mechanism", config_dir).items() if node.get("_private_", True)]
    named = [] if given & {"mechanism", "experiment"} else [f"mechanism=[{','.join(private)}]"]
    config = composed([*tiny_settings(), EPSILON, *named, *overrides], config_dir)
    delta = delta_of(config, sample_of(config["sample"]))
    epsilons, calibrations = epsilons_of(config, delta), listed(config["calibration"]) if "calibration" in given else []
    for part in parts_of("mechanism", config, config_dir):
        relations = [name for name in part.relations if "relation" not in given or name == config["relation"]]
        parts = [part]
        if part.takes("calibration") and "calibration" not in part.parameters:
            asked = [name for name in calibrations or part.calibrations if name in part.calibrations]
            parts = [replace(part, parameters={**part.parameters, "calibration": name}) for name in asked]
        for one, epsilon, relation in product(parts if part.private else [], epsilons, relations):
            yield Case(one, Budget(epsilon, delta, relation))


def _audited(case: Case, runs: int) -> Audit | str:
    """What was found, or why nothing can be."""
    part, budget = case
    make = partial(made, part, budget=budget)
    table = tiny_table(labels=part.labels)
    reason = not_audited(make, table, budget.relation)
    return reason or audit(make, table, budget.delta, relation=budget.relation, runs=runs, confidence=CONFIDENCE)


def _verdict(found: Audit, case: Case) -> str:
    if found.epsilon > found.spent.epsilon:
        return f"more than its ledger says: {found.neighbour}"
    if found.epsilon > case.budget.epsilon:
        return f"more than was asked for: {found.neighbour}"
    return ""
