"""Small made-up tables, and what mechanisms make of them: for checks, audits and golden outputs."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from dataclasses import replace

import numpy as np

from dpbench.audit.neighbours import random_table
from dpbench.audit.one_run import Canaries
from dpbench.config import Part
from dpbench.config.schema import Parameters
from dpbench.data.domain import Attribute, Domain
from dpbench.data.encode import Design
from dpbench.data.table import Table
from dpbench.privacy.budget import Budget
from dpbench.releases import Release

ROWS, SEED = 300, 7
LARGE = 2000  # rows: so many as no table has that is called tiny
SMALL: Parameters = {  # settings that make a run large or do not fit a tiny table, unless others are given
    **{"batch_size": ROWS // 4, "batch_sizes": [None, ROWS // 4]},
    **{"hidden": [16, 16], "latent": 8, "components": 20, "most": 10, "pretraining": 1, "gap": 1e6},
    **{"models": 60, "features": 2},
    **{"tables": 4, "warmup": 4, "leapfrogs": 6, "population": 50, "generations": 60, "halfspaces": 50, "doublings": 1},
}


def tiny_settings() -> list[str]:
    """The settings of a line for tables of this size."""
    return ["sample=smoke", "limits=smoke", f"sample.train_rows={ROWS}", "limits.iterations=50"]


def small(part: Part, given: Collection[str] = ()) -> Part:
    """The mechanism with settings that fit a tiny table; those `given`, such as mechanism.mine.hidden, stay."""
    own = {name: value for name, value in SMALL.items() if part.parameters.get(name)}
    kept = {name: value for name, value in own.items() if f"mechanism.{part.name}.{name}" not in given}
    return replace(part, parameters={**part.parameters, **kept})


def tiny_table(*, labels: bool = False, seed: int = SEED, rows: int = ROWS) -> Table:
    """300 rows of four attributes, whose target "y" depends on the others; of two levels for `labels`."""
    rng = np.random.default_rng(seed)
    others = (
        Attribute.binned("age", 10, 90, 8, unit="years"),
        Attribute.categorical("work", ["a", "b", "c"]),
        Attribute.categorical("sex", ["f", "m"]),
    )
    age, work, sex = rng.uniform(10, 90, rows), rng.integers(0, 3, rows), rng.integers(0, 2, rows)
    value = np.clip(np.round(age / 30 + work - 0.5 * sex + rng.normal(0, 0.3, rows)), 0, 5)
    target = _target(labels)
    y = (value > 2).astype(np.int64) if labels else target.code(value)
    numbers = {"age": age} if labels else {"age": age, "y": value}
    return Table(Domain((*others, target)), np.stack([others[0].code(age), work, sex, y], axis=1), numbers)


def tables(*, labels: bool = False) -> Iterator[tuple[str, Table]]:
    """Tables of other shapes and sizes, and what they are: large; narrow and short; wide, skewed, without numbers."""
    yield f"{LARGE:,} rows", tiny_table(labels=labels, rows=LARGE)
    domain = Domain((Attribute.binned("x", -1, 1, 4), _target(labels)))
    yield "20 rows of 2 attributes", random_table(domain, 20, SEED, numbers=not labels)
    levels = [Attribute.categorical(f"x{j}", [str(level) for level in range(2 + j % 3)]) for j in range(7)]
    wide = random_table(Domain((*levels, _target(labels))), 100, SEED)
    rare = np.random.default_rng(SEED).random(wide.codes.shape) < 0.9
    yield "100 skewed rows of 8 attributes", Table(wide.domain, np.where(rare, 0, wide.codes))


def _target(labels: bool) -> Attribute:
    return Attribute.categorical("y", ["no", "yes"]) if labels else Attribute.discrete("y", range(6))


def design_of(table: Table, *, plain: bool = False) -> Design:
    """The design of a tiny table, in units of its own if `plain`."""
    return Design(table.domain, target="y", scaled=not plain)


def made(
    part: Part,
    table: Table,
    seed: int | np.random.Generator = SEED,
    *,
    budget: Budget,
    canaries: Canaries | None = None,
    design: Design | None = None,
) -> Release:
    """What the mechanism makes of a tiny table, or of one with canaries."""
    supplied: dict[str, Design | Table] = {}
    if part.takes("design"):
        supplied["design"] = canaries.design if canaries else design or design_of(table)
    for other in filter(part.takes, ("public", "test")):
        supplied[other] = canaries.rest if canaries else _beside(table, labels=part.labels)
    release: Release = part.function(table, budget, np.random.default_rng(seed), **supplied, **part.parameters)
    return release


def _beside(table: Table, *, labels: bool) -> Table:
    """Other rows over the domain of a tiny table."""
    tiny = tiny_table(labels=labels, seed=SEED + 1)
    if table.domain == tiny.domain:
        return tiny
    return random_table(table.domain, ROWS, SEED + 1, numbers=bool(table.numbers))


def bytes_of(value: Table | Release) -> tuple[object, ...]:
    """All that is in a table or a release."""
    if isinstance(value, Table):
        return value.codes.tobytes(), *(column.tobytes() for column in value.numbers.values())
    data, arrays = value.to_parts()
    return json.dumps(data, sort_keys=True), *((name, arrays[name].tobytes()) for name in sorted(arrays))
