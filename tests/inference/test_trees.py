"""The predicted model size, and the tree itself."""

import numpy as np
import pytest

from dpbench.inference import InferenceError, candidate_mb, model_mb
from dpbench.inference.trees import cells, junction_tree, mask_of

from .helpers import random_cliques, random_sizes


@pytest.mark.parametrize(("width", "largest"), [(1, 40), (2, 40), (9, 40), (16, 8), (17, 8), (40, 2)])
def test_candidate_sizes_are_exactly_the_sizes_of_the_extended_models(width, largest):
    rng = np.random.default_rng(0)
    sides = [side for side in (1, 2, 3) if side <= width]
    for _ in range(20):
        sizes = random_sizes(rng, width, largest)
        cliques = random_cliques(rng, list(sizes), int(rng.integers(0, 14)), sides)
        candidates = random_cliques(rng, list(sizes), 30, sides)
        expected = [model_mb(sizes, [*cliques, c]) for c in candidates]
        assert candidate_mb(sizes, cliques, candidates).tolist() == expected


def test_a_candidate_that_makes_the_model_one_tree_adds_no_other_edge():
    sizes = {"a": 100, "b": 10, "c": 2, "d": 10, "e": 100}  # a path; elimination would begin with c and join b and d
    path = [("a", "b"), ("b", "c"), ("c", "d")]
    assert candidate_mb(sizes, path, [("d", "e")]).tolist() == [(1000 + 20 + 20 + 1000) * 8 / 2**20]


def test_model_size_is_at_least_every_clique_and_is_mbis():
    junction = pytest.importorskip("mbi.junction_tree")
    mbi = pytest.importorskip("mbi")
    rng = np.random.default_rng(1)
    for _ in range(60):
        sizes = random_sizes(rng, int(rng.integers(1, 10)), 40)
        widths = [w for w in (1, 2, 2, 3) if w <= len(sizes)]
        cliques = random_cliques(rng, list(sizes), int(rng.integers(0, 14)), widths)
        size = model_mb(sizes, cliques)
        for clique in cliques:
            assert size >= np.prod([sizes[name] for name in clique]) * 8 / 2**20
        assert size == junction.hypothetical_model_size(mbi.Domain.fromdict(sizes), cliques)


def test_tree_holds_every_clique_and_has_the_running_intersection_property():
    rng = np.random.default_rng(2)
    for _ in range(60):
        sizes = random_sizes(rng, 8, 9)
        index = {name: i for i, name in enumerate(sizes)}
        masks = [mask_of(c, index) for c in random_cliques(rng, list(sizes), 10, [1, 2, 3])]
        tree = junction_tree(masks, tuple(sizes.values()))
        assert all(any(m & ~c == 0 for c in tree.cliques) for m in masks)
        for i in range(len(sizes)):
            holders = {k for k, c in enumerate(tree.cliques) if c >> i & 1}
            # A subtree has one top: the only holder whose parent does not hold the attribute.
            assert sum(tree.parents[k] not in holders for k in holders) == 1
        for k, parent in enumerate(tree.parents):
            if parent >= 0:
                assert tree.order.index(k) < tree.order.index(parent)
                assert tree.separators[k] == tree.cliques[k] & tree.cliques[parent]


def test_sizes_are_exact_beyond_float_range_and_unknown_names_are_refused():
    assert cells(0b1111111, (10_000,) * 7) == 10_000**7
    with pytest.raises(InferenceError, match="unknown attribute 'z'; known: a, b"):
        model_mb({"a": 2, "b": 3}, [("a", "z")])
    with pytest.raises(InferenceError, match="in the order of the domain"):
        candidate_mb({"a": 2, "b": 3}, [], [("b", "a")])
