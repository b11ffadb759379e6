"""Small tables that a mechanism is checked and audited on, and their neighbours."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice, product

import numpy as np

from dpbench.data.domain import Attribute, Codes, Domain, Floats
from dpbench.data.table import Table

CORNERS = 8  # records at the bounds of the domain, of which each neighbour has one more
LINKED = 3  # attributes on either side of the dependences of a linked table
SKEW = 4  # the power of a uniform number at which a value of a skewed table lies between the bounds


def random_table(domain: Domain, n: int, seed: int, *, numbers: bool = False) -> Table:
    """n rows drawn uniformly over the domain, with `numbers` within their bounds if they are wanted."""
    rng = np.random.default_rng(seed)
    codes = np.stack([rng.integers(0, attribute.size, n) for attribute in domain.attributes], axis=1)
    if not numbers:
        return Table(domain, codes)
    return _table(domain, codes, {a.name: _number(a, rng.random(n)) for a in domain.attributes if a.numeric})


def skewed_table(domain: Domain, n: int, seed: int, *, numbers: bool = False) -> Table:
    """n rows, most of them at the first levels, none at the last one of any attribute that has others."""
    parts = np.random.default_rng(seed).random((n, len(domain.names))) ** SKEW
    parts *= [(a.size - 1 or 1) / a.size for a in domain.attributes]
    codes = np.floor(parts * list(domain.sizes.values())).astype(np.int64)
    drawn = {a.name: _number(a, parts[:, j]) for j, a in enumerate(domain.attributes) if a.numeric}
    return _table(domain, codes, drawn if numbers else {})


def odd_tables(table: Table) -> dict[str, Table]:
    """Tables of this domain that are unlike a usual one: what depends on the support, or on few rows, shows there.

    Five rows, of which the last one is alone at its end of the domain; rows that are all in one cell; and as many rows
    as the table has, skewed, in which some levels never occur.
    """
    domain, numbers = table.domain, bool(table.numbers)
    few = skewed_table(domain, 4, 1, numbers=numbers)
    top = list(corners(table))[1]
    return {
        "five rows": joined(few, top),
        "one cell": few.take(np.zeros(12, dtype=np.int64)),
        "skewed rows": skewed_table(domain, len(table), 2, numbers=numbers),
    }


def linked_table() -> Table:
    """Rows of six attributes of three levels, of which each of the first three depends on each of the others.

    All these pairs are equally far from independent, and a record with all attributes at one end moves some of them
    on and the others back: who selects the pair that is farthest is moved as far as may be. The record at the other end
    moves each pair the other way.
    """
    others = [Attribute.categorical(f"x{j}", ["a", "b", "c"]) for j in range(2 * LINKED - 1)]
    domain = Domain((*others, Attribute.discrete("y", range(3))))
    cells = np.array(list(product(range(3), repeat=2 * LINKED)))
    even, odd = np.array([1, -2, 1])[cells[:, :LINKED]], np.array([-1, 0, 1])[cells[:, LINKED:]]
    signs = np.where(np.arange(LINKED) % 2, -1, 1)
    link = (even @ signs) * (odd @ signs)  # the sum of the products of all pairs, each with its sign
    codes = np.repeat(cells, link - link.min(), axis=0)[::-1]
    return Table(domain, codes, {"y": codes[:, -1].astype(np.float64)})


def two_ends(n: int) -> Table:
    """Three attributes of two levels; a half of the rows is at the lower ends of all, as the last one, the others not.

    Of the queries that such rows answer unlike uniform ones, a record at the other end moves one up and the other down.
    """
    x, z = (Attribute.categorical(name, ["a", "b"]) for name in "xz")
    upper = (np.arange(n) < n // 2).astype(np.int64)
    y = upper.astype(np.float64)
    return Table(Domain((x, z, Attribute.discrete("y", range(2)))), np.stack([upper] * 3, axis=1), {"y": y})


def neighbours(table: Table, relation: str) -> Iterator[tuple[str, Table]]:
    """Tables a step away, and in which way; a sample that was recorded is of the first rows, so a change comes last."""
    fewer = table.take(np.arange(len(table) - 1))
    last = table.take(np.arange(len(table) - 1, len(table)))
    if relation != "replace":
        yield "without a record", fewer
        yield "with a copy of a record", joined(table, last)
    else:
        yield "with a record of which one attribute is changed", joined(fewer, _changed(last))
    for corner in corners(table):
        if relation == "replace":
            yield "with another record", joined(fewer, corner)
        else:
            yield "with one more record", joined(table, corner)


def corners(table: Table) -> Iterator[Table]:
    """Records with each attribute at its lower or upper end: some with most at one end, then others."""
    ends = [(0, 1) for _ in table.domain.names]
    every = sorted(product(*ends), key=lambda bits: min(sum(bits), len(bits) - sum(bits)))
    return (_corner(table, bits) for bits in islice(every, CORNERS))


def _corner(table: Table, bits: Sequence[int]) -> Table:
    """The record at these ends, 0 or 1, of the attributes of the table's domain."""
    codes = [bit * (attribute.size - 1) for bit, attribute in zip(bits, table.domain.attributes, strict=True)]
    at = {a.name: np.array([float(bit)]) for bit, a in zip(bits, table.domain.attributes, strict=True)}
    numbers = {name: _number(table.domain[name], at[name]) for name in table.numbers}
    known = {a.name: code < len(a.values) for a, code in zip(table.domain.attributes, codes, strict=True)}
    numbers = {name: column if known[name] else np.array([np.nan]) for name, column in numbers.items()}
    return Table(table.domain, np.array([codes], dtype=np.int64), numbers)


