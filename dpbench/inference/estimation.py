"""Private-PGM: the Markov random field that fits noisy marginals best."""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from .measurements import (
    InferenceError,
    Measurement,
    ModelTooLarge,
    Target,
    checked_sizes,
    fold,
    loss_of,
)
from .model import MarkovModel, clique_names, tree_mb
from .oracle import Oracle
from .solver import Problem, Solution, solve
from .starts import carried, divergence, independent
from .trees import junction_tree, mask_of, model_mb

# How near to its minimum a loss is driven, a measured cell, unless the caller says otherwise. A small model costs so
# little that it is driven to where nothing can be told from the minimum; a large one to where AIM's errors on Adult
# could not be (python -m benchmarks.aim_quality).
TIGHT, LOOSE, SMALL_MB = 0.002, 0.02, 1.0
# Nats: warm starts add up to large potentials of opposite sign, which cost digits and, in large cliques, speed.
MOST_CARRIED = 200.0


def estimate(
    sizes: Mapping[str, int],
    measurements: Sequence[Measurement],
    *,
    warm_start: MarkovModel | None = None,
    iterations: int = 1000,
    tolerance: float | None = None,
    max_mb: float | None = None,
) -> MarkovModel:
    """Minimise sum_i ||M_i(p) - y_i||^2 / (2 sigma_i^2) over Markov random fields p on the measured cliques.

    Stops when the loss is within about `tolerance` per measured cell of its minimum, or after `iterations`
    calibrations of the junction tree; the default tolerance is 0.002 for models of up to 1 MB, 0.02 for larger ones.
    Attributes without a measurement are uniform and independent.

    **Source**: Private-PGM (McKenna, Sheldon, Miklau 2019), equation 2; solver.py for the method.
    **Shapes**: `measurements[i].values` has the sizes of its clique.
    """
    sizes = checked_sizes(sizes, measurements)
    if warm_start is not None and any(sizes.get(a, n) != n for a, n in warm_start.sizes.items()):
        raise InferenceError(f"the warm start has sizes {dict(warm_start.sizes)}, this domain {sizes}")
    if iterations < 1:
        raise InferenceError(f"iterations is {iterations}; give at least 1")
    if tolerance is not None and not tolerance > 0:
        raise InferenceError(f"tolerance is {tolerance}; it must be > 0")
    size_mb = model_mb(sizes, [m.clique for m in measurements])
    if max_mb is not None and size_mb > max_mb:
        raise ModelTooLarge(f"the model of these cliques needs {size_mb:.3g} MB, over the limit of {max_mb:.3g} MB")
    if tolerance is None:
        tolerance = TIGHT if size_mb <= SMALL_MB else LOOSE
    target = fold(sizes, measurements)
    index = {name: i for i, name in enumerate(sizes)}
    shape = tuple(sizes.values())
    masks = [mask_of(c, index) for c in target.cliques]
    oracle = Oracle(shape, junction_tree(masks, shape), masks)
    solution = _solution(oracle, target, warm_start, iterations, tolerance)
    oracle.calibrate(solution.theta, target.total)
    potentials = dict(zip(target.cliques, oracle.split(solution.theta), strict=True))
    pulls = dict(zip(target.cliques, oracle.split(solution.pull), strict=True))
    marginals = dict(zip(target.cliques, oracle.split(solution.mu), strict=True))
    marginals[()] = np.asarray(target.total)
    return MarkovModel(
        sizes=sizes,
        cliques=tuple(clique_names(c, sizes) for c in oracle.tree.cliques),
        total=target.total,
        size_mb=tree_mb(oracle),
        iterations=solution.iterations,
        loss=loss_of(measurements, marginals),
        potentials=potentials,
        pulls=pulls,
        oracle=oracle,
    )


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
