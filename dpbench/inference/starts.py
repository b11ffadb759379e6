"""Where an estimate begins: independent attributes, or the potentials of an earlier estimate."""

import math
from collections.abc import Mapping

import numpy as np

from .measurements import Array, Clique, Target
from .oracle import Oracle
from .residuals import on_simplex


def independent(target: Target) -> Array:
    """Potentials of independent attributes, each with its noisy marginal, cells floored at their noise."""
    tables = [np.zeros(t.shape) for t in target.tables]
    done: set[str] = set()
    for clique, table, potential, weight in zip(target.cliques, target.tables, tables, target.weights, strict=True):
        for axis, name in enumerate(clique):
            if name not in done:
                done.add(name)
                others = tuple(a for a in range(table.ndim) if a != axis)
                margin = table.sum(axis=others)
                logs = np.log(_floored(margin, math.sqrt(table.size / margin.size / weight), target.total))
                np.add(potential, np.expand_dims(logs - logs.max(), others), out=potential)
    return np.concatenate([np.zeros(0), *(t.ravel() for t in tables)])


def _floored(table: Array, noise: float, total: float) -> Array:
    return np.maximum(table, max(min(0.1 * noise, 0.1 * total / table.size), 1e-9 * total))


def carried(target: Target, old: Mapping[Clique, Array]) -> Array:
    """Tables of another clique set, each added to the first measured clique that holds its own; zero elsewhere."""
    tables = {clique: np.zeros(table.shape) for clique, table in zip(target.cliques, target.tables, strict=True)}
    for clique, values in old.items():
        homes = [clique] if clique in tables else [c for c in tables if set(clique) <= set(c)]
        for home in homes[:1]:
            sides = dict(zip(clique, values.shape, strict=True))
            tables[home] += values.reshape([sides.get(name, 1) for name in home])
    return np.concatenate([np.zeros(0), *(t.ravel() for t in tables.values())])


def matched(target: Target, place: int, now: Array) -> Array:
    """Potentials that take the marginal `now` of the clique at this place to the best one by itself.

    That is its noisy table on the simplex, cells floored at their noise.
    """
    best = _floored(on_simplex(target.tables[place], target.total), target.weights[place] ** -0.5, target.total)
    return np.asarray(np.log(best / np.maximum(now, 1e-9 * target.total)))


def divergence(oracle: Oracle, target: Target, mu: Array) -> float:
    """Greatest total * KL(clipped noisy table || present marginal) over the cliques."""
    worst = 0.0
    for table, now in zip(target.tables, oracle.split(mu), strict=True):
        share = np.maximum(table, 0.0)
        amount = float(share.sum())
        if amount > 0:
            share = share * (target.total / amount)
            seen = share > 0
            worst = max(worst, float(np.sum(share[seen] * np.log(share[seen] / np.maximum(now[seen], 1e-9)))))
    return worst
