"""Data sets: the node of a dataset's config -> its rows, domain, identity and card.

A node is a plain mapping: `_target_` (a function of the node that returns a `Table`), `name`, `attributes` or
`domain` (a file), `target`, `drop`, `outside`, `bounds`, `sources`, `card`, `unpaid` (what its declaration took from
the rows, recorded in runs on them), and other keys of its function.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dpbench.data.bounds import observed_bounds
from dpbench.data.coding import Coded
from dpbench.data.coins import testing_part
from dpbench.data.declare import domain_from_config, read_domain_file
from dpbench.data.domain import Attribute, Domain
from dpbench.data.encode import MOST_LEVELS
from dpbench.data.fetch import fetch, sha256_of
from dpbench.data.simulate import Simulation
from dpbench.data.source import computed, sources_of
from dpbench.data.table import Table, TableError, TestRows, count_test_rows
from dpbench.data.tabular import code_csv, csv_sha256, load_csv, shipped_facts
from dpbench.errors import UserError, check_known
from dpbench.targets import resolve

# Keys that do not change the rows, or are in the fingerprint in another form.
NOT_PARAMETERS = frozenset(
    {"_target_", "name", "attributes", "domain", "target", "drop", "outside", "sources", "path", "shipped"}
    | {"numeric", "card", "alternative", "offline", "public", "public_data", "test_rows", "unpaid"}
)
BOUNDS = ("declared", "data")


def load_dataset(config: Mapping[str, Any]) -> Table | Simulation:
    """The rows of a dataset, without the attributes of `drop`; or the function that draws them.

    With `bounds: data` the rows' domain is not the declared one: its bounds are computed from them, which is not
    private.

    Raises `UserError` if the data are missing or do not fit their declaration.
    """
    declared = declared_domain(config)
    rows = _loaded(config)
    if isinstance(rows, Simulation):
        if _drop(config):
            raise UserError(f"dataset={_name(config)} draws its rows, so dataset.drop cannot be used")
        if _bounds(config) == "data":
            raise UserError(f"dataset={_name(config)} draws its rows, so dataset.bounds=data cannot be used")
        _check_domain(config, rows.domain, declared)
        return rows
    table = rows.project(declared.names)
    _check_domain(config, table.domain, declared)
    return observed_bounds(table) if _bounds(config) == "data" else table


def declared_domain(config: Mapping[str, Any]) -> Domain:
    """The declared domain of a dataset, without the attributes of `drop`; needs no data.

    Raises `UserError` for a bad declaration, an unknown name in `drop`, a target that is not an attribute, or an
    unknown value of `bounds`.
    """
    _bounds(config)
    full, drop = _full_domain(config), _drop(config)
    if "attributes" in config:  # else `drop` may name columns that are not declared: the loader looks
        for name in drop:
            full.index(name)
    left_out = set(drop)
    kept = [name for name in full.names if name not in left_out]
    if not kept:
        raise UserError(f"dataset={_name(config)}: dataset.drop leaves no attribute")
    target = config.get("target")
    if target in drop:
        raise UserError(f"dataset.target={target} is also in dataset.drop; take it out of one of them")
    if target is not None:
        check_known("target", target, kept)
    return full.project(kept)


def fingerprint(config: Mapping[str, Any]) -> dict[str, Any]:
    """The identity of the rows, JSON-ready: the checksums of their files, declaration and parameters; never a path.

    A user's file is read for its checksum, and so is a file of which none is known, which is fetched first; other
    data need not be present.
    """
    others = {key: value for key, value in config.items() if key not in NOT_PARAMETERS}
    if _bounds(config) == "declared":
        others.pop("bounds", None)  # the same as the default
    return {
        "name": _name(config),
        "_target_": str(config["_target_"]),
        "sources": _checksums(config),
        "attributes": _full_domain(config).to_list(),
        "outside": config.get("outside", "error"),
        "drop": sorted(_drop(config)),
        "parameters": others,
    }


def is_public(config: Mapping[str, Any]) -> bool:
    """Whether the rows are public; private unless the config has `public: true`.

    Raises `UserError` for anything but true and false.
    """
    public = config.get("public", False)
    if not isinstance(public, bool):
        raise UserError(f"dataset.public must be true or false, not {public!r}")
    return public


def card(config: Mapping[str, Any]) -> str:
    """The text of `dpbench data card NAME`."""
    facts: Mapping[str, Any] = config.get("card") or {}
    lines = [f"{_name(config)}: {facts.get('title', '')}".rstrip(": ")]
    lines += [f"  {key}: {facts[key]}" for key in ("source", "licence") if facts.get(key)]
    if isinstance(facts.get("rows"), int):
        lines.append(f"  rows: {facts['rows']:,}")
    lines += [f"  {key}: {config[key]}" for key in ("target", "outside", "bounds") if config.get(key)]
    lines.append(f"  rows are {'public' if is_public(config) else 'private, and so is the noise of a run on them'}")
    lines += [f"  drop: {', '.join(_drop(config))}"] if _drop(config) else []
    if config.get("attributes") or config.get("domain"):
        origin = f"outside the privacy budget: {config['unpaid']}" if config.get("unpaid") else "not computed from rows"
        lines += ["", f"Domain (declared; {origin})", *_domain_lines(_full_domain(config))]
    if facts.get("notes"):
        lines += ["", "Notes", *(f"  - {note}" for note in facts["notes"])]
    return "\n".join([*lines, *_file_lines(config)])


def check(config: Mapping[str, Any], test_rows: TestRows | None = None) -> str:
    """The text of `dpbench data check`: the rows fit their declaration, perhaps after clipping or dropping.

    For a user's table with these `test_rows` (see `count_test_rows`) it gives the number of training rows.

    Raises `UserError` if they do not.
    """
    domain = declared_domain(config)
    rows = None if _loader(config) is load_csv else load_dataset(config)
    if isinstance(rows, Simulation):
        return f"{_name(config)}: rows are drawn anew for each repetition; there is nothing to check"
    coded = code_csv(config) if rows is None else Coded(rows, 0, {})
    label = config.get("path") or _name(config)
    lines = [f"{label}: {len(coded.table):,} rows x {len(domain.names)} attributes fit their declaration"]
    if coded.dropped:
        lines.append(f"  rows left out for a value outside its domain: {coded.dropped:,}")
    lines += [f"  values of {name} moved into its bounds: {count:,}" for name, count in coded.clipped.items()]
    if rows is None and test_rows is not None:
        total = len(coded.table)
        test = count_test_rows(test_rows if is_public(config) else testing_part(test_rows), total)
        n = _about(total - test)
        if n < 1:
            raise UserError(
                f"{label}: its {total:,} rows fit their declaration, but {test:,} of them are for testing, which "
                "leaves none to train on; set sample.test_rows"
            )
        takers = "DP-SGD, PATE, JLT and the intervals of SSP"
        lines.append(f"  about {n:,} to train on: declare that with sample.train_rows={n}, which {takers} take for n,")
        lines.append("  if n is public: this count is not private, and is in no ledger")
    lines += [
        f"  {one.name} has {one.size:,} levels: more than {MOST_LEVELS:,} cannot be one-hot, as regression and "
        f"classification have them; put levels together, or dataset.drop=[{one.name}]"
        for one in domain.attributes
        if not one.numeric and one.size > MOST_LEVELS and one.name != config.get("target")
    ]
    return "\n".join([*lines, *_domain_lines(domain)])


def _about(n: int) -> int:
    """Rounded up to two digits.

    >>> _about(2345), _about(7)
    (2400, 7)
    """
    unit = int(10 ** max(len(str(n)) - 2, 0))
    return -(-n // unit) * unit


# --- pieces of a node ------------------------------------------------------------------------------------


def _loader(config: Mapping[str, Any]) -> Callable[[Mapping[str, Any]], Any]:
    target = config.get("_target_")
    if not target:
        raise UserError(f"dataset={_name(config)} has no _target_, the function that loads it")
    return resolve("dataset", target, f"dataset={_name(config)}: _target_")


def _loaded(config: Mapping[str, Any]) -> Table | Simulation:
    where = f"dataset={_name(config)}: {config.get('_target_')}"
    try:
        rows = _loader(config)(config)
    except TableError as error:
        raise UserError(
            f"{where} made a table that does not fit its domain: {error}. Clip such values or leave out their rows in "
            "that function (dpbench.data.coding.code_frame does either), or extend the declaration"
        ) from error
    if not isinstance(rows, (Table, Simulation)):
        raise UserError(f"{where} returned {type(rows).__name__}, not a Table")
    return rows


def _check_domain(config: Mapping[str, Any], given: Domain, declared: Domain) -> None:
    """Check that the rows are over the declared domain, on which a mechanism's noise is based."""
    other = set(given.attributes)
    for attribute in declared.attributes:
        if attribute not in other:
            found = _described(given[attribute.name]) if attribute.name in given.sizes else "missing"
            raise UserError(
                f"dataset={_name(config)}: {config['_target_']} returned rows over another domain than the one that is "
                f"declared: attribute {attribute.name!r} is declared as {_described(attribute)}, but is {found}"
            )


