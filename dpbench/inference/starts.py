"""Where an estimate begins: independent attributes, or the potentials of an earlier estimate."""

import math
from collections.abc import Mapping

import numpy as np

from .measurements import Array, Clique, Target
from .oracle import Oracle


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
                noise = math.sqrt(table.size / margin.size / weight)
                floor = max(min(0.1 * noise, 0.1 * target.total / margin.size), 1e-9 * target.total)
                logs = np.log(np.maximum(margin, floor))
                np.add(potential, np.expand_dims(logs - logs.max(), others), out=potential)
    return np.concatenate([t.ravel() for t in tables])


def carried(target: Target, old: Mapping[Clique, Array]) -> Array:
    """Tables of another clique set, each added to the first measured clique that holds its own; zero elsewhere."""
    tables = {clique: np.zeros(table.shape) for clique, table in zip(target.cliques, target.tables, strict=True)}
    for clique, values in old.items():
        homes = [clique] if clique in tables else [c for c in tables if set(clique) <= set(c)]
        for home in homes[:1]:
            sides = dict(zip(clique, values.shape, strict=True))
            tables[home] += values.reshape([sides.get(name, 1) for name in home])
    return np.concatenate([t.ravel() for t in tables.values()])


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
