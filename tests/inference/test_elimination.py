"""Marginals by elimination, and distances from rows, against the joint distribution by brute force."""

import itertools

import numpy as np
import pytest

from dpbench.inference import Counts, JunctionTree, Measurement, elimination
from dpbench.inference.elimination import forests
from dpbench.inference.engines import Model
from dpbench.inference.mixture import ProductMixture

from .helpers import brute_joint, marginal, random_cliques, random_sizes


def random_model(rng, count, engine=None):
    """A model of up to 8 random measurements, and 60 rows over its attributes."""
    sizes = random_sizes(rng, count, 5)
    cliques = [(n,) for n in sizes] + random_cliques(rng, list(sizes), int(rng.integers(0, 9)), [2, 2, 3])
    measured = [Measurement(c, rng.normal(50, 30, [sizes[n] for n in c]), 5.0) for c in cliques]
    return (engine or JunctionTree()).estimate(sizes, measured), rng.integers(0, list(sizes.values()), (60, count))


def asked_of(sizes):
    return [c for k in range(1, 5) for c in itertools.combinations(sizes, k)]


@pytest.mark.parametrize("most", [1, elimination.MOST_CELLS])  # 1: nothing is shared that needs a product
def test_distances_equal_those_of_the_joint(monkeypatch, most):
    """In one clique of the tree, across it, and in several of its parts; to 1e-9 of the whole table's distance."""
    monkeypatch.setattr(elimination, "MOST_CELLS", most)
    rng, across = np.random.default_rng(3), 0
    for _ in range(30):
        model, codes = random_model(rng, 7)
        sizes, joint = model.sizes, brute_joint(model)
        counts = Counts(sizes, codes, asked_of(sizes))
        found = model.distances(counts, asked_of(sizes))
        assert list(found) == asked_of(sizes)
        for clique, value in found.items():
            across += not any(set(clique) <= set(c) for c in model.cliques)
            whole = np.zeros([sizes[n] for n in clique])
            np.add.at(whole, tuple(codes[:, [list(sizes).index(n) for n in clique]].T), 1)
            l1 = np.abs(whole - marginal(joint, list(sizes), clique)).sum()
            assert value == pytest.approx(l1, rel=1e-9, abs=1e-9 * model.total), clique
    assert across > 500


def test_what_is_left_is_a_forest_of_marginals_over_the_attributes_asked_for():
    rng = np.random.default_rng(5)
    for _ in range(20):
        model, _ = random_model(rng, 6)
        names, joint = list(model.sizes), brute_joint(model)
        asked = [int(m) for m in rng.integers(1, 2**6, 12)]
        found = dict(forests(model.oracle, model.total, asked))
        assert set(found) == set(asked)
        for mask, forest in found.items():
            held = 0
            for k, scope in forest.scopes.items():
                held |= scope
                clique = tuple(names[i] for i in range(6) if scope >> i & 1)
                np.testing.assert_allclose(forest.tables[k], marginal(joint, names, clique), atol=1e-7 * model.total)
            assert held == mask


def test_a_model_has_the_same_distances_by_its_whole_tables():
    """`Model.distances` serves any engine; the tree has its own."""
    for engine in (JunctionTree(), ProductMixture(components=5, iterations=30)):
        model, codes = random_model(np.random.default_rng(1), 5, engine)
        counts = Counts(model.sizes, codes, asked_of(model.sizes))
        own, whole = (
            f(counts, asked_of(model.sizes)) for f in (model.distances, lambda *a, m=model: Model.distances(m, *a))
        )
        assert own == pytest.approx(whole, rel=1e-9)


def test_cells_that_the_model_knows_to_be_empty_count_as_zero():
    """A separator's level of weight zero: nothing is divided by it."""
    sizes = {"a": 2, "b": 3, "c": 2}
    tables = [np.array([[30.0, 0, 0], [20.0, 50.0, 0]]), np.array([[50.0, 0], [0, 50.0], [0, 0]])]
    measured = [Measurement(c, t, 1e-3) for c, t in zip((("a", "b"), ("b", "c")), tables, strict=True)]
    model = JunctionTree().estimate(sizes, measured)
    counts = Counts(sizes, np.array([[0, 2, 0], [1, 2, 1], [1, 1, 1]]), [("a", "b", "c"), ("a", "c")])
    own, whole = model.distances(counts, list(counts.cells)), Model.distances(model, counts, list(counts.cells))
    assert own == pytest.approx(whole, rel=1e-6)
    assert np.isfinite(list(own.values())).all()
