"""Our estimate against mbi's own, on the same measurements."""

import numpy as np
import pytest

from dpbench.inference import InferenceError, JunctionTree
from dpbench.inference.mixture import ProductMixture

from .helpers import measure, random_cliques, random_sizes, skewed_joint

pytest.importorskip("mbi")
from dpbench.inference.mbi_engine import Mbi


def assert_engines_agree(sizes, measurements, iterations):
    theirs = Mbi(iterations=iterations).estimate(sizes, measurements)
    ours = JunctionTree(tolerance=1e-6, iterations=20_000).estimate(sizes, measurements)
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
    ours, theirs = assert_engines_agree(sizes, ms, 4000)
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
        assert_engines_agree(sizes, measure(skewed_joint(rng, sizes, 3000.0), sizes, cliques, 15.0, rng), 6000)


def test_an_earlier_model_is_a_warm_start_and_one_of_another_engine_is_refused():
    """From the minimum, 50 steps stay at it; from nothing they do not reach it."""
    rng = np.random.default_rng(22)
    sizes = {"a": 4, "b": 3, "c": 5}
    cliques = [("a", "b"), ("b", "c")]
    ms = measure(skewed_joint(rng, sizes, 1000.0), sizes, cliques, 5.0, rng)
    best = JunctionTree(tolerance=1e-6, iterations=5000).estimate(sizes, ms)
    warm = Mbi(iterations=50).estimate(sizes, ms, warm_start=best)
    assert warm.loss <= best.loss * (1 + 1e-4) < Mbi(iterations=50).estimate(sizes, ms).loss
    with pytest.raises(InferenceError, match="must be a MarkovModel, not a MixtureModel"):
        Mbi().estimate(sizes, ms, warm_start=ProductMixture(2).estimate(sizes, ms))


def test_a_warm_start_of_other_sizes_is_refused_and_what_it_has_of_other_attributes_is_left_out():
    rng = np.random.default_rng(23)
    sizes = {"a": 4, "b": 3}
    ms = measure(skewed_joint(rng, sizes, 1000.0), sizes, [("a", "b")], 5.0, rng)
    with pytest.raises(InferenceError, match=r"the warm start has sizes \{'a': 3\}, this domain"):
        Mbi(iterations=50).estimate(sizes, ms, warm_start=JunctionTree().estimate({"a": 3}, []))
    more = {**sizes, "c": 2}
    wider = measure(skewed_joint(rng, more, 1000.0), more, [("a", "b"), ("b", "c")], 5.0, rng)
    found = Mbi(iterations=50).estimate(sizes, ms, warm_start=JunctionTree().estimate(more, wider))
    assert dict(found.sizes) == sizes
