"""The same estimate by mbi (McKenna's Private-PGM library): a reference, and for models too large for one core.

The one place that meets mbi and jax; both are imported when a model is estimated. Each new set of cliques costs seconds
of compilation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .engines import Model, check_effort
from .measurements import Measurement, checked_sizes, loss_of
from .model import MarkovModel, checked_start
from .trees import model_mb


def _mbi() -> Any:
    """mbi with 64-bit floats and without jax's compilation cache, which only grows for ever-new clique sets."""
    import jax

    config: Any = jax.config
    config.update("jax_enable_x64", True)
    config.update("jax_enable_compilation_cache", False)
    import mbi

    return mbi


@dataclass(frozen=True)
class Mbi:
    """Private-PGM by `mbi.estimation.MirrorDescent`; the total is estimated, never given.

    **Source**: McKenna, Sheldon, Miklau 2019, algorithm 1, in mbi's implementation. `iterations` is rounded up to a
    multiple of 50 there, and all of them are made. The potentials are mbi's; answers and rows are those of our model.
    """

    iterations: int = 1000

    def __post_init__(self) -> None:
        check_effort(self.iterations, None)

    def smallest_mb(self, sizes: Mapping[str, int]) -> float:
        """Size in MB of the model of the one-way marginals."""
        return model_mb(sizes, [(name,) for name in sizes])

    def estimate(
        self, sizes: Mapping[str, int], measurements: Sequence[Measurement], warm_start: Model | None = None
    ) -> MarkovModel:
        """As `JunctionTree.estimate`."""
        sizes = checked_sizes(sizes, measurements)
        earlier = checked_start(warm_start, sizes)
        mbi = _mbi()
        domain = mbi.Domain.fromdict(sizes)
        linear = [mbi.LinearMeasurement(m.values.ravel(), m.clique, m.sigma) for m in measurements]
        old = {} if earlier is None else earlier.potentials
        known = {clique: table for clique, table in old.items() if set(clique) <= set(sizes)}
        tables = {clique: mbi.Factor(domain.project(clique), table) for clique, table in known.items()}
        start = mbi.CliqueVector(domain, tuple(tables), tables) if tables else None
        found = mbi.estimation.MirrorDescent().estimate(domain, linear, iters=self.iterations, warm_start=start)
        potentials = {
            clique: np.asarray(factor.values, dtype=np.float64) for clique, factor in found.potentials.tables.items()
        }
        model = MarkovModel.calibrated(sizes, potentials, float(found.total), iterations=self.iterations, loss=0.0)
        loss = loss_of(measurements, model.answer(list(dict.fromkeys(m.clique for m in measurements))))
        return replace(model, loss=loss)

    def update(self, sizes: Mapping[str, int], measurements: Sequence[Measurement], model: Model) -> MarkovModel:
        """The estimate: all of its iterations are made."""
        return self.estimate(sizes, measurements, model)
