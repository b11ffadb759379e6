"""Private-PGM: the Markov random field that fits noisy marginals best."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from .engines import Model, check_effort
from .measurements import Measurement, Target, checked_sizes, fold, loss_of
from .model import MarkovModel, checked_start, oracle_of
from .oracle import Oracle
from .solver import Problem, Solution, solve
from .starts import carried, divergence, independent
from .trees import model_mb

# How near to its minimum a loss is driven, a measured cell, unless the caller says otherwise. A small model costs so
# little that it is driven to where nothing can be told from the minimum; a large one to where AIM's errors on Adult
# could not be (python -m benchmarks.aim_quality).
TIGHT, LOOSE, SMALL_MB = 0.002, 0.02, 1.0
# Nats: warm starts add up to large potentials of opposite sign, which cost digits and, in large cliques, speed.
MOST_CARRIED = 200.0


@dataclass(frozen=True)
class JunctionTree:
    """Minimise sum_i ||M_i(p) - y_i||^2 / (2 sigma_i^2) over Markov random fields p on the measured cliques.

    Stops when the loss is within about `tolerance` per measured cell of its minimum, or after `iterations`
    calibrations of the junction tree; the default tolerance is 0.002 for models of up to 1 MB, 0.02 for larger ones.

    **Source**: Private-PGM (McKenna, Sheldon, Miklau 2019), equation 2; solver.py for the method.
    """

    iterations: int = 1000
    tolerance: float | None = None

    def __post_init__(self) -> None:
        check_effort(self.iterations, self.tolerance)

    def smallest_mb(self, sizes: Mapping[str, int]) -> float:
        """Size in MB of the model of the one-way marginals."""
        return model_mb(sizes, [(name,) for name in sizes])

    def estimate(
        self, sizes: Mapping[str, int], measurements: Sequence[Measurement], warm_start: Model | None = None
    ) -> MarkovModel:
        """The model of the measurements; attributes without one are uniform and independent.

        **Shapes**: `measurements[i].values` has the sizes of its clique. Raises `InferenceError` for invalid input.
        """
        sizes = checked_sizes(sizes, measurements)
        start = checked_start(warm_start, sizes)
        tolerance = self.tolerance
        if tolerance is None:
            tolerance = TIGHT if model_mb(sizes, [m.clique for m in measurements]) <= SMALL_MB else LOOSE
        target = fold(sizes, measurements)
        oracle = oracle_of(sizes, target.cliques)
        solution = _solution(oracle, target, start, self.iterations, tolerance)
        oracle.calibrate(solution.theta, target.total)
        potentials = dict(zip(target.cliques, oracle.split(solution.theta), strict=True))
        pulls = dict(zip(target.cliques, oracle.split(solution.pull), strict=True))
        marginals = dict(zip(target.cliques, oracle.split(solution.mu), strict=True))
        marginals[()] = np.asarray(target.total)
        loss = loss_of(measurements, marginals)
        return MarkovModel(sizes, target.total, solution.iterations, loss, potentials, pulls, oracle)


def _solution(oracle: Oracle, target: Target, warm: MarkovModel | None, iterations: int, tolerance: float) -> Solution:
    none = np.zeros(0)
    if not target.cliques:
        return Solution(none, none, none, 0)
    y = np.concatenate([t.ravel() for t in target.tables])
    w = np.repeat(target.weights, [t.size for t in target.tables])
    problem = Problem(oracle.calibrate, y, w, target.total)
    old = max((float(np.abs(p).max()) for p in warm.potentials.values()), default=math.inf) if warm else math.inf
    if warm is None or old > MOST_CARRIED:
        theta, pull = independent(target), np.zeros(y.size)
    else:
        theta, pull = carried(target, warm.potentials), carried(target, warm.pulls)
    _, mu = oracle.calibrate(theta, target.total)
    return solve(problem, theta, pull, iterations, tolerance, divergence(oracle, target, mu))
