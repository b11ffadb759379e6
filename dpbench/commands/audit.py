"""`dpbench audit`: lower bounds on the epsilon of mechanisms, with the target and what their ledgers say."""

from __future__ import annotations

import argparse
import math
import shlex
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np

from dpbench.audit.exact_audit import PATHS, exact_audit
from dpbench.audit.neighbours import linked_table, odd_tables, random_table, two_ends
from dpbench.audit.one_run import corners, levels, one_run_audit
from dpbench.audit.sampled_audit import LEAST_RUNS, Audit, Make, audit, not_audited
from dpbench.audit.tilted_audit import tilted_audit
from dpbench.config import Part, composed
from dpbench.config.parts import declared_parts, parts_of
from dpbench.config.sizes import delta_of, epsilons_of, sample_of
from dpbench.config.values import listed
from dpbench.data.dataset import Dataset
from dpbench.data.domain import Attribute, Domain
from dpbench.data.encode import Design
from dpbench.data.table import Table
from dpbench.errors import NoEstimateError, UserError, bounded, text_of
from dpbench.files import Json
from dpbench.grid.audits import AuditRecord, store_audit
from dpbench.grid.code import code_of
from dpbench.grid.provenance import provenance
from dpbench.grid.tiny_tables import made, small, tiny_settings, tiny_table
from dpbench.privacy.budget import Budget

