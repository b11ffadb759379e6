"""Our estimate against mbi's own, on the same measurements."""

import numpy as np
import pytest

from dpbench.inference import estimate

from .helpers import measure, random_cliques, random_sizes, skewed_joint

pytest.importorskip("mbi")
from dpbench.inference import mbi_engine


def compare(sizes, measurements, iterations):
    theirs = mbi_engine.estimate(sizes, measurements, iterations=iterations)
    ours = estimate(sizes, measurements, tolerance=1e-6, iterations=20_000)
    assert ours.total == pytest.approx(theirs.total)
    assert ours.size_mb == theirs.size_mb
    assert ours.loss <= theirs.loss * (1 + 1e-3)
    assert theirs.loss <= ours.loss * (1 + 1e-3)
    measured = list(dict.fromkeys(m.clique for m in measurements))
    a, b = ours.answer(measured), theirs.answer(measured)
    for clique in measured:
        assert np.abs(a[clique] - b[clique]).sum() < 5e-3 * ours.total
    return ours, theirs


def test_a_small_model_with_a_cycle_and_a_clique_of_three():
    rng = np.random.default_rng(20)
    sizes = {"a": 4, "b": 3, "c": 5, "d": 2}
    cliques = [("a",), ("a", "b"), ("b", "c"), ("a", "c"), ("b", "c", "d"), ("a", "b")]
    ms = measure(skewed_joint(rng, sizes, 1000.0), sizes, cliques, 5.0, rng)
    ours, theirs = compare(sizes, ms, 4000)
    across = [("a", "d")]
    assert np.abs(ours.answer(across)["a", "d"] - theirs.answer(across)["a", "d"]).sum() < 1e-2 * ours.total
    rows = theirs.sample(500, rng)
    assert rows.shape == (500, 4)
    assert np.all(rows.max(axis=0) < list(sizes.values()))


@pytest.mark.slow
def test_random_models():
    rng = np.random.default_rng(21)
    for _ in range(5):
        sizes = random_sizes(rng, 5, 6)
        cliques = [(n,) for n in sizes] + random_cliques(rng, list(sizes), 5, [2, 2, 3, 4])
        compare(sizes, measure(skewed_joint(rng, sizes, 3000.0), sizes, cliques, 15.0, rng), 6000)
