"""Random domains, measurements and the brute-force joint that the engine is compared with."""

import numpy as np

from dpbench.inference import MarkovModel, Measurement


def random_sizes(rng, attributes, largest):
    return {f"x{i}": int(n) for i, n in enumerate(rng.integers(1, largest + 1, attributes))}


def random_cliques(rng, names, count, widths):
    drawn = [np.sort(rng.choice(len(names), int(rng.choice(widths)), replace=False)) for _ in range(count)]
    return [tuple(names[i] for i in places) for places in drawn]


def marginal(joint, names, clique):
    return joint.sum(axis=tuple(i for i, n in enumerate(names) if n not in clique))


def measure(joint, sizes, cliques, sigma, rng):
    tables = [marginal(joint, list(sizes), c) for c in cliques]
    return [Measurement(c, t + rng.normal(0, sigma, t.shape), sigma) for c, t in zip(cliques, tables, strict=True)]


def skewed_joint(rng, sizes, total):
    shape = tuple(sizes.values())
    return rng.dirichlet(np.full(int(np.prod(shape)), 0.2)).reshape(shape) * total


def answers_of(model, cliques):
    """The cells of these marginals of a model, divided by its total: the answers to the queries of a workload."""
    tables = model.answer(cliques)
    return np.concatenate([tables[clique].ravel() for clique in cliques]) / model.total


def brute_joint(model: MarkovModel):
    """The whole joint from the potentials, by definition."""
    logs = np.zeros(tuple(model.sizes.values()))
    for clique, table in model.potentials.items():
        logs = logs + table.reshape([n if name in clique else 1 for name, n in model.sizes.items()])
    weights = np.exp(logs - logs.max())
    return weights * model.total / weights.sum()
