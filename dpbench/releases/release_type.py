"""`Release`: the output of a mechanism, with the ledger of its noise, and its answers to a workload of marginals.

It holds no exact value and not n.
"""

from __future__ import annotations

import json
import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from dpbench.data.coding import decoded
from dpbench.data.domain import Clique, Domain, Floats
from dpbench.data.encode import Design
from dpbench.data.table import Table
from dpbench.errors import ContractError, UserError
from dpbench.files import Json
from dpbench.privacy.budget import Budget
from dpbench.privacy.ledger import Ledger

from .checks import check_plain, kind_of, listed
from .distribution import Distribution
from .offers import (
    Arrays,
    BinSums,
    Coefficients,
    GlmStatistics,
    Marginals,
    Part,
    SufficientStatistics,
    SyntheticRows,
    SyntheticTables,
)

if TYPE_CHECKING:
    import pandas as pd

    from dpbench.privacy.accounting import Spent

P = TypeVar("P", bound=Part)
KINDS: dict[str, type[Part]] = {
    kind.kind: kind
    for kind in (
        *(SufficientStatistics, Marginals, SyntheticRows, Coefficients, BinSums, Distribution, GlmStatistics),
        SyntheticTables,
    )
}


@dataclass(frozen=True)
class Release:
    """The public output of one run of a mechanism: one or more `parts`, each of a different one of `KINDS`.

    `diagnostics` is plain data about the run that depends on the private rows only through the release's noise.
    `nonprivate_inputs` names what the run took from the private rows outside the privacy budget.
    """

    domain: Domain
    budget: Budget
    ledger: Ledger
    parts: tuple[Part, ...] = ()
    diagnostics: Json = field(default_factory=dict)
    nonprivate_inputs: tuple[str, ...] = ()

    @property
    def offers(self) -> tuple[str, ...]:
        """Which of `KINDS` the release holds."""
        return tuple(part.kind for part in self.parts)

    def get(self, kind: type[P]) -> P | None:
        """The part of this kind; None if there is none."""
        return next((part for part in self.parts if type(part) is kind), None)

    def __getitem__(self, kind: type[P]) -> P:
        found = self.get(kind)
        if found is None:
            raise ContractError(f"the release holds no {kind.kind}; it offers {', '.join(self.offers) or 'nothing'}")
        return found

    @property
    def rows(self) -> pd.DataFrame:
        """The synthetic rows: one column per attribute, levels by name, and for a number the middle of its bin.

        Raises `UserError` if the release has none.
        """
        return decoded(self._asked(SyntheticRows).table)

    @property
    def marginals(self) -> Mapping[Clique, Floats]:
        """Clique of attributes, in the order of the domain -> counts of rows, of shape `domain.shape(clique)`; they may
        be negative.

        Raises `UserError` if the release has none.
        """
        return self._asked(Marginals).tables

    @property
    def spent(self) -> Spent:
        """The guarantee of the ledger: epsilon at the delta of the budget, rho (zCDP) and mu (Gaussian DP)."""
        from dpbench.privacy.accounting import spent

        return spent(self.ledger, self.budget.delta)

    def _asked(self, kind: type[P]) -> P:
        """The part that a user asks for by its name."""
        found = self.get(kind)
        if found is None:
            raise UserError(f"the release has no {kind.kind}; it offers {', '.join(self.offers) or 'nothing'}")
        return found

    def __repr__(self) -> str:
        budget, size = self.budget, len(self.domain.names)
        paid = f"epsilon={budget.epsilon:g}, delta={budget.delta:g}, {budget.relation}"
        return f"<Release of {', '.join(self.offers) or 'nothing'} over {size} attributes: {paid}>"

    def redrawn(self, draw: int, rng: np.random.Generator) -> Release:
        """The release with newly drawn synthetic rows, as many as before. Draw 0 is the release itself.

        A release of bins stays as it is: the model draws its rows. Raises `UserError` for any other release without
        rows, or without the distribution that they are drawn from.
        """
        rows, distribution = self.get(SyntheticRows), self.get(Distribution)
        if draw == 0 or (rows is None and self.get(BinSums) is not None):
            return self
        if rows is None or distribution is None:
            raise UserError(
                "only a release of rows with their distribution, or of bins, can give several sets of synthetic rows; "
                f"this one offers {', '.join(self.offers)}: leave draws at 1"
            )
        fresh = SyntheticRows(distribution.sample(self.domain, len(rows.table), rng))
        return replace(self, parts=tuple(fresh if part is rows else part for part in self.parts))

    def exact(self, train: Table, design: Design) -> Release:
        """The release of these rows without noise; kinds that have no such form are left out."""
        parts = tuple(part for part in (part.exact(train, design) for part in self.parts) if part is not None)
        return Release(self.domain, Budget(math.inf, relation=self.budget.relation), Ledger(), parts)

    @property
    def outline(self) -> Hashable:
        """The values on which `exact` depends, apart from the rows and the design."""
        return tuple((part.kind, part.outline) for part in self.parts)

    def to_parts(self) -> tuple[Json, Arrays]:
        """The release as JSON-ready data and arrays; `from_parts` reads them back."""
        apart = {part.kind: part.to_parts() for part in self.parts}
        data: Json = {
            "domain": self.domain.to_list(),
            "budget": {**vars(self.budget), "epsilon": str(self.budget.epsilon)},
            "ledger": self.ledger.to_list(),
            "diagnostics": dict(self.diagnostics),
            "nonprivate_inputs": list(self.nonprivate_inputs),
            **{kind: own for kind, (own, _) in apart.items()},
        }
        return data, {f"{kind}.{name}": a for kind, (_, arrays) in apart.items() for name, a in arrays.items()}

    @classmethod
    def from_parts(cls, data: Json, arrays: Mapping[str, np.ndarray[Any, Any]]) -> Release:
        """The release that `to_parts` wrote."""
        domain, own = _domain(json.dumps(data["domain"])), dict[str, Arrays]()
        for name, array in arrays.items():
            kind, _, rest = name.partition(".")
            own.setdefault(kind, {})[rest] = array
        held = (kind for kind in KINDS if kind in data)
        parts = tuple(KINDS[kind].from_parts(domain, data[kind], own.get(kind, {})) for kind in held)
        budget = Budget(**{**data["budget"], "epsilon": float(data["budget"]["epsilon"])})
        ledger = Ledger.from_list(data["ledger"])
        return cls(domain, budget, ledger, parts, data["diagnostics"], tuple(data["nonprivate_inputs"]))


