"""Estimation of a distribution from noisy marginals.

Knows nothing of privacy: an `Engine` takes measurements with their noise scale and returns a `Model`, which answers
marginal queries, gives synthetic rows, and can be stored. `JunctionTree` is Private-PGM, exact and on one core.
"""

from __future__ import annotations

from collections.abc import Mapping

from .counts import Counts
from .engines import Engine, Model, ModelData, State
from .estimation import JunctionTree
from .measurements import MOST_SIGMA, Array, Clique, InferenceError, Measurement
from .model import MarkovModel
from .trees import candidate_mb, model_mb


def load_model(data: ModelData, arrays: Mapping[str, Array]) -> Model:
    """The model whose `state()` this is: its answers and rows have the same bits.

    Raises `InferenceError` for a model that is not known, or arrays that do not fit its data.
    """
    from .mixture import MixtureModel
    from .points import HistogramModel, WeightedRows

    kinds: dict[str, type[MarkovModel | MixtureModel | HistogramModel | WeightedRows]]
    kinds = {"markov": MarkovModel, "mixture": MixtureModel, "histogram": HistogramModel, "rows": WeightedRows}
    if data["model"] not in kinds:
        raise InferenceError(f"unknown model {data['model']!r}; known: {', '.join(kinds)}")
    return kinds[data["model"]].from_state(data, arrays)


__all__ = [
    "MOST_SIGMA",
    "Clique",
    "Counts",
    "Engine",
    "InferenceError",
    "JunctionTree",
    "MarkovModel",
    "Measurement",
    "Model",
    "ModelData",
    "State",
    "candidate_mb",
    "load_model",
    "model_mb",
]
