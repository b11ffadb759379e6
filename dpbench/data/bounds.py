"""Bounds computed from the rows instead of declared ones, as in papers that do not discuss the choice of bounds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dpbench.data.domain import Attribute, Codes, Domain, Floats
from dpbench.data.table import Table
from dpbench.errors import UserError


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
