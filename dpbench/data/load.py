"""What is made of a `Dataset`: its rows, identity and card; and bounds taken from rows, as some papers do."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import TypedDict

import numpy as np

from dpbench.data.coding import Coded
from dpbench.data.dataset import Dataset
from dpbench.data.domain import Attribute, Codes, Domain, Floats
from dpbench.data.encode import MOST_LEVELS
from dpbench.data.fetch import fetch, sha256_of
from dpbench.data.secret_split import testing_part
from dpbench.data.simulate import Simulation
from dpbench.data.table import Table, TableError, TestRows, count_test_rows
from dpbench.data.tabular import Shipped, code_csv, csv_sha256, load_csv, shipped_facts
from dpbench.errors import UserError
from dpbench.files import Json

LARGE = 10.0  # an epsilon above which the odds for a statement on a person may change 22,000-fold
MOST_PAIRS = 20_000  # of attributes: on these mst takes 20 seconds and aim minutes (benchmarks/own_table.py --large)
FEW = 10  # rows of a level of the target, below which a split may well lack it


class Fingerprint(TypedDict):
    """What identifies the rows of a data set, JSON-ready; `_target_` is its loader, whose own keys are `parameters`."""

    name: str
    _target_: str
    sources: dict[str, str]
    attributes: list[Json]
    outside: str
    drop: list[str]
    parameters: Json


def load_dataset(dataset: Dataset) -> Table | Simulation:
    """The rows of a dataset, without the attributes of `drop`; or the function that draws them.

    With `bounds: data` the rows' domain is not the declared one: its bounds are computed from them, which is not
    private.

    Raises `UserError` if the data are missing or do not fit their declaration.
    """
    found = load_counted(dataset)
    return found if isinstance(found, Simulation) else found.table


def load_counted(dataset: Dataset) -> Coded | Simulation:
    """`load_dataset`, with the numbers of rows dropped and of values clipped, where a user's file is read."""
    declared = dataset.domain
    rows = code_csv(dataset) if dataset.load is load_csv else _loaded(dataset)
    if isinstance(rows, Simulation):
        if dataset.drop:
            raise UserError(f"dataset={dataset.name} draws its rows, so dataset.drop cannot be used")
        if dataset.bounds == "data":
            raise UserError(f"dataset={dataset.name} draws its rows, so dataset.bounds=data cannot be used")
        _check_domain(dataset, rows.domain, declared)
        return rows
    coded = rows if isinstance(rows, Coded) else Coded(rows, 0, {})
    table = coded.table.project(declared.names)
    _check_domain(dataset, table.domain, declared)
    return replace(coded, table=observed_bounds(table) if dataset.bounds == "data" else table)


def left_out(coded: Coded) -> tuple[str, ...]:
    """The note on rows that were left out; empty if none was. To a whole percent: their exact number is private."""
    if not coded.dropped:
        return ()
    part = coded.dropped / (coded.dropped + len(coded.table))
    share = f"about {100 * part:.0f} %" if part >= 0.005 else "less than 1 %"
    return (
        f"{share} of the rows, left out for a value outside its domain (dataset.outside=drop): counted without noise",
    )


def fingerprint(dataset: Dataset) -> Fingerprint:
    """The identity of the rows, JSON-ready: the checksums of their files, declaration and parameters; never a path.

    A user's file is read for its checksum, and so is a file of which none is known, which is fetched first; other
    data need not be present.
    """
    return {
        "name": dataset.name,
        "_target_": str(dataset.loader),
        "sources": _checksums(dataset),
        "attributes": dataset.full_domain.to_list(),
        "outside": dataset.outside,
        "drop": sorted(dataset.drop),
        "parameters": dataset.parameters,
    }


def card(dataset: Dataset) -> str:
    """The text of `dpbench data card NAME`."""
    facts = dataset.card
    lines = [f"{dataset.name}: {facts.get('title', '')}".rstrip(": ")]
    for name, said in (("source", facts.get("source")), ("licence", facts.get("licence"))):
        lines += [f"  {name}: {said}"] if said else []
    if isinstance(facts.get("rows"), int):
        lines.append(f"  rows: {facts['rows']:,}")
    lines += [f"  {key}: {dataset[key]}" for key in ("target", "outside", "bounds") if dataset.get(key)]
    lines.append(f"  rows are {'public' if dataset.public else 'private, and so is the noise of a run on them'}")
    lines += [f"  drop: {', '.join(dataset.drop)}"] if dataset.drop else []
    if dataset.get("attributes") or dataset.get("domain"):
        origin = f"outside the privacy budget: {dataset.unpaid}" if dataset.unpaid else "not computed from rows"
        lines += ["", f"Domain (declared; {origin})", *_domain_lines(dataset.full_domain)]
    if facts.get("notes"):
        lines += ["", "Notes", *(f"  - {note}" for note in facts["notes"])]
    return "\n".join([*lines, *_file_lines(dataset)])


