"""Where a distribution by multiplicative weights has its mass: the whole domain, or the rows of public data."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from dpbench.data.domain import Codes, Floats
from dpbench.data.table import Table
from dpbench.errors import UserError, check_known
from dpbench.inference import Model
from dpbench.inference.points import HistogramModel, WeightedRows
from dpbench.inference.query_workload import QueryWorkload
from dpbench.mechanisms.adaptive import Family, run_equal_rounds
from dpbench.mechanisms.fitting import check_settings
from dpbench.mechanisms.query_release import release_of_model
from dpbench.privacy.budget import Budget
from dpbench.releases import Release

STARTS = ("public", "uniform")


class Support(Protocol):
    """A set of records, and distributions on it: arrays of one shape, a probability for each."""

    @property
    def queries(self) -> QueryWorkload:
        """What is asked."""

    def initial(self) -> Floats:
        """The distribution that the rounds start from."""

    def answers(self, distribution: Floats) -> Floats:
        """q of the distribution, of all queries (m,)."""

    def overlap(self, query: int, other: int) -> Any:
        """The index of the records that both queries count; None if there are none."""

    def model(self, distribution: Floats, total: float, rounds: int) -> Model:
        """The distribution as a model."""

    @property
    def unpaid(self) -> tuple[str, ...]:
        """What a release names among its `nonprivate_inputs`."""


def reweighed(
    mechanism: str,
    train: Table,
    budget: Budget,
    rng: np.random.Generator,
    support: Support,
    family: Family[Floats],
    *,
    rounds: int,
    per_round: int,
    alpha: float,
    rows: int | None,
    calibration: str,
) -> Release:
    """The release of the last distribution of a family on this support; the parameters are those of `mwem` and `pep`.

    Raises `UserError` for a parameter out of range.
    """
    check_settings(mechanism, tolerance=None, rows=rows)
    noise_rng, rows_rng = rng.spawn(2)
    distribution, ledger, rho = run_equal_rounds(
        mechanism,
        train,
        budget,
        noise_rng,
        support.queries,
        family,
        rounds=rounds,
        per_round=per_round,
        alpha=alpha,
        calibration=calibration,
    )
    model = support.model(distribution, float(len(train)), rounds)
    return release_of_model(train.domain, budget, ledger, model, rows_rng, rows, {"rho": rho}, support.unpaid)


@dataclass(frozen=True)
class WholeDomain:
    """All cells of the domain, and the uniform distribution."""

    queries: QueryWorkload

    def initial(self) -> Floats:
        """The uniform distribution, of the shape of all sizes."""
        sizes = tuple(self.queries.sizes.values())
        return np.full(sizes, 1 / math.prod(sizes))

    def answers(self, distribution: Floats) -> Floats:
        """Sums of the table."""
        return self.queries.of_histogram(distribution)

    def overlap(self, query: int, other: int) -> Any:
        """A slab of the table."""
        return self.queries.overlap(query, other)

    def model(self, distribution: Floats, total: float, rounds: int) -> Model:
        """A histogram."""
        return HistogramModel(self.queries.sizes, total, rounds, 0.0, distribution)

    @property
    def unpaid(self) -> tuple[str, ...]:
        """Nothing."""
        return ()


@dataclass(frozen=True)
class PublicRows:
    """The different rows `codes` (u, d) of public data, and the distribution `start` (u,)."""

    queries: QueryWorkload
    codes: Codes
    start: Floats

    @classmethod
    def of(cls, mechanism: str, queries: QueryWorkload, public: Table | None, start: str) -> PublicRows:
        """`start`: `public`, the rows' own frequencies, or `uniform`.

        Raises `UserError` for another start, no rows, or rows that lack an attribute.
        """
        check_known("start", start, STARTS)
        if public is None or not len(public):
            raise UserError(
                f"{mechanism} needs public rows: set dataset.public_data, or sample.public_rows such as 1000"
            )
        lacking = [name for name in queries.sizes if name not in public.domain.sizes]
        if lacking:
            raise UserError(
                f"{mechanism} reweighs whole public rows, and these have no {', '.join(lacking)}; leave that out of "
                "the private data (dataset.drop), or name public data that have it"
            )
        columns = [public.domain.index(name) for name in queries.sizes]
        codes, counts = np.unique(public.codes[:, columns], axis=0, return_counts=True)
        distribution = counts / counts.sum() if start == "public" else np.full(len(codes), 1 / len(codes))
        return cls(queries, codes, distribution)

    def initial(self) -> Floats:
        """See the class."""
        return self.start

    def answers(self, distribution: Floats) -> Floats:
        """Sums over the rows."""
        return self.queries.of_rows(self.codes, distribution)

    def overlap(self, query: int, other: int) -> Any:
        """The places of rows."""
        levels = [*self.queries.cell(query).items(), *self.queries.cell(other).items()]
        place = {name: j for j, name in enumerate(self.queries.sizes)}
        held = np.all([self.codes[:, place[name]] == level for name, level in levels], axis=0)
        return np.flatnonzero(held) if held.any() else None

    def model(self, distribution: Floats, total: float, rounds: int) -> Model:
        """The rows with their probabilities."""
        return WeightedRows(self.queries.sizes, total, rounds, 0.0, self.codes, distribution)

    @property
    def unpaid(self) -> tuple[str, ...]:
        """The rows, which a release by weights shows."""
        return (f"{len(self.codes)} different public rows, which no budget protects",)
