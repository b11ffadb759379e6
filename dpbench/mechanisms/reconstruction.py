"""From noisy measurements to what is released of a workload: answers, and where a model is fitted, rows too.

One interface for whoever measured: noisy marginals, each with independent noise on its cells, or noisy residuals.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dpbench.data.domain import Clique, Domain, Floats
from dpbench.errors import check_known
from dpbench.inference import Engine, Measurement
from dpbench.inference.nonnegative import nonnegative
from dpbench.inference.residuals import Residuals, on_simplex
from dpbench.inference.trees import model_mb
from dpbench.mechanisms.fitting import ENGINES, check_answers, check_model, check_settings, engine_of
from dpbench.releases import Distribution, Part, SyntheticRows

ANSWERS = ("unbiased", "simplex", "least_squares")  # these fit no model
EXACT_SIGMA = 1e-3  # of a number of rows that is public, for engines, whose measurements all have noise

Measured = Sequence[Measurement] | Residuals


@dataclass(frozen=True)
class Reconstruction:
    """What is made of noisy marginals, or noisy residuals, of the `cliques` of a workload.

    `how` is one of

    - `unbiased`: the noisy tables themselves, or those of the residuals. Cells may be negative; tables of independent
      noise do not agree on what they share, those of residuals do.
    - `simplex`: each of these by itself brought to the nearest table of non-negative cells that sum to the total
      (Duchi et al. 2008). Tables do not agree on what they share.
    - `least_squares`: the most likely tables that agree and are not negative, with their total held
      (`inference.nonnegative`).
    - an engine, `native` or `mbi` (a junction tree, which must hold all of the workload) or `mixture` (of products of
      one-way distributions): a distribution, whose marginals agree, and rows drawn from it. It takes tables of
      independent noise; of residuals it gets the unbiased tables, each with the noise of its cells.

    `max_model_mb`: the limit on a junction tree or a mixture. `iterations`, `tolerance`: of `least_squares` (1,000, and
    0.1 of a cell's standard deviation) or the engine. `rows`: how many are drawn (None: the total).
    """

    mechanism: str
    how: str
    sizes: Mapping[str, int]
    cliques: tuple[Clique, ...]
    max_model_mb: float
    iterations: int
    tolerance: float | None
    components: int | None
    rows: int | None

    def __post_init__(self) -> None:
        """Raises `UserError` for a reconstruction that is not known, a setting out of range or too large a model."""
        check_known("reconstruction", self.how, (*ANSWERS, *ENGINES))
        check_settings(self.mechanism, tolerance=self.tolerance, iterations=self.iterations, rows=self.rows)
        check_settings(self.mechanism, tolerance=None, components=self.components)
        check_answers(self.mechanism, self.sizes, self.cliques)
        if self.how in ENGINES:
            tree = self.how != "mixture"
            mb = model_mb(self.sizes, self.cliques) if tree else self._engine().smallest_mb(self.sizes)
            what = (
                "the junction tree of the whole workload (reconstruction=mixture has none)" if tree else "the mixture"
            )
            check_model(self.mechanism, what, mb, self.max_model_mb)

    def _engine(self) -> Engine:
        components = self.components if self.how == "mixture" else None
        return engine_of(self.how, iterations=self.iterations, tolerance=self.tolerance, components=components)

    def parts(
        self, domain: Domain, measured: Measured, n: int | None, rng: np.random.Generator
    ) -> tuple[dict[Clique, Floats], tuple[Part, ...], dict[str, object]]:
        """The tables of the workload, what else a model gives, and diagnostics; n is the number of rows, if public."""
        residuals = measured if isinstance(measured, Residuals) else Residuals.of(self.sizes, measured, n)
        notes: dict[str, object] = {"reconstruction": self.how, "total": residuals.total}
        if self.how in ENGINES:
            model = self._engine().estimate(self.sizes, self._measurements(measured, n))
            distribution = Distribution(model)
            rows = SyntheticRows(distribution.sample(domain, self.rows or max(round(model.total), 1), rng))
            notes |= {"engine": self.how, "total": model.total, "model_mb": model.size_mb, "steps": model.iterations}
            return model.answer(self.cliques), (rows, distribution), {**notes, "consistent": True}
        if self.how == "least_squares":
            found = nonnegative(residuals, self.cliques, iterations=self.iterations, tolerance=self.tolerance)
            tables = {r: found.residuals.marginal(r) for r in self.cliques}
            notes |= {"total": found.residuals.total, "steps": found.steps, "most_negative": found.gap}
            return tables, (), {**notes, "consistent": True}
        tables = self._unbiased(measured)
        if self.how == "simplex":
            tables = {r: on_simplex(table, residuals.total) for r, table in tables.items()}
        consistent = self.how == "unbiased" and isinstance(measured, Residuals)
        return tables, (), {**notes, "consistent": consistent}

    def _unbiased(self, measured: Measured) -> dict[Clique, Floats]:
        if isinstance(measured, Residuals):
            return {r: measured.marginal(r) for r in self.cliques}
        return {m.clique: m.values for m in measured}

    def _measurements(self, measured: Measured, n: int | None) -> list[Measurement]:
        public = [] if n is None else [Measurement((), np.asarray(float(n)), EXACT_SIGMA)]
        if not isinstance(measured, Residuals):
            return [*measured, *public]
        tables = ((r, measured.marginal(r), measured.variance(r)) for r in self.cliques)
        return [*(Measurement(r, table, math.sqrt(v)) for r, table, v in tables if v > 0), *public]
