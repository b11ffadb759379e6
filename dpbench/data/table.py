"""`Table` (rows over a declared domain), its marginals, and `Split` (its train and test parts)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpbench.data.domain import Attribute, Clique, Codes, Domain, Floats
from dpbench.errors import UserError

AT_ONCE = 2**14  # rows, so that their codes in a marginal's attributes fit a processor's cache
Number = TypeVar("Number", np.int64, np.float64)
TestRows = float | Sequence[float]  # see `count_test_rows`


def counted(
    codes: NDArray[np.integer[Any]],
    sizes: Mapping[str, int],
    cliques: Sequence[Clique],
    weights: Floats | None = None,
) -> dict[Clique, Floats]:
    """The counts of each clique's cells, of the sizes of its attributes; or the sums of the rows' `weights` (n,).

    **Shapes** `codes` (n, d) in the order of `sizes`. Weighted rows are summed all at once, in their order, so that
    the sums do not depend on `AT_ONCE`.

    >>> counted(np.array([[0, 1], [1, 1], [1, 1]]), {"a": 2, "b": 2}, [("a", "b")])[("a", "b")].tolist()
    [[0.0, 1.0], [0.0, 2.0]]
    """
    named = {name for clique in cliques for name in clique}
    place = {name: j for j, name in enumerate(sizes) if name in named}
    index = {name: i for i, name in enumerate(place)}
    shapes = [tuple(sizes[name] for name in clique) for clique in cliques]
    tables = [np.zeros(math.prod(shape)) for shape in shapes]
    order = sorted(range(len(cliques)), key=lambda i: [index[name] for name in cliques[i]])
    step = max(AT_ONCE, *(table.size for table in tables)) if weights is None and tables else max(len(codes), 1)
    for start in range(0, len(codes), step):
        columns = np.ascontiguousarray(codes[start : start + step].T[[*place.values()]], dtype=np.intp)
        cells = [np.zeros(columns.shape[1], dtype=np.intp)]  # of the first k attributes, which the next one may share
        last: Clique = ()
        for i in order:
            clique, table = cliques[i], tables[i]
            shared = next((k for k, (a, b) in enumerate(zip(clique, last, strict=False)) if a != b), len(last))
            del cells[min(shared, len(clique)) + 1 :]
            for name in clique[len(cells) - 1 :]:
                cells.append(cells[-1] * sizes[name])
                cells[-1] += columns[index[name]]
            table += np.bincount(cells[-1], weights=weights, minlength=table.size)
            last = clique
    return {clique: table.reshape(shape) for clique, table, shape in zip(cliques, tables, shapes, strict=True)}


PROTOCOLS = ("split", "authors")  # see `Split.seen`


class Countable(Protocol):
    """The rows that mechanisms on marginals need: a `Table`, or a `ParquetTable`, which stays on disk."""

    @property
    def domain(self) -> Domain:
        """The attributes."""

    def __len__(self) -> int:
        """The number of rows."""

    def marginals(self, cliques: Sequence[Clique]) -> dict[Clique, Floats]:
        """See `Table.marginals`."""


class TableError(ValueError):
    """Rows that do not fit their domain; the message names the attribute, the row and the value."""


@dataclass(frozen=True)
class Table:
    """n rows: `codes` (n, d) int64, one column per attribute of `domain`, each in [0, size).

    `numbers` holds the undiscretised values (n,) float64 of numeric attributes where they are known, each finite and
    in the bin that its code names, and so within the declared bounds, or NaN where the code is that of a missing one;
    synthetic rows have none. A table is read-only: a
    change would affect every later use of the same rows.

    Raises `TableError` for rows that do not fit the domain.
    """

    domain: Domain
    codes: Codes
    numbers: Mapping[str, Floats] = field(default_factory=dict)

    def __post_init__(self) -> None:
        codes = _codes(self.codes, self.domain)
        numbers = {name: _numbers(column, name, self.domain, codes) for name, column in self.numbers.items()}
        object.__setattr__(self, "codes", _read_only(codes))
        object.__setattr__(self, "numbers", MappingProxyType({name: _read_only(x) for name, x in numbers.items()}))

    def __reduce__(self) -> tuple[Any, ...]:  # a mapping proxy cannot be pickled
        return Table, (self.domain, self.codes, dict(self.numbers))

    def __len__(self) -> int:
        return len(self.codes)

    def column(self, name: str) -> Codes:
        """The codes (n,) of one attribute."""
        return self.codes[:, self.domain.index(name)]

    def take(self, rows: NDArray[np.int64]) -> Table:
        """These rows, in this order."""
        return Table(self.domain, self.codes[rows], {name: column[rows] for name, column in self.numbers.items()})

    def project(self, names: Sequence[str]) -> Table:
        """These attributes only, in the domain's order."""
        domain = self.domain.project(names)
        columns = [self.domain.index(name) for name in domain.names]
        kept = {name: column for name, column in self.numbers.items() if name in domain.sizes}
        return Table(domain, np.ascontiguousarray(self.codes[:, columns]), kept)

    def marginal(self, clique: Clique) -> Floats:
        """mu_r (DD-SSP, Definition 2.9): the counts of the clique's cells, of shape `domain.shape(clique)`."""
        return self.marginals([clique])[clique]

    def marginals(self, cliques: Sequence[Clique]) -> dict[Clique, Floats]:
        """The `marginal` of each of the cliques, in one pass over the rows."""
        return counted(self.codes, self.domain.sizes, cliques)