def changed_rows(rng: np.random.Generator, zero: Table, one: Table) -> tuple[Table, Table]:
    """Two neighbours, the last record of `one` apart, with a random corner in the place of a record of both or one."""
    corner = _corner(one, rng.integers(0, 2, len(one.domain.names)).tolist())
    place = int(rng.integers(len(one)))
    if place < len(one) - 1:
        return _put(zero, place, corner), _put(one, place, corner)
    if len(zero) == len(one) and rng.random() < 0.5:
        return _put(zero, place, corner), one
    return zero, _put(one, place, corner)


def _put(table: Table, place: int, record: Table) -> Table:
    """The table with this record at that place."""
    before, after = table.take(np.arange(place)), table.take(np.arange(place + 1, len(table)))
    return joined(joined(before, record), after)


def _changed(record: Table) -> Table:
    """The record with another level of its last attribute, which is the target of most."""
    attribute, codes, numbers = record.domain.attributes[-1], record.codes.copy(), dict(record.numbers)
    codes[:, -1] = (codes[:, -1] + 1) % attribute.size
    if attribute.name in numbers:
        numbers[attribute.name] = np.array([*attribute.values, np.nan])[codes[:, -1]]
    return Table(record.domain, codes, numbers)


def joined(one: Table, two: Table) -> Table:
    """The rows of both."""
    numbers = {name: np.concatenate([column, two.numbers[name]]) for name, column in one.numbers.items()}
    return Table(one.domain, np.concatenate([one.codes, two.codes]), numbers)


def _table(domain: Domain, codes: Codes, drawn: dict[str, Floats]) -> Table:
    """The rows with these codes, but for attributes of which numbers were drawn."""
    columns = [a.code(drawn[a.name]) if a.name in drawn else codes[:, j] for j, a in enumerate(domain.attributes)]
    return Table(domain, np.stack(columns, axis=1), drawn)


def _number(attribute: Attribute, part: Floats) -> Floats:
    """The numbers this far between the bounds."""
    assert attribute.bounds is not None
    lower, upper = attribute.bounds
    return lower + (upper - lower) * part