def check(dataset: Dataset, test_rows: TestRows | None = None, budgets: Iterable[tuple[float, float]] = ()) -> str:
    """The text of `dpbench data check`: the rows fit their declaration, perhaps after clipping or dropping.

    For a user's table with these `test_rows` (see `count_test_rows`) it gives the number of training rows. It warns of
    `budgets` as `cautions` does.

    Raises `UserError` if they do not.
    """
    domain = dataset.domain
    rows = None if dataset.load is load_csv else load_dataset(dataset)
    if isinstance(rows, Simulation):
        return f"{dataset.name}: rows are drawn anew for each repetition; there is nothing to check"
    coded = code_csv(dataset) if rows is None else Coded(rows, 0, {})
    label = dataset.path or dataset.name
    lines = [f"{label}: {len(coded.table):,} rows x {len(domain.names)} attributes fit their declaration"]
    if coded.dropped:
        share = 100 * coded.dropped / (coded.dropped + len(coded.table))
        lines.append(f"  rows left out for a value outside its domain: {coded.dropped:,} ({share:.3g} %)")
    lines += [f"  values of {name} moved into its bounds: {count:,}" for name, count in coded.clipped.items()]
    if rows is None and test_rows is not None:
        total = len(coded.table)
        test = count_test_rows(test_rows if dataset.public else testing_part(test_rows), total)
        n = _about(total - test)
        if n < 1:
            raise UserError(
                f"{label}: its {total:,} rows fit their declaration, but {test:,} of them are for testing, which "
                "leaves none to train on; set sample.test_rows"
            )
        takers = "DP-SGD, PATE, JLT and the intervals of SSP"
        lines.append(f"  about {n:,} to train on: declare that with sample.train_rows={n}, which {takers} take for n,")
        lines.append("  if n is public: this count is not private, and is in no ledger")
    lines += [f"  {line}" for line in (*_not_whole(coded.table), *cautions(coded.table, dataset.target, budgets))]
    lines += [
        f"  {one.name} has {one.size:,} levels: more than {MOST_LEVELS:,} cannot be one-hot, as regression and "
        f"classification have them; put levels together, or dataset.drop=[{one.name}]"
        for one in domain.attributes
        if not one.numeric and one.size > MOST_LEVELS and one.name != dataset.target
    ]
    lines += [f"  {line}" for line in many_pairs(domain)]
    return "\n".join([*lines, *_domain_lines(domain)])


