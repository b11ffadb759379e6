"""Marginals from the tree, against the joint distribution by brute force."""

import itertools
import tracemalloc

import numpy as np
import pytest

from dpbench.inference import JunctionTree, Measurement, answers, layout
from dpbench.inference.blocks import Triple, spread, summed_axes
from dpbench.inference.layout import best_groups
from dpbench.inference.oracle import Oracle
from dpbench.inference.trees import junction_tree

from .helpers import brute_joint, marginal, random_cliques, random_sizes


@pytest.fixture(params=["filled", "faces", "levels"])
def layouts(request, monkeypatch):
    """Run with the layout chosen by cost, with three faces wherever they are possible, and one level at a time."""
    if request.param == "levels":
        monkeypatch.setattr(answers, "MOST_CELLS", 2)
    if request.param == "faces":
        monkeypatch.setattr(layout, "SMALL", 1)
        monkeypatch.setattr(layout, "NS_TRIPLE", 0.0)
        monkeypatch.setattr(layout, "NS_BATCH", 0.0)
    best_groups.cache_clear()
    yield request.param
    best_groups.cache_clear()


def test_all_marginals_equal_the_joint(layouts):
    rng = np.random.default_rng(3)
    for _ in range(25):
        sizes = random_sizes(rng, 6, 5)
        cliques = [(n,) for n in sizes] + random_cliques(rng, list(sizes), int(rng.integers(0, 9)), [2, 2, 3])
        noisy = [rng.normal(50, 30, [sizes[n] for n in c]) for c in cliques]
        sigma = float(rng.choice([3, 10]))
        model = JunctionTree().estimate(sizes, [Measurement(c, v, sigma) for c, v in zip(cliques, noisy, strict=True)])
        joint = brute_joint(model)
        asked = [c for k in range(5) for c in itertools.combinations(sizes, k)]
        tables = model.answer(asked)
        for clique in asked:
            assert tables[clique].shape == tuple(sizes[n] for n in clique)
            assert tables[clique].min() >= 0
            assert tables[clique].sum() == pytest.approx(model.total)
            np.testing.assert_allclose(tables[clique], marginal(joint, list(sizes), clique), atol=1e-7 * model.total)


def test_answers_across_wide_separators_take_little_memory(monkeypatch):
    """The tables that travel have up to 248,832 cells, 20,736 with one level of an attribute at a time."""
    masks, shape = [0b1111 << k for k in range(5)], (12,) * 8
    oracle = Oracle(shape, junction_tree(masks, shape), masks)
    oracle.calibrate(np.random.default_rng(0).normal(size=oracle.size), 1000.0)
    peaks, tables = [], []
    for most in (10_000_000, 50_000):
        monkeypatch.setattr(answers, "MOST_CELLS", most)
        tracemalloc.start()
        tables.append(answers.table_of(oracle, 0b10010001, 1000.0))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    np.testing.assert_allclose(*tables)
    assert peaks[1] < peaks[0] / 3


def test_extreme_potentials_of_opposite_sign_keep_the_oracle_exact(layouts):
    rng = np.random.default_rng(4)
    faces = 0
    for _ in range(30):
        shape = tuple(int(n) for n in rng.integers(2, 8, 5))
        masks = [1 << i for i in range(5)] + [1 << i | 1 << j for i in range(5) for j in range(i)]
        masks = [m for m in masks if rng.random() < 0.8]
        oracle = Oracle(shape, junction_tree(masks, shape), masks)
        faces += sum(isinstance(b, Triple) for b in oracle.blocks)
        theta = rng.normal(size=oracle.size) * rng.choice([1.0, 30.0, 1000.0])
        log_z, mu = oracle.calibrate(theta, 1000.0)
        logs = sum(spread(t, m, 0b11111) for m, t in zip(masks, oracle.split(theta), strict=True))
        joint = np.exp(np.broadcast_to(logs - logs.max(), shape))
        assert log_z == pytest.approx(logs.max() + np.log(joint.sum()))
        joint = joint * 1000 / joint.sum()
        for mask, table in zip(masks, oracle.split(mu), strict=True):
            np.testing.assert_allclose(table, joint.sum(axis=summed_axes(0b11111, mask)), atol=1e-6)
    assert faces or layouts != "faces"