EPSILON = "epsilon=[10]"  # unless another is set: at 1, thousands of runs show as much as hundreds do at 10
RELEASES = "epsilon=[1]"  # the same for an audit of releases: what some hundred guesses can tell ends at 4 or so
CONFIDENCE = 0.95
TIGHT = 0.95  # of what was spent: a smaller exact bound says why
ROUNDING = 1e-6  # relative, of an exact bound that is all that was spent
CANARIES = {"levels": 100, "corners": 50}  # in a table
ATTRIBUTES = 200  # of corners


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
    """Audit the mechanisms that the settings name, all private ones if they name none; one line each.

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
        note = "; ".join(filter(None, (f"{found.estimate}, {found.neighbour}", _verdict(found, case))))
        print(f"{start}  {found.spent.epsilon:>7.4g}  {found.epsilon:>8.3f}  {note}", flush=True)
        good &= found.epsilon <= found.spent.epsilon * (1 + ROUNDING)
        if arguments.store:
            store_audit(Path(config["results"]), _record(case, found, arguments))
    print(f"measured: epsilon is at least this, with a confidence of {CONFIDENCE:.0%} each, at the delta of the budget")
    return 0 if good else 1


def _cases(arguments: argparse.Namespace) -> tuple[Json, list[Case]]:
    """The settings, and what they name."""
    overrides, config_dir = arguments.overrides, arguments.config_dir
    given = {item.partition("=")[0] for item in overrides}
    private = [name for name, part in declared_parts("mechanism", config_dir).items() if part.private]
    named = [] if given & {"mechanism", "experiment"} else [f"mechanism=[{','.join(private)}]"]
    epsilon = RELEASES if arguments.releases else EPSILON
    config = composed([*tiny_settings(), epsilon, *named, *overrides], config_dir)
    delta = delta_of(config["delta"], Dataset.of(config["dataset"]), sample_of(config["sample"]))
    epsilons, calibrations = epsilons_of(config, delta), listed(config["calibration"]) if "calibration" in given else []
    cases = []
    for part in parts_of("mechanism", config, config_dir):
        relations = [name for name in part.relations if "relation" not in given or name == config["relation"]]
        one = small(part, given)
        parts = [one]
        if part.takes("calibration") and "calibration" not in part.parameters:
            asked = [name for name in calibrations or part.calibrations if name in part.calibrations]
            parts = [replace(one, parameters={**one.parameters, "calibration": name}) for name in asked]
        chosen = product(parts if part.private else [], epsilons, relations)
        cases += [Case(case, Budget(epsilon, delta, relation)) for case, epsilon, relation in chosen]
    return config, cases


def _of_answers(case: Case, runs: int) -> Audit | str:
    """What was found, or why nothing can be."""
    part, budget = case
    make = partial(made, part, budget=budget)
    table = tiny_table(labels=part.labels)
    try:
        if reason := not_audited(make, table, budget.relation):
            return reason
    except NoEstimateError as error:
        return f"it has no estimate on a tiny table: {error}"
    settings = _settings(case)
    exact = _exact(settings, budget)
    tight = exact is not None and exact.epsilon >= TIGHT * exact.spent.epsilon
    level = CONFIDENCE if tight else 1 - (1 - CONFIDENCE) / 2  # of two sampled bounds the better one is reported
    # An exact bound takes the noise from the ledger: what was really drawn shows in the sampled one alone.
    sampled = audit(make, table, budget.delta, relation=budget.relation, runs=runs, confidence=level)
    found = [sampled, exact, None if tight else _tilted(settings, budget, runs, level)]
    return max(filter(None, found), key=lambda one: one.epsilon / one.spent.epsilon)


def _exact(settings: Mapping[str, tuple[Make, Table]], budget: Budget) -> Audit | None:
    """The exact bound, with why it is no larger."""
    exact = exact_audit(settings, budget.delta, relation=budget.relation)
    if exact is None:
        return None
    why = [f"{label} moves by {part:.2g} of its sensitivity at most" for label, part in exact.short.items()]
    if not why and exact.epsilon < TIGHT * exact.spent.epsilon:
        why = ["noise that is not additive, or whose cost the accountant rounds up, is not counted"]
    return Audit(exact.spent, exact.epsilon, exact.mu, "; ".join([exact.pair.what, *why]), PATHS, "exact")


def _tilted(settings: Mapping[str, tuple[Make, Table]], budget: Budget, runs: int, confidence: float) -> Audit | None:
    """The bound by importance sampling, with why it is no larger."""
    found = tilted_audit(
        settings, budget.epsilon, budget.delta, relation=budget.relation, runs=runs, confidence=confidence
    )
    if found is None:
        return None
    why = [f"{kind} noise costs {part:.2g} of what it may" for kind, part in found.parts.items() if part < TIGHT]
    if found.epsilon < TIGHT * found.spent.epsilon and "exponential" in found.parts:
        why.append("selections cost less than the accountant's bound of them")
    return Audit(found.spent, found.epsilon, None, "; ".join([found.pair.what, *why]), runs, "importance sampling")


def _settings(case: Case) -> dict[str, tuple[Make, Table]]:
    """The mechanism on tables on which a record may move its answers as far as its sensitivities say.

    One row, or a row for each of PATE's teachers; one column or two, without an intercept, where a record can be all of
    X'X, or two can have nothing in common; the tiny table with those that are unlike it; and for what selects from a
    workload tables on which a record moves some queries and others back, or all of them at once, where they are the
    marginals of attributes of two levels.
    """
    part, budget = case
    tiny = tiny_table(labels=part.labels)
    odd = odd_tables(tiny)
    tables = {"one row": odd["five rows"].take(np.array([4]))}
    if teachers := part.parameters.get("teachers"):
        tables["a row a teacher"] = odd["one cell"].take(np.zeros(teachers, dtype=np.int64))
    tables |= {"a usual table": tiny, **odd}
    found: dict[str, tuple[Make, Table]] = {name: (partial(made, part, budget=budget), t) for name, t in tables.items()}
    if part.takes("workload"):
        found["linked attributes"] = partial(made, part, budget=budget), linked_table()
        found["rows at two ends"] = partial(made, part, budget=budget), two_ends(20)
        singles = replace(part, parameters={**part.parameters, "workload": 1})
        found["single marginals of rows at two ends"] = partial(made, singles, budget=budget), two_ends(4)
    if not part.takes("design") or part.takes("public"):
        return found
    y = tiny.domain["y"]
    for name, feature in (
        ("one column", Attribute.binned("x", -1, 1, 2)),
        ("two columns", Attribute.categorical("x", ["none", "a", "b"])),
    ):
        domain = Domain((feature, y))
        design = Design(domain, "y", intercept=False)
        rows = random_table(domain, 12, 0, numbers=not part.labels)
        for what, table in odd_tables(rows).items():
            found[f"{name}, {what}"] = partial(made, part, budget=budget, design=design), table
    return found


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
        code_of(case.part.target),
    )


def _verdict(found: Audit, case: Case) -> str:
    if found.epsilon > found.spent.epsilon * (1 + ROUNDING):
        return "more than its ledger says"
    return "more than was asked for" if found.epsilon > case.budget.epsilon * (1 + ROUNDING) else ""