def _codes(given: Any, domain: Domain) -> Codes:
    """Codes (n, d), each an integer in [0, size)."""
    codes = np.asarray(given)
    if codes.ndim != 2 or codes.shape[1] != len(domain.names) or codes.dtype.kind not in "iu":
        raise TableError(
            f"codes must be integers of shape (n, {len(domain.names)}), a column for each attribute of the domain, "
            f"not {codes.dtype} of shape {codes.shape}"
        )
    sizes = np.array(list(domain.sizes.values()))
    if len(codes) and (codes.min() < 0 or np.any(codes.max(axis=0) >= sizes)):
        row, column = np.argwhere((codes < 0) | (codes >= sizes))[0]
        name, size = domain.names[column], sizes[column]
        raise TableError(f"attribute {name!r}, row {row + 1}: the code {codes[row, column]} is not in 0 .. {size - 1}")
    return codes.astype(np.int64, copy=False)


def _numbers(given: Any, name: str, domain: Domain, codes: Codes) -> Floats:
    """Numbers (n,) of a numeric attribute, each in the bin of its code and within the bounds."""
    if name not in domain.sizes or not domain[name].numeric:
        raise TableError(f"numbers are given for {name!r}, which is not a numeric attribute of the domain")
    numbers = np.asarray(given)
    if numbers.shape != (len(codes),) or numbers.dtype.kind not in "iuf":
        raise TableError(
            f"attribute {name!r}: its numbers must be of shape ({len(codes)},), one per row, "
            f"not {numbers.dtype} of shape {numbers.shape}"
        )
    numbers = numbers.astype(np.float64, copy=False)
    _check_numbers(numbers, codes[:, domain.index(name)], domain[name])
    return numbers


