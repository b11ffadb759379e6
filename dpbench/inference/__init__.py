"""Estimation of a distribution from noisy marginals (Private-PGM), exact and on one core.

Knows nothing of privacy: measurements come in with their noise scale, a model goes out that answers marginal
queries and gives synthetic rows.
"""

from .estimation import estimate
from .measurements import MOST_SIGMA, Clique, InferenceError, Measurement, ModelTooLarge
from .model import MarkovModel
from .trees import candidate_mb, model_mb

__all__ = [
    "MOST_SIGMA",
    "Clique",
    "InferenceError",
    "MarkovModel",
    "Measurement",
    "ModelTooLarge",
    "candidate_mb",
    "estimate",
    "model_mb",
]