def _name(config: Mapping[str, Any]) -> str:
    return str(config.get("name") or "?")


def _drop(config: Mapping[str, Any]) -> list[str]:
    drop = config.get("drop") or []
    if isinstance(drop, str) or not all(isinstance(name, str) for name in drop):
        raise UserError(f"dataset.drop must be a list, such as dataset.drop=[education], not {drop!r}")
    return list(drop)


def _bounds(config: Mapping[str, Any]) -> str:
    bounds = str(config.get("bounds", "declared"))
    check_known("dataset.bounds", bounds, BOUNDS)
    return bounds


def _full_domain(config: Mapping[str, Any]) -> Domain:
    if "attributes" in config:
        given = config["attributes"]
        if isinstance(given, Mapping) and "_target_" in given:  # they depend on other keys of the node
            return Domain(computed(config, "attributes", Attribute))
        return domain_from_config(given)
    if not config.get("domain"):
        raise UserError(
            f"dataset={_name(config)} needs dataset.domain, a YAML or JSON file that declares each attribute"
        )
    return read_domain_file(str(config["domain"]), config.get("numeric") or ())


def _checksums(config: Mapping[str, Any]) -> dict[str, str]:
    if config.get("shipped"):
        return {f"{config['shipped']}.csv": str(shipped_facts(config)["sha256"])}
    if "path" in config:
        return {"csv": csv_sha256(config)}
    offline = bool(config.get("offline"))
    return {source.file: source.sha256 or sha256_of(fetch(source, offline=offline)) for source in sources_of(config)}


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
        shown = ", ".join(attribute.levels[:6]) + (", ..." if attribute.size > 6 else "")
        return attribute.name, str(attribute.size), "levels", shown
    lower, upper = attribute.bounds
    shown = f"[{lower:.12g}, {upper:.12g}]" + (f" {attribute.unit}" if attribute.unit else "")
    return attribute.name, str(attribute.size), "bins", shown


def _file_lines(config: Mapping[str, Any]) -> list[str]:
    """The sources of the data, with their checksums."""
    if config.get("shipped"):
        try:
            facts = shipped_facts(config)
        except UserError as error:
            return ["", f"Not usable: {error}"]
        keys = ("mechanism", "epsilon", "delta", "seed", "commit", "command", "rows", "sha256")
        return ["", "How it was made", *(f"  {key}: {facts[key]}" for key in keys)]
    files = [f"  {s.file}  sha256 {s.sha256 or 'not known'}\n    {s.url}" for s in sources_of(config)]
    return ["", "Files", *files] if files else []
