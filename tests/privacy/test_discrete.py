"""The distribution of discrete noise. Each statistical test uses a fixed key: a chi-square test at level 1e-4."""

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from dpbench.privacy import discrete
from dpbench.privacy.discrete import LARGEST_SCALE, Source

DRAWS = 100_000


@pytest.fixture
def source():
    return Source(b"a fixed key")


def fits(values, weights):
    """Whether integers have probabilities in proportion to weights(k); those rarer than 10 draws count as one."""
    k = np.arange(-3000, 3001)
    expected = weights(k) / weights(k).sum() * len(values)
    common = expected > 10
    seen = np.array([np.count_nonzero(values == at) for at in k[common]])
    seen, expected = (np.append(x, len(values) - x.sum()) for x in (seen, expected[common]))
    return stats.chisquare(seen, expected).pvalue > 1e-4


@pytest.mark.parametrize("bound", [2, 3, 5, 97])
def test_integers_are_uniform(source, bound):
    assert stats.chisquare(np.bincount(source.below(bound, DRAWS).astype(int), minlength=bound)).pvalue > 1e-4


def test_no_bits_are_given_out_twice(source):
    """Under one key, and under those that a generator draws; 64 equal bits would be a repetition."""
    rng = np.random.default_rng(1)
    drawn = [source.below(2**63, 100), source.below(2**63, 100), *(Source.of(rng).below(2**63, 100) for _ in range(9))]
    assert len(np.unique(np.concatenate(drawn))) == 1100


@pytest.mark.parametrize(("numerator", "denominator"), [(0, 5), (1, 3), (5, 5), (2**62, 2**63), (2**62 + 1, 2**62 + 1)])
def test_a_coin_has_its_probability(source, numerator, denominator):
    """Of the last two, sums and products of the integers would leave 64 bits. Binomial test at level 1e-4."""
    heads = int(discrete.coins(source, np.full(DRAWS, numerator, np.uint64), denominator).sum())
    assert stats.binomtest(heads, DRAWS, np.exp(-numerator / denominator)).pvalue > 1e-4


@pytest.mark.parametrize("scale", [2, 3, 10])
def test_the_distributions_are_those_of_the_paper(source, scale):
    assert fits(discrete.laplace(source, scale, DRAWS), lambda k: np.exp(-np.abs(k) / scale))
    assert fits(discrete.gaussian(source, scale, DRAWS), lambda k: np.exp(-(k**2) / (2 * scale**2)))


def test_at_the_largest_scale_nothing_overflows(source):
    """Kolmogorov-Smirnov at level 1e-4 against the continuous distributions, and the last bit is a fair coin."""
    for draw, distribution in ((discrete.laplace, "laplace"), (discrete.gaussian, "norm")):
        values = draw(source, LARGEST_SCALE, DRAWS)
        assert stats.kstest(values / LARGEST_SCALE, distribution).pvalue > 1e-4
        assert stats.binomtest(int((values % 2).sum()), DRAWS).pvalue > 1e-4
    for scale in (1, LARGEST_SCALE + 1):
        with pytest.raises(ValueError, match="a scale of 2 to"):
            discrete.gaussian(source, scale, 1)


def test_an_index_has_its_weight(source):
    levels, rate = [-10, 3, 0, 3, -1], Fraction(1, 3)
    weights = np.exp(np.array(levels) / 3)
    picks = [discrete.weighted_index(source, levels, rate) for _ in range(1500)]
    assert stats.chisquare(np.bincount(picks, minlength=5), 1500 * weights / weights.sum()).pvalue > 1e-4


def test_an_index_of_one_and_of_huge_levels(source):
    assert discrete.weighted_index(source, [7], Fraction(1)) == 0
    assert discrete.weighted_index(source, [-(10**300), 10**300, 0], Fraction(1)) == 1
