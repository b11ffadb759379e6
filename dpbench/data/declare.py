"""A `Domain` from plain data: a dataset's config node, a user's YAML, or private-pgm's JSON of sizes."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime
from pathlib import Path
from typing import Any

from dpbench.data.domain import ISO, STARTS, Attribute, Domain
from dpbench.errors import UserError, check_known

FORMS = """allowed forms:
  {levels: [a, b, c]}                          categorical; with other: d, all that is not listed is d
  {bounds: [lower, upper], bins: k}            numeric, k equal-width bins
  {edges: [e0, e1, ..., ek]}                   numeric, bins with these edges
  {values: [v1, v2, ...]} or {values: {from: 1, to: 16}}   numeric, only these values
  {dates: [2020-01-01, 2024-12-31], by: month}   dates, in bins of a day, week, month, quarter or year; perhaps with
                                               format: "%d.%m.%Y"
  k                                            integer codes 0 .. k-1 (categorical)
numeric forms may also have unit: text, and decimals: 0 (whole numbers) or more;
all but k may have missing: true, for values that are missing, or missing: ["?", -999] for texts that say so"""
# Far above the size of any usable marginal; keeps a typing error from filling the memory.
SIZE_LIMIT = 1_000_000
MOST_DECIMALS = 12
DEEPEST = 100  # levels of a file; a declaration has five
MOST_EXACT = 2.0**53  # of whole numbers that double precision distinguishes
AS_WRITTEN = {"levels", "other", "missing"}  # keys whose texts are taken as they are written: no, 01, 1.50 or 2024-01
NUMERIC = {"unit", "decimals"}  # keys of numeric forms alone


def domain_from_config(attributes: Mapping[str, Any]) -> Domain:
    """The domain that a mapping from attribute names to declarations describes, in the mapping's order.

    Raises `UserError` naming the attribute and the allowed forms.
    """
    if not isinstance(attributes, Mapping) or not attributes:
        raise UserError(f"a domain must map attribute names to declarations, not {attributes!r}; {FORMS}")
    return Domain(tuple(_attribute(_name(name), given) for name, given in attributes.items()))


def read_domain_file(path: str | Path, numeric: Sequence[str] = ()) -> Domain:
    """The domain that a user's YAML or JSON file declares, under `attributes:` or at its top.

    `numeric` names attributes declared only by a size whose codes 0 .. k-1 are to be read as numbers.

    Raises `UserError` if it cannot be read, names an attribute twice, or `numeric` names one that is not declared by a
    size.
    """
    path = Path(path)
    if path.is_dir():
        raise UserError(f"the domain file {path} cannot be read: it is a folder, not a file")
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"the domain file {path} cannot be read: {error}") from error
    given = _parsed(path, text)
    if isinstance(given, Mapping) and isinstance(given.get("attributes"), Mapping):
        given = given["attributes"]
    for name in numeric:
        size = given.get(name) if isinstance(given, Mapping) else None
        if isinstance(size, bool) or not isinstance(size, int):
            raise UserError(f"dataset.numeric: {path} does not declare {name!r} by a size, such as {name}: 16")
        given = {**given, name: {"values": {"from": 0, "to": size - 1}}}
    try:
        return domain_from_config(given)
    except UserError as error:
        raise UserError(f"{path}: {error}") from error


# --- one attribute ---------------------------------------------------------------------------------------


def _name(name: object) -> str:
    if isinstance(name, bool) or not isinstance(name, (str, int)):
        raise UserError(f"attribute name {name!r}: put it in quotes, so that it is read as text")
    return str(name)


def _attribute(name: str, given: Any) -> Attribute:
    if isinstance(given, int) and not isinstance(given, bool):
        return Attribute.categorical(name, range(_size(name, "size", given)))
    if not isinstance(given, Mapping):
        raise _wrong(name, f"cannot be declared as {given!r}")
    keys = set(given)
    unit, decimals = given.get("unit") or "", given.get("decimals")
    if not isinstance(unit, str):
        raise _wrong(name, f"unit must be text, not {unit!r}")
    if decimals is not None and (type(decimals) is not int or not 0 <= decimals <= MOST_DECIMALS):
        raise _wrong(name, f"decimals must be a whole number from 0 to {MOST_DECIMALS}, not {decimals!r}")
    missing = given.get("missing", False)
    absent = _texts(name, "missing", missing) if _listed(missing) else []
    if not isinstance(missing, bool) and not absent:
        raise _wrong(name, f"missing must be true or false, or list the texts that mean it, not {missing!r}")
    made = _declared(name, given, keys - NUMERIC - {"missing"}, unit)
    if made is None or not (made.numeric or keys.isdisjoint(NUMERIC)):
        raise _wrong(name, f"cannot be declared with {', '.join(sorted(map(str, keys))) or 'nothing'}")
    if made.dates and not keys.isdisjoint(NUMERIC):
        raise _wrong(name, "dates have no unit and no decimals")
    made = made if decimals is None else _limited(made, decimals)
    return made.with_missing(absent) if missing else made


def _limited(made: Attribute, decimals: int) -> Attribute:
    """The attribute whose numbers have so many decimals. Raises `UserError` if they are too large to have them."""
    assert made.bounds is not None
    if max(map(abs, made.bounds)) * 10**decimals > MOST_EXACT:
        raise _wrong(
            made.name,
            f"numbers up to {max(map(abs, made.bounds)):g} with {decimals} decimals cannot be distinguished (beyond "
            "2^53); leave out decimals, or the column",
        )
    return replace(made, decimals=decimals)


def _declared(name: str, given: Mapping[Any, Any], form: set[Any], unit: str) -> Attribute | None:
    """The attribute in the form that these keys name; None if that is none."""
    match sorted(map(str, form)):
        case ["levels"] | ["levels", "other"]:
            return _categorical(name, _levels(name, given["levels"]), given.get("other"))
        case ["bins", "bounds"]:
            bounds = _numbers(name, "bounds", given["bounds"])
            if len(bounds) != 2:
                raise _wrong(name, f"bounds must be two numbers, not {given['bounds']!r}")
            return Attribute.binned(name, bounds[0], bounds[1], _size(name, "bins", given["bins"]), unit)
        case ["edges"]:
            return Attribute.from_edges(name, _numbers(name, "edges", given["edges"]), unit)
        case ["by", "dates"] | ["by", "dates", "format"]:
            return _dates(name, given["dates"], given["by"], given.get("format", ISO))
        case ["values"]:
            return Attribute.discrete(name, _values(name, given["values"]), unit)
        case _:
            return None


def _levels(name: str, given: Any) -> list[str]:
    if not _listed(given) or not given:
        raise _wrong(name, f"levels must be a list of one or more, not {given!r}")
    return _texts(name, "level", given)


def _texts(name: str, what: str, given: Any) -> list[str]:
    for one in given:
        if one is None or isinstance(one, bool) or not isinstance(one, (str, int, float)):
            raise _wrong(name, f"{what} {one!r} is neither text nor a number; put it in quotes")
    return [str(one) for one in given]


def _categorical(name: str, levels: list[str], other: Any) -> Attribute:
    """Levels, and perhaps one that stands for all texts that are none: the last, if it is not listed itself."""
    if other is None:
        return Attribute.categorical(name, levels)
    (text,) = _texts(name, "other", [other])
    if not text.strip():
        raise _wrong(name, "other must be the name of a level")
    return replace(Attribute.categorical(name, levels if text in levels else [*levels, text]), other=text)


def _dates(name: str, given: Any, by: Any, form: Any) -> Attribute:
    ends = [_date(name, one) for one in given] if _listed(given) else []
    if len(ends) != 2:
        raise _wrong(name, f"dates must be the first and the last one, not {given!r}")
    check_known(f"attribute {name!r}: by", by, STARTS)
    if not isinstance(form, str) or not form.isprintable() or "%" not in form:
        raise _wrong(name, f"format must be such as %d.%m.%Y, not {form!r}")
    _size(name, "the number of days", max((ends[1] - ends[0]).days + 1, 1))
    made = Attribute.dated(name, ends[0], ends[1], by, form)
    try:
        same = datetime.strptime(made.text(made.edges[0]), form).date() == ends[0]
    except ValueError:
        same = False
    if not same:
        raise _wrong(name, f"the format {form!r} does not give the day, as %Y-%m-%d does")
    return made


def _date(name: str, given: Any) -> date:
    """A day, which YAML reads as such if it is written so, and JSON as text."""
    if isinstance(given, date) and not isinstance(given, datetime):
        return given
    try:
        return date.fromisoformat(given)
    except (TypeError, ValueError):
        raise _wrong(name, f"dates are written as 2024-12-31, not {given!s}") from None


def _values(name: str, given: Any) -> list[float]:
    if not isinstance(given, Mapping):
        return _numbers(name, "values", given)
    first, last = given.get("from"), given.get("to")
    if set(given) != {"from", "to"} or type(first) is not int or type(last) is not int or first >= last:
        raise _wrong(name, f"values must be a list, or {{from: 1, to: 16}} in whole numbers, not {dict(given)!r}")
    _size(name, "the number of values", last - first + 1)
    return [float(value) for value in range(first, last + 1)]


def _numbers(name: str, key: str, given: Any) -> list[float]:
    """A list of finite numbers; text such as 1e5, which YAML does not read as a number, is accepted."""
    if not _listed(given) or not given:
        raise _wrong(name, f"{key} must be a list of numbers, not {given!r}")
    numbers: list[float] = []
    for value in given:
        try:
            number = math.nan if isinstance(value, bool) else float(value)
        except (TypeError, ValueError, OverflowError):
            number = math.nan
        if not math.isfinite(number):
            raise _wrong(name, f"{key} must be finite numbers, not {value!r}")
        numbers.append(number)
    return numbers


def _size(name: str, key: str, given: Any) -> int:
    if isinstance(given, bool) or not isinstance(given, int) or not 1 <= given <= SIZE_LIMIT:
        raise _wrong(name, f"{key} must be a whole number from 1 to {SIZE_LIMIT:,}, not {given!r}")
    return given


def _listed(given: Any) -> bool:
    return isinstance(given, Sequence) and not isinstance(given, str)


def _wrong(name: str, what: str) -> UserError:
    return UserError(f"attribute {name!r}: {what}; {FORMS}")


# --- files -----------------------------------------------------------------------------------------------


def _parsed(path: Path, text: str) -> Any:
    import yaml

    class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
        """YAML that refuses a key given twice, of which the plain loader would keep the last, and octal numbers. Names
        and levels are texts as they are written.
        """

    def pairs(items: list[tuple[Any, Any]]) -> dict[Any, Any]:
        twice = [key for key, count in Counter(key for key, _ in items).items() if count > 1]
        if twice:
            raise UserError(f"the domain file {path} gives {twice[0]!r} twice")
        return dict(items)

    def mapping(loader: Loader, node: yaml.MappingNode) -> dict[Any, Any]:
        return pairs([(name(loader, key), value(loader, key.value, item)) for key, item in node.value])

    def name(loader: Loader, key: yaml.Node) -> Any:
        return key.value if isinstance(key, yaml.ScalarNode) else loader.construct_object(key, deep=True)

    def value(loader: Loader, key: Any, item: yaml.Node) -> Any:
        if key in AS_WRITTEN and isinstance(item, yaml.SequenceNode):
            return [name(loader, one) for one in item.value]
        if key == "other" and isinstance(item, yaml.ScalarNode):
            return item.value
        return loader.construct_object(item, deep=True)

    def integer(loader: Loader, node: yaml.ScalarNode) -> int:
        if not re.fullmatch(r"[-+]?(0|[1-9]\d*)", node.value):
            raise UserError(f"the domain file {path}: write {node.value} in plain digits, or in quotes for a level")
        return int(node.value)

    Loader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, mapping)
    Loader.add_constructor("tag:yaml.org,2002:int", integer)  # 010 would be 8, and 1:30 would be 90
    try:
        if path.suffix == ".json":
            return json.loads(text, object_pairs_hook=pairs)
        _check_depth(path, text, Loader)
        return yaml.load(text, Loader)
    except RecursionError as error:
        raise UserError(f"the domain file {path} is nested too deeply") from error
    except (yaml.YAMLError, ValueError, TypeError) as error:
        kind = "JSON" if path.suffix == ".json" else "YAML"
        what = " ".join(str(error).split())
        raise UserError(f"the domain file {path} is not valid {kind}: {what}") from error


def _check_depth(path: Path, text: str, loader: type) -> None:
    """Raises `UserError` for a file that is nested more deeply than declarations are: building it might take all of the
    stack, and end the process.
    """
    import yaml

    depth = 0
    for event in yaml.parse(text, loader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > DEEPEST:
            raise UserError(f"the domain file {path} is nested too deeply")
