"""PrivTree: a partition of the box, its splits, and where it stops. Statistical: fixed seed, 4 standard errors."""

import math

import numpy as np
import pytest

from dpbench.mechanisms import privtree as module
from dpbench.mechanisms.privtree import at_least, privtree
from dpbench.privacy import discrete
from dpbench.privacy.ledger import Ledger


def grow(X, lower, upper, seed=0, **settings):
    settings = {"epsilon": 1.0, **settings}
    X, lower, upper = (np.asarray(value, dtype=float) for value in (X, lower, upper))
    return privtree(X, lower, upper, np.random.default_rng(seed), Ledger(), **settings)


@pytest.fixture
def without_noise(monkeypatch):
    monkeypatch.setattr(module, "tree_laplace", lambda *_, **__: np.array)


def bins_of(points, lower, upper, top):
    """How many bins hold each point: half-open ones, but for the top of the box; and the first of them."""
    inside = (lower <= points[:, None]) & ((points[:, None] < upper) | ((points[:, None] == upper) & (upper == top)))
    held = inside.all(axis=2)
    return held.sum(axis=1), held.argmax(axis=1)


@pytest.mark.parametrize("theta", [0.0, -10.0, 30.0])
def test_bins_tile_the_box_and_each_row_is_in_its_own(theta):
    rng = np.random.default_rng(1)
    low, high = np.array([-2.0, 0.0, 5.0]), np.array([1.0, 1e-3, 900.0])
    X = low + (high - low) * rng.beta(0.5, 2.0, size=(2000, 3))
    X[:6] = [low, high, (low + high) / 2, [low[0], high[1], low[2]], (3 * low + high) / 4, (low + 3 * high) / 4]
    lower, upper, bin_of = grow(X, low, high, theta=theta)
    anywhere = low + (high - low) * rng.random((2000, 3))
    for points in (X, anywhere):
        assert (bins_of(points, lower, upper, high)[0] == 1).all()
    assert (bins_of(X, lower, upper, high)[1] == bin_of).all()
    assert np.prod(upper - lower, axis=1).sum() == pytest.approx(np.prod(high - low))
    assert len(lower) > 10


def test_a_row_outside_of_the_box_counts_as_the_nearest_one_on_it():
    X = np.random.default_rng(2).normal(0.5, 1.0, size=(500, 2))
    out, clipped = (grow(rows, [0, 0], [1, 1]) for rows in (X, np.clip(X, 0, 1)))
    assert all((a == b).all() for a, b in zip(out, clipped, strict=True))


def test_the_order_of_the_rows_does_not_matter():
    rng = np.random.default_rng(3)
    X, order = rng.random((400, 3)), rng.permutation(400)
    one, two = grow(X, [0] * 3, [1] * 3), grow(X[order], [0] * 3, [1] * 3)
    assert (one[0] == two[0]).all()
    assert (one[2][order] == two[2]).all()


@pytest.mark.parametrize(
    ("sides", "widest", "axis"), [((1, 1, 1), "own_unit", 0), ((1, 5, 5), "own_unit", 1), ((1, 5, 5), "relative", 0)]
)
def test_the_widest_side_is_halved_and_the_first_of_equal_ones(without_noise, sides, widest, axis):
    # 9 rows at a corner, lambda = 30: 9 > theta = 8 splits the root, and 9 - delta < 0 no child
    lower, upper, _ = grow(np.zeros((9, 3)), [0, 0, 0], sides, epsilon=0.1, theta=8.0, widest=widest)
    assert len(lower) == 2
    assert upper[0][axis] == lower[1][axis] == sides[axis] / 2


def test_sides_are_halved_in_turn(without_noise):
    # delta = 3 ln 2 / epsilon is almost 0: all rows but one leave, until a single row is alone
    lower, upper, _ = grow(np.array([[0.0, 0.0], [0.9, 0.9]]), [0, 0], [1, 1], epsilon=1e6, theta=1.0)
    assert len(lower) == 2  # halved across the first side, one row each
    lower, upper, _ = grow(np.array([[0.0, 0.0], [0.1, 0.9]]), [0, 0], [1, 1], epsilon=1e6, theta=1.0)
    assert sorted((upper - lower).tolist()) == [[0.5, 0.5], [0.5, 0.5], [0.5, 1.0]]


def test_chance_of_a_split():
    """lambda = 10. Of a root with 10 rows: P(10 + Lap > 0) = 1 - e^-1 / 2. Empty, theta = 30: P(Lap > delta) = 1/4."""
    for rows, theta, chance in ((10, 0.0, 1 - math.exp(-1) / 2), (0, 30.0, 0.25)):
        X = np.zeros((rows, 1))
        splits = [len(grow(X, [0], [1], seed, epsilon=0.3, theta=theta)[0]) > 1 for seed in range(3000)]
        assert np.mean(splits) == pytest.approx(chance, abs=4 * math.sqrt(chance * (1 - chance) / 3000))


