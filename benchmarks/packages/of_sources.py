"""Cases of repositories that are no packages, from a folder with their checkouts (see worker.py)."""

import sys

import numpy as np
from worker import Tape, main, replayed, scored

EPSILON = {"boosted": 1.0, "tukey": float(np.log(3))}


def boosted_tables():
    """Records at the first unit vector, once and, with a large label, twice; five at the second one."""
    rows = np.array([[1.0, 0], *[[0, 1.0]] * 5])
    return (rows, np.zeros(6)), (np.vstack([rows, [1.0, 0]]), np.r_[np.zeros(6), 1e6])


def boosted_adassp(given):
    """The class, as it is."""
    sys.path.insert(0, str(given.sources / "boostedadassp"))
    from BoostedAdaSSP import BoostedAdaSSP

    return BoostedAdaSSP


def boosted_steps(given):
    """X'X, its least eigenvalue, and in each round X'r; the standard deviation is read off what a draw adds."""
    kind, tape, rng = boosted_adassp(given), Tape(given.delta), np.random.default_rng(given.seed)

    class Ones:  # a draw of ones shows what it is multiplied by
        def normal(self, size):
            return np.ones(size)

    scale = kind(epsilon=1.0, random_state=Ones())
    hat = scale.noisy_cov(np.eye(2) * 9.0)
    of_square = hat[0, 1]
    of_vector = (hat @ scale.run_AdaSSP(hat, np.zeros(2)))[0]

    def noisy_cov(model, square):
        upper = square[np.triu_indices(2)]
        answer = tape.noisy("gaussian", upper, of_square, of_square * rng.normal(size=3))
        tape.noisy("gaussian", np.linalg.eigvalsh(square)[0], of_square, 0.0)
        return np.array([[answer[0] + 1e3, answer[1]], [answer[1], answer[2] + 1e3]])

    def run_adassp(model, hat, vector):
        answer = tape.noisy("gaussian", vector, of_vector, of_vector * rng.normal(size=2))
        return np.linalg.solve(hat, answer)

    kind.noisy_cov, kind.run_AdaSSP = noisy_cov, run_adassp
    return replayed(tape, lambda table: kind(epsilon=1.0).fit(*table), *boosted_tables())


def boosted(given):
    """What is released alone: the coefficient along the record."""
    kind = boosted_adassp(given)
    rng = np.random.RandomState(given.seed)

    def score(table):
        return kind(epsilon=1.0, random_state=rng).fit(*table).ensemble_theta[0]

    return scored(score, *boosted_tables(), given.runs)


def privmrf_rows(given):
    """The number of records, to which the constructor of the attribute graph adds noise."""
    import collections
    from types import SimpleNamespace
    from unittest.mock import patch

    collections.Iterable = collections.abc.Iterable  # where it was until Python 3.10
    sys.modules["cupy"] = np  # it is imported, and not used here
    sys.path.insert(0, str(given.sources / "PrivMRF"))
    from PrivMRF import attribute_graph

    tape, rng = Tape(given.delta), np.random.default_rng(given.seed)
    config = {"epsilon": 0.8, "beta1": 0.1, "beta2": 0.0, "init_measure": 0}
    attributes = [SimpleNamespace(level_to_size={0: 2})] * 2

    def graph(table):
        def normal(scale):
            return tape.noisy("gaussian", float(len(table)), scale, scale * rng.normal()) - len(table)

        with patch.object(np.random, "normal", normal):
            attribute_graph.AttributeGraph(table, [2, 2], attributes, dict(config), "table")

    return replayed(tape, graph, np.zeros((100, 2), int), np.zeros((101, 2), int))


def models(module, delta):
    """Models of one coefficient and neighbours, whose distance to unsafety is next below the threshold and one less."""
    half = EPSILON["tukey"] / 2
    threshold = np.log(1 / (2 * delta)) / half
    measure = getattr(module, "new_distance_to_unsafety", module.distance_to_unsafety)

    def distance(found):
        t = len(found) // 4
        with np.errstate(all="ignore"):
            return measure(module.log_measure_geq_all_depths(np.sort(found)[None]), half, delta, t, -1, t - 1)

    rng = np.random.default_rng(0)
    for size in range(60, 400, 4):
        for _ in range(20):
            found = rng.standard_t(rng.uniform(0.3, 3), size)
            if distance(found) != np.floor(threshold):
                continue
            for place in range(size):
                other = found.copy()
                other[place] = rng.choice([-1e3, 1e3, 0.0])
                if distance(other) == np.floor(threshold) - 1:
                    return found[:, None], other[:, None]
    raise RuntimeError("no such models were found")


def tukey(given, folder, name):
    """Whether the test passes."""
    import importlib

    sys.path.insert(0, str(given.sources / "google-research"))
    module = importlib.import_module(f"{folder}.tukey")
    release = getattr(module, name)

    def score(table):
        with np.errstate(all="ignore"):
            found = release(table, EPSILON["tukey"], given.delta)
        return not isinstance(found, str) and np.any(found)

    one, zero = models(module, given.delta)
    return scored(score, zero, one, given.runs)


main(
    {
        "boosted_steps": boosted_steps,
        "boosted": boosted,
        "privmrf_rows": privmrf_rows,
        "tukey": lambda given: tukey(given, "dp_regression", "dp_tukey"),
        "kendall_tukey": lambda given: tukey(given, "private_kendall", "tukey"),
    },
    "numpy",
    "scipy",
    "scikit-learn",
)