def _check_numbers(numbers: Floats, codes: Codes, attribute: Attribute) -> None:
    assert attribute.bounds is not None
    (lower, upper), edges = attribute.bounds, np.array(attribute.edges)
    if attribute.missing:
        there = codes < len(attribute.values)
        if (wrong := there == np.isnan(numbers)).any():
            row = int(wrong.argmax())
            raise TableError(
                f"attribute {attribute.name!r}, row {row + 1}: its code and its number differ in whether it is missing"
            )
        numbers, codes = numbers[there], codes[there]
    outside = ~((numbers >= lower) & (numbers <= upper))  # including NaN
    if outside.any():
        row = int(outside.argmax())
        raise TableError(
            f"attribute {attribute.name!r}, row {row + 1}: the number {numbers[row]:g} is outside its declared bounds "
            f"[{lower:g}, {upper:g}] ({np.count_nonzero(outside):,} such of {len(numbers):,})"
        )
    elsewhere = (numbers < edges[codes]) | (numbers > edges[codes + 1])
    if elsewhere.any():
        row = int(elsewhere.argmax())
        code = codes[row]
        raise TableError(
            f"attribute {attribute.name!r}, row {row + 1}: the number {numbers[row]:g} is not in bin {code}, "
            f"[{edges[code]:g}, {edges[code + 1]:g}], of its code; `Attribute.code` gives the codes of numbers"
        )


def _read_only(array: NDArray[Number]) -> NDArray[Number]:
    """A read-only view of the values; nothing is copied."""
    view = array.view()
    view.flags.writeable = False
    return view


@dataclass(frozen=True)
class Split:
    """A train and a test part of one table; no row is in both. `protocol`: see `seen`.

    `truth`: the population's coefficient of each feature, in its unit, of simulated rows; empty for real ones.
    `public`: rows in neither part, treated as public; None where no mechanism needs them.
    """

    train: Table
    test: Table
    truth: Mapping[str, float] = field(default_factory=dict)
    public: Table | None = None
    protocol: str = "split"

    @cached_property
    def seen(self) -> Table:
        """The rows that a mechanism gets: those of `train`; under the protocol `authors` those of `test` too.

        The latter is the practice of the public code of "Bounding the Excess Risk for Linear Models" (Zhou et al.
        2024), whose synthetic rows depend on the rows they are tested on.
        """
        return self.train if self.protocol == "split" else self.whole

    @cached_property
    def whole(self) -> Table:
        """The rows of `train` and then those of `test`."""
        both = (self.train, self.test)
        numbers = {name: np.concatenate([part.numbers[name] for part in both]) for name in self.train.numbers}
        return Table(self.train.domain, np.concatenate([part.codes for part in both]), numbers)


def count_test_rows(test_rows: TestRows, rows: int) -> int:
    """How many of `rows` rows are for testing: `test_rows`; a fraction of them, rounded up, if it is below 1.

    Of two numbers, such as [0.2, 1000], the first is this fraction, and the second the maximum number of test rows.

    >>> count_test_rows(1000, 600), count_test_rows(0.2, 601), count_test_rows([0.2, 1000], 48842)
    (1000, 121, 1000)
    """
    part, most = test_rows if isinstance(test_rows, Sequence) else (test_rows, math.inf)
    return int(min(part if part >= 1 else math.ceil(part * rows), most))


def split(
    table: Table, rng: np.random.Generator, *, train_rows: int, test_rows: TestRows, public_rows: int = 0
) -> Split:
    """Shuffle, take `test_rows` for testing and up to `train_rows` of the others for training (DD-SSP, G.1).

    `test_rows` is as `count_test_rows` takes it; 0 leaves no test rows. `public_rows` come after the training rows,
    which are fewer if the table has no others left. For one `rng` state the order of the rows does not depend on the
    requested sizes.

    Raises `UserError` if the test or public part would be smaller than requested, or there would be no training row.
    """
    order = rng.permutation(len(table))
    wanted = count_test_rows(test_rows, len(table))
    test, train, rest = np.split(order, [wanted, max(wanted, min(wanted + train_rows, len(table) - public_rows))])
    if len(test) < wanted or not len(train) or len(rest) < public_rows:
        more = f", {public_rows} public rows and a training row" if public_rows else " and a training row"
        raise UserError(
            f"{len(table)} rows cannot be split into {wanted} test rows{more}; set sample.test_rows, sample.train_rows "
            "and sample.public_rows to fit the table"
        )
    public = table.take(rest[:public_rows]) if public_rows else None
    return Split(table.take(train), table.take(test), public=public)
