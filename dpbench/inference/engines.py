"""What an estimation engine and the models that it returns can do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, Required, TypedDict

import numpy as np
import numpy.typing as npt

from .counts import Counts
from .measurements import Array, Clique, InferenceError, Measurement


class ModelData(TypedDict, total=False):
    """What describes a model, JSON-ready, besides its arrays; `cliques` and `filled` are those of a Markov model."""

    model: Required[str]
    sizes: Required[list[tuple[str, int]]]
    total: Required[float]
    iterations: Required[int]
    loss: Required[float]
    cliques: list[list[str]]
    filled: list[int]


State = tuple[ModelData, dict[str, Array]]


@dataclass(frozen=True)
class Model(ABC):
    """A distribution over attributes with these `sizes`, times `total`, the estimated number of rows.

    `iterations`: the steps that the estimate took. `loss`: what it ended with.
    """

    sizes: Mapping[str, int]
    total: float
    iterations: int
    loss: float

    @property
    @abstractmethod
    def cliques(self) -> tuple[Clique, ...]:
        """The largest sets of attributes that may depend on each other in any way."""

    @property
    @abstractmethod
    def size_mb(self) -> float:
        """Size of its parameters in MB."""

    @abstractmethod
    def answer(self, cliques: Sequence[Clique]) -> dict[Clique, Array]:
        """Marginals, nonnegative, each summing to `total`.

        **Shapes**: one table per clique, of the sizes of its attributes in the order of the domain.
        """

    def distances(self, counts: Counts, cliques: Sequence[Clique]) -> dict[Clique, float]:
        """||h - m||_1 of each clique, one of `counts`, between the rows' marginal h and the model's m."""
        found = {}
        for clique in cliques:
            at = counts.cells[clique]
            found[clique] = counts.distance(at, self.answer([clique])[clique].ravel()[at.flat], self.total)
        return found

    @abstractmethod
    def sample(self, rows: int, rng: np.random.Generator) -> npt.NDArray[np.int64]:
        """Synthetic rows (rows, d): codes, in the order of `sizes`."""

    def described(self, model: str) -> ModelData:
        """What a `state` says of a model of this kind, without its arrays."""
        sizes = list(self.sizes.items())
        return {"model": model, "sizes": sizes, "total": self.total, "iterations": self.iterations, "loss": self.loss}

    @abstractmethod
    def state(self) -> State:
        """All that `inference.load_model` needs to make the model again, with answers and rows of the same bits."""


def sizes_of(data: ModelData) -> dict[str, int]:
    """The sizes of a model that was described."""
    return {name: int(size) for name, size in data["sizes"]}


class Engine(Protocol):
    """Settings, and one method that estimates a model from noisy marginals."""

    def estimate(
        self, sizes: Mapping[str, int], measurements: Sequence[Measurement], warm_start: Model | None = None
    ) -> Model:
        """The model that fits the measurements. `warm_start`: one of the same engine, to begin from."""

    def update(self, sizes: Mapping[str, int], measurements: Sequence[Measurement], model: Model) -> Model:
        """Faster than `estimate`, and near enough to choose what is measured next. `model`: of all but the last."""

    def smallest_mb(self, sizes: Mapping[str, int]) -> float:
        """Size in MB of the model of the one-way marginals alone."""


def check_effort(iterations: int, tolerance: float | None) -> None:
    """Raises `InferenceError` for a number of iterations below 1 or a tolerance that is not positive."""
    if iterations < 1:
        raise InferenceError(f"iterations is {iterations}; give at least 1")
    if tolerance is not None and not tolerance > 0:
        raise InferenceError(f"tolerance is {tolerance}; it must be > 0")
