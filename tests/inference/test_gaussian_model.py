"""Gaussian graphical models: their zeros, what follows from the entries that they have, and noise."""

import numpy as np
import pytest

from dpbench.inference.gaussian_model import gaussian_model

N = 1000.0


def moments(d, seed=0):
    """Those of some d columns, times N."""
    rows = np.random.default_rng(seed).normal(size=(50, d))
    return N * rows.T @ rows / 50


def entries(S, pairs, noise=0.0, seed=1):
    """The diagonal and these pairs, with noise of a standard deviation."""
    rng, sd = np.random.default_rng(seed), max(noise, 1e-3)
    places = [*((i, i) for i in range(len(S))), *pairs]
    return {place: (S[place] + rng.normal(0, noise), sd) for place in places}


def test_what_is_not_measured_follows_from_the_largest_entropy():
    """In a chain 0 - 1 - 2 the entry (0, 2) is S_01 S_12 / S_11, and 3, which has no pair, is independent."""
    S = moments(4)
    found = gaussian_model(4, entries(S, [(0, 1), (1, 2)]), N, tolerance=1e-4).moments
    assert [found[0, 1], found[1, 2]] == pytest.approx([S[0, 1], S[1, 2]], rel=1e-4)
    assert found[0, 2] == pytest.approx(S[0, 1] * S[1, 2] / S[1, 1], rel=1e-3)
    assert np.abs(found[3, :3]).max() < 1e-6 * N


def test_no_model_with_these_entries_has_a_larger_entropy():
    """The inverse is 0 where nothing was measured, in a cycle too, and a change of such an entry lowers it."""
    S, cycle = moments(5), [(0, 1), (1, 2), (2, 3), (3, 4), (0, 4)]
    found = gaussian_model(5, entries(S, cycle), N, tolerance=1e-4).moments
    assert [found[pair] for pair in cycle] == pytest.approx([S[pair] for pair in cycle], rel=1e-3)
    inverse = np.linalg.inv(found)
    for pair in [(0, 2), (0, 3), (1, 3), (1, 4), (2, 4)]:
        assert abs(inverse[pair]) < 1e-9
        for move in (-0.02 * N, 0.02 * N):
            other = found.copy()
            other[pair] += move
            other[pair[::-1]] += move
            assert np.linalg.slogdet(other)[1] < np.linalg.slogdet(found)[1]


def test_noise_that_makes_the_entries_impossible_leaves_a_positive_definite_model():
    S, pairs = moments(6), [(i, j) for i in range(6) for j in range(i + 1, 6)]
    noisy = entries(S, pairs, noise=2 * N)
    matrix = np.zeros((6, 6))
    for (i, j), (value, _) in noisy.items():
        matrix[i, j] = matrix[j, i] = value
    assert np.linalg.eigvalsh(matrix)[0] < 0
    assert np.linalg.eigvalsh(gaussian_model(6, noisy, N, tolerance=0.002).moments)[0] > 0


def test_a_start_changes_where_it_begins_and_not_where_it_ends():
    S, pairs = moments(8), [(i, j) for i in range(8) for j in range(i + 1, 8)]
    given = entries(S, pairs, noise=0.02 * N)
    fewer = {place: given[place] for place in list(given)[:20]}
    start = gaussian_model(8, fewer, N, tolerance=0.2)
    found, alone = (gaussian_model(8, given, N, model, tolerance=1e-6) for model in (start, None))
    assert found.moments == pytest.approx(alone.moments, abs=1e-3 * N)
