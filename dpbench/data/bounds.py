"""Bounds computed from the rows in place of declared ones, as papers do that leave the choice of bounds aside."""

from __future__ import annotations

from dpbench.data.domain import Attribute, Codes, Domain, Floats
from dpbench.data.table import Table
from dpbench.errors import UserError


def observed_bounds(table: Table) -> Table:
    """The same rows, the bounds of each numeric attribute being its least and greatest number in them.

    Not private: the domain of the result is computed from rows. An attribute keeps its number of bins, which become
    equal-width; one that takes just some values keeps those within the bounds.

    Raises `UserError` for an attribute that has but one number, or has codes in place of its numbers.
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
            f"dataset.bounds=data: attribute {name!r} has codes only, and no numbers to read bounds off; "
            "use dataset.bounds=declared"
        )
    lower, upper = float(numbers.min()), float(numbers.max())
    if lower == upper:
        raise UserError(
            f"dataset.bounds=data: attribute {name!r} is {lower:g} in every row, which makes no bounds; "
            f"leave it out with dataset.drop=[{name}], or use dataset.bounds=declared"
        )
    if declared.discrete_values:
        attribute = Attribute.discrete(name, [value for value in declared.values if lower <= value <= upper], unit)
    else:
        attribute = Attribute.binned(name, lower, upper, declared.size, unit)
    return attribute, attribute.code(numbers)
