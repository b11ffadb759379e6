"""Private-PGM: the Markov random field that fits noisy marginals best."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from .engines import Model, check_effort
from .measurements import Array, Clique, Measurement, Target, checked_sizes, fold, loss_of
from .model import MarkovModel, checked_start, oracle_of
from .oracle import Oracle
from .solver import Moves, Problem, Solution, solve
from .starts import carried, divergence, independent, matched
from .trees import model_mb

# How near to its minimum a loss is driven, a measured cell, unless the caller says otherwise. A small model costs so
# little that it is driven to where nothing can be told from the minimum; a large one to where AIM's errors on Adult
# could not be (python -m benchmarks.aim_quality).
TIGHT, LOOSE, SMALL_MB = 0.002, 0.02, 1.0
# In an update. AIM on Adult at epsilon = 1, six seeds: a mean error of 0.0402; at 0.5 it is 0.0413 and no sooner
# (without the start of the newest marginal 0.049, one seed).
ROUGH = 0.2
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
        tolerance = self.tolerance
        if tolerance is None:
            tolerance = TIGHT if model_mb(sizes, [m.clique for m in measurements]) <= SMALL_MB else LOOSE
        return self._fitted(sizes, measurements, checked_start(warm_start, sizes), tolerance)

    def update(self, sizes: Mapping[str, int], measurements: Sequence[Measurement], model: Model) -> MarkovModel:
        """See `Engine.update`: within `ROUGH` a measured cell of the minimum, or within `tolerance` if that is given.

        The potentials with which the model fits the last marginal best, all others as they were, are known without a
        step: it begins with them, and with the curvature that the solver found for the model.
        """
        sizes = checked_sizes(sizes, measurements)
        newest = measurements[-1].clique
        return self._fitted(sizes, measurements, checked_start(model, sizes), self.tolerance or ROUGH, newest)

    def _fitted(
        self,
        sizes: Mapping[str, int],
        measurements: Sequence[Measurement],
        warm: MarkovModel | None,
        tolerance: float,
        newest: Clique | None = None,
    ) -> MarkovModel:
        target = fold(sizes, measurements)
        oracle = oracle_of(sizes, target.cliques)
        warm = warm if warm is not None and _is_usable(warm) else None
        theta, pull = _start(target, warm)
        moves: Moves = []
        if newest is not None and warm is not None:
            place, now = target.cliques.index(newest), warm.answer([newest])[newest]
            theta[oracle.spans[place]] += matched(target, place, now).ravel()
            moves = _moves(target, warm)
        solution = _solution(oracle, target, theta, pull, moves, self.iterations, tolerance)
        oracle.calibrate(solution.theta, target.total)
        potentials = dict(zip(target.cliques, oracle.split(solution.theta), strict=True))
        pulls = dict(zip(target.cliques, oracle.split(solution.pull), strict=True))
        marginals = dict(zip(target.cliques, oracle.split(solution.mu), strict=True))
        marginals[()] = np.asarray(target.total)
        loss = loss_of(measurements, marginals)
        return MarkovModel(
            sizes, target.total, solution.iterations, loss, potentials, pulls, tuple(solution.moves), oracle
        )


def _is_usable(warm: MarkovModel) -> bool:
    largest = [np.abs(table).max() for table in warm.potentials.values()]
    return bool(largest) and max(largest) <= MOST_CARRIED


def _start(target: Target, warm: MarkovModel | None) -> tuple[Array, Array]:
    """Potentials, and pulls."""
    if warm is None:
        theta = independent(target)
        return theta, np.zeros(theta.size)
    return carried(target, warm.potentials), carried(target, warm.pulls)


def _moves(target: Target, warm: MarkovModel) -> Moves:
    """The moves of the model's solver, if the target has its cliques and others after them."""
    if target.cliques[: len(warm.potentials)] != tuple(warm.potentials):
        return []
    size = sum(table.size for table in target.tables)
    return [(_padded(step, size), _padded(change, size)) for step, change in warm.moves]


def _padded(flat: Array, size: int) -> Array:
    return np.concatenate([flat, np.zeros(size - flat.size)])


def _solution(
    oracle: Oracle, target: Target, theta: Array, pull: Array, moves: Moves, iterations: int, tolerance: float
) -> Solution:
    if not target.cliques:
        return Solution(theta, theta, pull, [], 0)
    y = np.concatenate([t.ravel() for t in target.tables])
    w = np.repeat(target.weights, [t.size for t in target.tables])
    starts = np.array([span.start for span in oracle.spans])
    problem = Problem(oracle.calibrate, y, w, target.total, starts)
    _, mu = oracle.calibrate(theta, target.total)
    return solve(problem, theta, pull, moves, iterations, tolerance, divergence(oracle, target, mu))