@lru_cache(maxsize=8)
def _domain(declared: str) -> Domain:
    """One domain for all releases over it."""
    return Domain.from_list(json.loads(declared))


def check_release(
    release: object, offers: Sequence[str] = (), budget: Budget | None = None, domain: Domain | None = None
) -> Release:
    """The release, if it is one that holds all kinds in `offers`, over this domain and for this budget (if given).

    Raises `ContractError`.
    """
    if type(release) is not Release:  # a subclass could carry rows into the store
        raise ContractError(f"a mechanism must return a dpbench.releases.Release, not {kind_of(release)}")
    if type(release.domain) is not Domain or (domain is not None and release.domain != domain):
        raise ContractError("the domain of the release must be that of the training rows, but it is another one")
    if type(release.budget) is not Budget or (budget is not None and release.budget != budget):
        raise ContractError(f"the budget of the release must be the requested one, {budget}, not {release.budget}")
    if type(release.ledger) is not Ledger:
        raise ContractError(f"the ledger of the release must be a Ledger, not {kind_of(release.ledger)}")
    if not all(type(text) is str for text in listed("nonprivate_inputs", release.nonprivate_inputs)):
        raise ContractError("nonprivate_inputs must be a tuple of texts")
    check_plain("the diagnostics of the release", release.diagnostics)
    _check_parts(listed("the parts of the release", release.parts), offers, release.domain)
    return release


def _check_parts(parts: Sequence[Any], offers: Sequence[str], domain: Domain) -> None:
    """Each is of one of `KINDS`, none twice, and all kinds offered are there."""
    for part in parts:
        if type(part) not in KINDS.values():
            known = ", ".join(kind.__name__ for kind in KINDS.values())
            raise ContractError(f"a part of the release must be one of {known}, not {kind_of(part)}")
    held = [part.kind for part in parts]
    missing = [kind for kind in offers or KINDS if kind not in held]
    if missing and (offers or not held):
        raise ContractError(
            f"the release must hold {', '.join(offers) or 'one of ' + ', '.join(KINDS)}; it holds "
            f"{', '.join(held) or 'none of them'}"
        )
    if len(set(held)) < len(held):
        raise ContractError(f"the release must hold each kind once, not {', '.join(held)}")
    for part in parts:
        part.check(domain)


def answers_of(release: Release, cliques: tuple[Clique, ...], n: int) -> Floats:
    """The answers (m,) to all cells of these marginals, as parts of one; n is the total of the released marginals.

    Raises `ContractError` as `counts_of` does.
    """
    counts, total = counts_of(release, cliques)
    return np.concatenate([counts[clique].ravel() for clique in cliques]) / (n if total is None else total)


def counts_of(release: Release, cliques: Sequence[Clique]) -> tuple[Mapping[Clique, Floats], float | None]:
    """The counts of all cells of these marginals, and their total; None for released marginals, of noisy totals.

    Those of its own marginals if it has all of these, else of its distribution, else of its rows. Raises
    `ContractError` for a release of none of them.
    """
    released = release.get(Marginals)
    if released is not None and all(clique in released.tables for clique in cliques):
        return {clique: released.tables[clique] for clique in cliques}, None
    if (distribution := release.get(Distribution)) is not None:
        return distribution.answer(cliques), distribution.model.total
    rows = release[SyntheticRows].table
    return rows.marginals(cliques), len(rows)
