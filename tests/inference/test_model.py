"""Models: what they hold, and that a stored one answers and samples as the original."""

import json

import numpy as np
import pytest

from dpbench.inference import InferenceError, JunctionTree, Measurement, load_model, model_mb
from dpbench.inference.mixture import ProductMixture

from .helpers import measure, random_cliques, random_sizes, skewed_joint


def stored(model):
    """Through JSON text and bytes, as a file keeps them."""
    data, arrays = model.state()
    return load_model(json.loads(json.dumps(data)), {name: array.copy() for name, array in arrays.items()})


def same(one, two, cliques):
    a, b = one.answer(cliques), two.answer(cliques)
    rows = [model.sample(500, np.random.default_rng(3)).tobytes() for model in (one, two)]
    return rows[0] == rows[1] and all(a[c].tobytes() == b[c].tobytes() for c in cliques)


@pytest.mark.parametrize("engine", [JunctionTree(), JunctionTree(tolerance=1e-4), ProductMixture(components=4)])
def test_a_stored_model_is_the_original_to_the_bit(engine):
    rng = np.random.default_rng(40)
    for _ in range(5):
        sizes = random_sizes(rng, 5, 6)
        cliques = [*((name,) for name in sizes), *random_cliques(rng, list(sizes), 5, [2, 2, 3])]
        model = engine.estimate(sizes, measure(skewed_joint(rng, sizes, 900.0), sizes, cliques, 9.0, rng))
        again = stored(model)
        assert same(model, again, [("x0", "x4"), ("x1", "x2", "x3"), *cliques])
        assert (again.total, again.loss, again.iterations) == (model.total, model.loss, model.iterations)
        assert (again.cliques, again.size_mb) == (model.cliques, model.size_mb)


def test_so_is_one_with_large_cliques_after_warm_starts():
    """Cliques of 32,768 cells and more are split into faces, and filled after all where these fail."""
    rng = np.random.default_rng(41)
    sizes = dict.fromkeys("abcd", 32)
    cliques = [("a", "b"), ("b", "c"), ("a", "c"), ("c", "d"), ("a", "d")]
    ms = [Measurement(c, rng.dirichlet(np.full(1024, 0.01)).reshape(32, 32) * 9000, 0.5) for c in cliques]
    model = None
    for count in range(1, len(ms) + 1):
        model = JunctionTree(iterations=60).estimate(sizes, ms[:count], warm_start=model)
        assert same(model, stored(model), [("a", "b"), ("b", "d")])


def test_tables_that_were_filled_for_good_are_filled_again():
    """The bits of a filled table are not those of its faces, so a state names it."""
    rng = np.random.default_rng(42)
    sizes, cliques = dict.fromkeys("abc", 32), [("a", "b"), ("b", "c"), ("a", "c")]
    ms = measure(skewed_joint(rng, sizes, 9000.0), sizes, cliques, 5.0, rng)
    model = JunctionTree(iterations=40).estimate(sizes, ms)
    faces = model.answer([("a", "b")])["a", "b"]
    assert model.state()[0]["filled"] == []
    data, arrays = model.state()
    filled = load_model({**data, "filled": [0]}, arrays)
    assert filled.state()[0]["filled"] == [0]
    assert filled.answer([("a", "b")])["a", "b"].tobytes() != faces.tobytes()
    np.testing.assert_allclose(filled.answer([("a", "b")])["a", "b"], faces)
    assert same(filled, stored(filled), [("a", "b"), ("b", "c")])


def test_a_loaded_model_is_a_warm_start():
    rng = np.random.default_rng(43)
    sizes = {"a": 4, "b": 5, "c": 3}
    ms = measure(skewed_joint(rng, sizes, 900.0), sizes, [("a", "b"), ("b", "c")], 9.0, rng)
    engine = JunctionTree(tolerance=1e-6)
    model = engine.estimate(sizes, ms)
    again = engine.estimate(sizes, ms, warm_start=stored(model))
    assert again.loss == pytest.approx(model.loss, rel=1e-4)
    assert again.iterations < model.iterations


def test_a_model_without_measurements_is_stored_too():
    model = JunctionTree().estimate({"a": 3, "b": 2}, [])
    assert same(model, stored(model), [("a", "b")])


def test_the_size_of_a_model_is_the_one_predicted():
    sizes = {"a": 4, "b": 5, "c": 3}
    model = JunctionTree().estimate(sizes, [Measurement(("a", "b"), np.ones((4, 5)), 1.0)])
    assert model.size_mb == model_mb(sizes, [("a", "b")])
    assert set(model.cliques) == {("a", "b"), ("c",)}


def test_what_is_no_stored_model_is_refused():
    data, arrays = JunctionTree().estimate({"a": 3}, [Measurement(("a",), np.ones(3), 1.0)]).state()
    with pytest.raises(InferenceError, match="unknown model 'tree'; known: markov, mixture"):
        load_model({**data, "model": "tree"}, arrays)
    with pytest.raises(InferenceError, match=r"potentials of 1 cliques do not have the shape \(2,\)"):
        load_model(data, {"potentials": np.ones(2)})
    data, arrays = ProductMixture(2).estimate({"a": 3}, []).state()
    with pytest.raises(InferenceError, match=r"logits of 3 levels do not have the shape \(2, 4\)"):
        load_model(data, {"logits": np.ones((2, 4))})