def test_chance_of_a_split_at_depth_one(without_noise, monkeypatch):
    """The bias of depth 1 is delta = 10 ln 2: a node of 10 rows is split if 10 - 6.93 + noise > 0."""
    for noise, bins in ((-3.0, 3), (-3.2, 2)):
        monkeypatch.setattr(module, "tree_laplace", lambda *_, noise=noise, **__: lambda counts: counts + noise)
        # at depth 2, 10 - 13.9 < -3
        assert len(grow(np.zeros((10, 1)), [0], [1], epsilon=0.3)[0]) == bins


@pytest.mark.parametrize("grid", [1, 4, 64])
@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_with_discrete_noise_no_path_costs_more_than_epsilon(monkeypatch, grid, epsilon):
    """The probability that all nodes of a path are halved, with a row less and a row more, summed over all noise.

    The path starts at any count and loses no row, which costs most. The spacing is far coarser than it will be.
    """
    monkeypatch.setattr(discrete, "GRID", grid)
    scale, delta, theta, spacing = module._on_grid(epsilon, 7.3)
    assert (scale / spacing, delta / spacing, theta / spacing) == tuple(
        map(round, np.divide((scale, delta, theta), spacing))
    )
    reach = round(60 * scale / spacing)
    weights = np.exp(-np.abs(np.arange(-reach, reach + 1)) * spacing / scale)
    above = np.append(np.cumsum(weights[::-1])[::-1], 0) / weights.sum()  # P(noise >= k spacing), k = -reach, ...

    def halved(x):
        return np.log(above[np.clip(np.round(-x / spacing).astype(int) + reach + 1, 0, 2 * reach)])

    starts = np.arange(-delta, 40 * scale, spacing)
    path = starts[:, None] + delta * np.arange(25)
    cost = (halved(path) - halved(np.maximum(path - 1, -delta))).sum(axis=1).max()
    assert 0.5 * epsilon < cost <= epsilon


@pytest.mark.parametrize("epsilon", [0.01, 0.75, 1.5, 3.0, 24.0, 192.0])
def test_the_multiples_on_the_grid_are_within_the_budget(epsilon):
    """The bound of the proof, (1 + 2 / q) / lambda, also where 3 / epsilon is a multiple of the spacing itself."""
    scale, delta, _, spacing = module._on_grid(epsilon, 0.0)
    assert (1 + 2 * math.exp(spacing / scale)) / scale <= epsilon
    assert delta >= scale * math.log(2)


def test_the_chance_of_a_split_is_the_same_with_discrete_noise():
    """As in `test_chance_of_a_split`, from fewer trees."""
    splits = [len(grow(np.zeros((10, 1)), [0], [1], seed, epsilon=0.3, noise="discrete")[0]) > 1 for seed in range(300)]
    chance = 1 - math.exp(-1) / 2
    assert np.mean(splits) == pytest.approx(chance, abs=4 * math.sqrt(chance * (1 - chance) / 300))


def test_the_ledger_holds_one_event_of_epsilon():
    ledger = Ledger()
    privtree(np.zeros((50, 1)), np.zeros(1), np.ones(1), np.random.default_rng(0), ledger, epsilon=0.3, theta=-40.0)
    (event,) = ledger.events
    assert (event.kind, event.epsilon) == ("pure", 0.3)


def test_equal_rows_stop_where_no_number_lies_between():
    lower, upper, bin_of = grow(np.full((1000, 2), 1 / 3), [0, 1], [1, 1], epsilon=100.0)
    assert (upper - lower)[bin_of[0]][0] <= 4 * np.spacing(1.0)
    assert (lower[:, 0] < upper[:, 0]).all()
    assert (lower[:, 1] == 1).all()  # a feature without a range is left alone


def test_growth_ends_before_max_bins():
    X = np.random.default_rng(0).random((1000, 2))
    for most in (1, 2, 100):
        lower, _, bin_of = grow(X, [0, 0], [1, 1], epsilon=1e6, max_bins=most)
        assert most / 2 <= len(lower) <= most
        assert bin_of.max() < len(lower)


def test_the_largest_bin_is_halved_across_its_widest_side_until_there_are_enough():
    """A box of 4 x 2 x 0: halves of 2 x 2, then one of these, across the first of its equal sides."""
    X = np.array([[0.5, 0.5, 7.0], [1.5, 1.5, 7.0], [2.0, 0.0, 7.0]])
    whole = (np.array([[0.0, 0.0, 7.0]]), np.array([[4.0, 2.0, 7.0]]), np.zeros(3, dtype=np.int64))
    lower, upper, bin_of = at_least(3, X, *whole)
    np.testing.assert_array_equal(lower[:, :2], [[0, 0], [2, 0], [1, 0]])
    np.testing.assert_array_equal(upper[:, :2], [[1, 2], [4, 2], [2, 2]])
    np.testing.assert_array_equal(bin_of, [0, 2, 1])
    assert at_least(1, X, *whole)[2] is whole[2]