def many_pairs(domain: Domain) -> list[str]:
    """What to say of a domain on which mechanisms that look at each pair of attributes take long."""
    d = len(domain.names)
    if (pairs := d * (d - 1) // 2) <= MOST_PAIRS:
        return []
    return [
        f"{d:,} attributes have {pairs:,} pairs: mechanisms that look at each, such as mst and aim, take minutes or "
        "hours (mechanism.mst.workload=1 releases no marginals of pairs, which takes less); those on sums, such as ssp "
        "and adassp, do not, or leave columns out (dataset.drop=[...])"
    ]


def cautions(table: Table, target: str | None, budgets: Iterable[tuple[float, float]]) -> list[str]:
    """What its owner should know before a table is released or run on: weak budgets (epsilon, delta), and a target of
    one class, or of a rare one. They tell of the rows, and are for nobody else.
    """
    found = list[str]()
    for epsilon, delta in budgets:
        if LARGE < epsilon < math.inf:
            found.append(f"epsilon = {epsilon:g} is above {LARGE:g}: that protects little")
        if delta * len(table) > 1:
            found.append(
                f"delta = {delta:g} is above 1/n: it permits releasing a person's row outright; set delta to "
                f"{1 / (10 * _about(len(table))):.0e} or less"
            )
    return [*dict.fromkeys(found), *_rare(table, target)]


def _not_whole(table: Table) -> list[str]:
    """What to say of numbers that are declared to be whole and are not: thousands may be separated by a point."""
    return [
        f"{one.name} is declared to be whole, and has other numbers: decimals of such are not kept; if the point "
        "separates thousands, dataset.thousands=point"
        for one in table.domain.attributes
        if one.decimals == 0 and one.name in table.numbers and np.any(np.mod(table.numbers[one.name], 1) > 0)
    ]


def _rare(table: Table, target: str | None) -> list[str]:
    """What is to be said of a target some of whose levels are in no row, or in so few that a split may lack them."""
    if target is None or table.domain[target].numeric:
        return []
    attribute, counts = table.domain[target], table.marginal((target,))
    if (counts > 0).sum() == 1:
        return [
            f"{target} (the target) is {attribute.levels[int(counts.argmax())]!r} in every row: nothing to predict, "
            "and metrics of it have no value"
        ]
    return [
        f"{target} (the target) is {level!r} in {count:.0f} row{'' if count == 1 else 's'}: the rows for training or "
        "testing may have none, and a metric then no value"
        for level, count in zip(attribute.levels, counts, strict=True)
        if count < FEW
    ]


def _about(n: int) -> int:
    """Rounded up to two digits.

    >>> _about(2345), _about(7)
    (2400, 7)
    """
    unit = int(10 ** max(len(str(n)) - 2, 0))
    return -(-n // unit) * unit


def _loaded(dataset: Dataset) -> Table | Simulation:
    where = f"dataset={dataset.name}: {dataset.loader}"
    try:
        rows = dataset.load(dataset)
    except TableError as error:
        raise UserError(
            f"{where} made a table that does not fit its domain: {error}. Clip such values or leave out their rows in "
            "that function (dpbench.data.coding.code_frame does either), or extend the declaration"
        ) from error
    if not isinstance(rows, (Table, Simulation)):
        raise UserError(f"{where} returned {type(rows).__name__}, not a Table")
    return rows


def _check_domain(dataset: Dataset, given: Domain, declared: Domain) -> None:
    """Check that the rows are over the declared domain, on which a mechanism's noise is based."""
    other = set(given.attributes)
    for attribute in declared.attributes:
        if attribute not in other:
            found = _described(given[attribute.name]) if attribute.name in given.sizes else "missing"
            raise UserError(
                f"dataset={dataset.name}: {dataset.loader} returned rows over another domain than the one that is "
                f"declared: attribute {attribute.name!r} is declared as {_described(attribute)}, but is {found}"
            )


def _checksums(dataset: Dataset) -> dict[str, str]:
    if dataset.shipped:
        return {f"{dataset.shipped}.csv": str(shipped_facts(dataset)["sha256"])}
    if "path" in dataset.config:
        return {"csv": csv_sha256(dataset)}
    return {one.file: one.sha256 or sha256_of(fetch(one, offline=dataset.offline)) for one in dataset.sources}


# --- text ------------------------------------------------------------------------------------------------


def _domain_lines(domain: Domain) -> list[str]:
    rows = [("attribute", "size", "kind", "values"), *map(_domain_row, domain.attributes)]
    one, two, three = (max(len(row[i]) for row in rows) for i in range(3))
    return [f"  {name:<{one}}  {size:>{two}}  {kind:<{three}}  {values}" for name, size, kind, values in rows]


def _described(attribute: Attribute) -> str:
    _, size, kind, values = _domain_row(attribute)
    return f"{values} ({size} {kind})"


def _domain_row(attribute: Attribute) -> tuple[str, str, str, str]:
    if attribute.bounds is None:
        shown = ", ".join(level or "(missing)" for level in attribute.levels[:6]) + (
            ", ..." if attribute.size > 6 else ""
        )
        return attribute.name, str(attribute.size), "levels", shown
    lower, upper = attribute.bounds
    shown = f"[{attribute.text(lower)}, {attribute.text(upper)}]" + (f" {attribute.unit}" if attribute.unit else "")
    shown += " or missing" if attribute.missing else ""
    return attribute.name, str(attribute.size), "bins", shown


def _file_lines(dataset: Dataset) -> list[str]:
    """The sources of the data, with their checksums."""
    if dataset.shipped:
        try:
            facts = dict(shipped_facts(dataset))
        except UserError as error:
            return ["", f"Not usable: {error}"]
        return ["", "How it was made", *(f"  {key}: {facts[key]}" for key in Shipped.__annotations__)]
    files = [f"  {s.file}  sha256 {s.sha256 or 'not known'}\n    {s.url}" for s in dataset.sources]
    return ["", "Files", *files] if files else []


def observed_bounds(table: Table) -> Table:
    """The same rows, with the bounds of each numeric attribute at its smallest and largest number in them.

    Not private: the domain of the result is computed from rows. An attribute keeps its number of bins, which become
    equal-width; one with listed values keeps those within the bounds.

    Raises `UserError` for an attribute that has only one number, or codes instead of numbers.
    """
    codes, attributes = table.codes.copy(), list(table.domain.attributes)
    for column, declared in enumerate(table.domain.attributes):
        if declared.numeric:
            attributes[column], codes[:, column] = _observed(declared, table.numbers.get(declared.name))
    return Table(Domain(tuple(attributes)), codes, table.numbers)


def _observed(declared: Attribute, numbers: Floats | None) -> tuple[Attribute, Codes]:
    """The attribute with observed bounds, and the codes (n,) of its numbers (n,)."""
    name, unit = declared.name, declared.unit
    if numbers is None:
        raise UserError(
            f"dataset.bounds=data: attribute {name!r} has only codes, and no numbers from which to compute bounds; "
            "use dataset.bounds=declared"
        )
    known = numbers[~np.isnan(numbers)] if declared.missing else numbers
    lower, upper = (float(known.min()), float(known.max())) if len(known) else (0.0, 0.0)
    if lower == upper:
        raise UserError(
            f"dataset.bounds=data: attribute {name!r} is {lower:g} in every row, so it has no bounds; "
            f"leave it out with dataset.drop=[{name}], or use dataset.bounds=declared"
        )
    if declared.dates:
        raise UserError(f"dataset.bounds=data: attribute {name!r} has dates, whose ends are declared")
    if declared.discrete_values:
        attribute = Attribute.discrete(name, [value for value in declared.values if lower <= value <= upper], unit)
    else:
        attribute = Attribute.binned(name, lower, upper, len(declared.values), unit)
    attribute = replace(attribute, decimals=declared.decimals, missing=declared.missing, absent=declared.absent)
    return attribute, attribute.code(numbers)
