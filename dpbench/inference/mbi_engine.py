"""The same estimate by mbi (McKenna's Private-PGM library), behind the interface of `dpbench.inference.estimate`.

The one place that meets mbi and jax; both are imported when a function is called. Use it as a reference, or for a
model too large for one core; each new set of cliques costs seconds of compilation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from .measurements import (
    Array,
    Clique,
    InferenceError,
    Measurement,
    ModelTooLarge,
    canonical,
    checked_sizes,
    loss_of,
)
from .model import with_total
from .sampling import sample_rows
from .trees import bits, junction_tree, mask_of, model_mb


def _mbi() -> Any:
    """mbi with 64-bit floats and without jax's compilation cache, which only grows for ever-new clique sets."""
    import jax

    config: Any = jax.config
    config.update("jax_enable_x64", True)
    config.update("jax_enable_compilation_cache", False)
    import mbi

    return mbi


@dataclass(frozen=True)
class MbiModel:
    """mbi's model with the attributes and methods of `MarkovModel`.

    **Shapes**: as `MarkovModel`; `model` is an `mbi.MarkovRandomField`.
    """

    sizes: Mapping[str, int]
    cliques: tuple[Clique, ...]
    total: float
    size_mb: float
    iterations: int
    loss: float
    model: Any = field(repr=False)

    def answer(self, cliques: Sequence[Clique]) -> dict[Clique, Array]:
        """Marginals, nonnegative, each summing to `total`."""
        tables = {}
        for clique in cliques:
            names = canonical(clique, self.sizes)
            values = np.asarray(self.model.project(names).values, dtype=np.float64) if names else np.ones(())
            tables[names] = with_total(values, self.total)
        return tables

    def sample(self, rows: int, rng: np.random.Generator) -> npt.NDArray[np.int64]:
        """Synthetic rows (rows, d) by the same randomised rounding as `MarkovModel.sample`."""
        index = {name: i for i, name in enumerate(self.sizes)}
        shape = tuple(self.sizes.values())
        tree = junction_tree([mask_of(c, index) for c in self.cliques], shape)
        names = tuple(self.sizes)
        held = [tuple(names[i] for i in bits(mask)) for mask in tree.cliques]
        tables = self.answer(held)
        return sample_rows(shape, tree, [tables[clique] for clique in held], rows, rng)


def estimate(
    sizes: Mapping[str, int],
    measurements: Sequence[Measurement],
    *,
    warm_start: MbiModel | None = None,
    iterations: int = 1000,
    tolerance: float | None = None,
    max_mb: float | None = None,
) -> MbiModel:
    """Private-PGM by `mbi.estimation.MirrorDescent`; the total is estimated, never given.

    **Source**: McKenna, Sheldon, Miklau 2019, algorithm 1, in mbi's implementation. `iterations` is rounded up to a
    multiple of 50 there, and all of them are made: `tolerance` is read by the native engine only.
    **Shapes**: `measurements[i].values` has the sizes of its clique.
    """
    sizes = checked_sizes(sizes, measurements)
    if iterations < 1:
        raise InferenceError(f"iterations is {iterations}; give at least 1")
    size_mb = model_mb(sizes, [m.clique for m in measurements])
    if max_mb is not None and size_mb > max_mb:
        raise ModelTooLarge(f"the model of these cliques needs {size_mb:.3g} MB, over the limit of {max_mb:.3g} MB")
    mbi = _mbi()
    linear = [mbi.LinearMeasurement(m.values.ravel(), m.clique, m.sigma) for m in measurements]
    model = mbi.estimation.MirrorDescent().estimate(
        mbi.Domain.fromdict(sizes),
        linear,
        iters=iterations,
        warm_start=warm_start.model if warm_start is not None else None,
    )
    index = {name: i for i, name in enumerate(sizes)}
    names = tuple(sizes)
    tree = junction_tree([mask_of(m.clique, index) for m in measurements], tuple(sizes.values()))
    result = MbiModel(
        sizes=sizes,
        cliques=tuple(tuple(names[i] for i in bits(mask)) for mask in tree.cliques),
        total=float(model.total),
        size_mb=size_mb,
        iterations=iterations,
        loss=0.0,
        model=model,
    )
    loss = loss_of(measurements, result.answer(list(dict.fromkeys(m.clique for m in measurements))))
    return MbiModel(**{**result.__dict__, "loss": loss})
