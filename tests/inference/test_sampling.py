"""Synthetic rows."""

import numpy as np

from dpbench.inference import JunctionTree
from dpbench.inference.sampling import rounded_column

from .helpers import measure, random_sizes, skewed_joint


def test_counts_in_a_group_are_within_one_of_expectation_and_unbiased():
    rng = np.random.default_rng(5)
    weights = np.array([[3.0, 0.0, 1.5, 0.5], [0.0, 0.2, 0.0, 0.8], [0.0, 0.0, 0.0, 0.0]])
    groups = np.repeat([0, 1], [101, 37])
    distribution = weights[:2] / weights[:2].sum(axis=1, keepdims=True)
    expected = distribution * np.array([[101], [37]])
    sums = np.zeros((2, 4))
    for _ in range(2000):
        codes = rounded_column(weights, groups, rng)
        counts = np.array([np.bincount(codes[groups == g], minlength=4) for g in (0, 1)])
        assert np.all(np.abs(counts - expected) < 1)
        sums += counts
    # A count within 1 of its mean has variance <= 1/4; 5 standard errors of 2000 draws over 8 cells: the chance
    # of a false alarm is below 8 * 6e-7 = 5e-6 (normal approximation), and the seed is fixed.
    assert np.all(np.abs(sums / 2000 - expected) < 5 * 0.5 / np.sqrt(2000))


def test_groups_without_weight_and_no_rows_are_answered():
    rng = np.random.default_rng(6)
    codes = rounded_column(np.zeros((1, 3)), np.zeros(9, dtype=np.int64), rng)
    assert np.bincount(codes, minlength=3).tolist() == [3, 3, 3]
    model = JunctionTree().estimate({"a": 3, "b": 1}, [])
    assert model.sample(0, rng).shape == (0, 2)


def test_rows_have_the_marginals_of_the_model():
    rng = np.random.default_rng(7)
    sizes = random_sizes(rng, 6, 6)
    names = list(sizes)
    cliques = [(names[i], names[i + 1]) for i in range(5)]
    model = JunctionTree().estimate(sizes, measure(skewed_joint(rng, sizes, 20_000), sizes, cliques, 20.0, rng))
    rows = 20_000
    data = model.sample(rows, rng)
    assert data.shape == (rows, 6)
    answers = model.answer(cliques)
    for clique in cliques:
        i, j = names.index(clique[0]), names.index(clique[1])
        counts = np.zeros((sizes[clique[0]], sizes[clique[1]]))
        np.add.at(counts, (data[:, i], data[:, j]), 1)
        distribution = answers[clique] / model.total
        # Rounding varies no more than independent draws: each cell within 6 standard errors of 20,000 draws, and 1
        # for the rounding of the cell itself. Chance of a false alarm < 200 cells * 2e-9 = 4e-7, seed fixed.
        assert np.all(np.abs(counts - rows * distribution) <= 1 + 6 * np.sqrt(rows * distribution * (1 - distribution)))
        assert np.all(counts[distribution < 1e-12] == 0)


def test_rows_repeat_with_the_seed():
    model = JunctionTree().estimate({"a": 4, "b": 3}, [])
    first, again = (model.sample(50, np.random.default_rng(8)) for _ in range(2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, model.sample(50, np.random.default_rng(9)))
