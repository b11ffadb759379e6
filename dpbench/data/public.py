"""Public data: rows of another table, over the domain of the private one or some of its attributes."""

from __future__ import annotations

import numpy as np

from dpbench.data.domain import Attribute, Domain
from dpbench.data.table import Table
from dpbench.errors import UserError

SHOWN = 6  # levels that a message lists


def public_domain(private: Domain, public: Domain) -> Domain:
    """The attributes of the public data, in the order of the private domain.

    Raises `UserError` for an attribute that the private domain lacks, or declares with other levels, bins or bounds.
    """
    unknown = [name for name in public.names if name not in private.sizes]
    shared = [name for name in public.names if name in private.sizes]
    if not shared:
        raise UserError(
            f"the public data have none of the attributes of the private ones, {', '.join(private.names)}; they have "
            f"{', '.join(public.names)}"
        )
    if unknown:
        raise UserError(
            f"the public data have attributes that the private ones lack: {', '.join(unknown)}; leave them out "
            f"with dataset.public_data.drop=[{','.join(unknown)}]"
        )
    for name in shared:
        if public[name] != private[name]:
            raise UserError(
                f"attribute {name!r} of the public data is declared differently from that of the private ones: "
                f"{_difference(private[name], public[name])}; declare both the same, or leave it out with "
                f"dataset.public_data.drop=[{name}]"
            )
    return private.project(shared)


def _difference(private: Attribute, public: Attribute) -> str:
    """The difference of two attributes."""
    if private.levels and public.levels:
        for whose, one, other in (("only they have", public, private), ("they lack", private, public)):
            if strange := [level for level in one.levels if level not in other.levels]:
                more = f", ... ({len(strange)} levels)" if len(strange) > SHOWN else ""
                return f"{whose} {', '.join(strange[:SHOWN])}{more}"
        return "its levels are in another order"
    kinds = [f"{one.size} {'bins or values' if one.numeric else 'levels'}" for one in (public, private)]
    return f"{kinds[0]} instead of {kinds[1]}" if kinds[0] != kinds[1] else "its bins or bounds differ"


def public_part(private: Domain, public: Table) -> Table:
    """The public rows over `public_domain`. Raises `UserError` as it does."""
    domain = public_domain(private, public.domain)
    columns = [public.domain.index(name) for name in domain.names]
    return Table(domain, np.ascontiguousarray(public.codes[:, columns]), public.numbers)


def shared_rows(private: Table, public: Table, *, counted: bool) -> tuple[str, ...]:
    """The note on public rows that equal some private row in all of their attributes; empty if none does.

    `public` is a `public_part`. `counted`: whether the private rows are public. If not, nothing is counted, since the
    result would reveal information on a record outside the budget. In small domains rows of different people are equal:
    if the tables share no record, and come from the same distribution, a similar share of the private rows equals
    another one.
    """
    if not counted:
        return ("public data: not checked for rows that are also private rows",)
    own = private.codes[:, [private.domain.index(name) for name in public.domain.names]]
    _, kind = np.unique(np.concatenate([own, public.codes]), axis=0, return_inverse=True)
    there = np.bincount(kind[: len(own)], minlength=len(kind))
    equal, usual = int(np.sum(there[kind[len(own) :]] > 0)), int(there[there > 1].sum())
    if not equal:
        return ()
    parts = f"{equal:,} of {len(public):,} rows equal a private row in all {len(public.domain.names)} attributes"
    return (f"public data: {parts}; {usual:,} of {len(private):,} private rows equal another one",)
