"""Rows to train on: those of bins, their sums and their distribution; and the labels of a classifier.

Statistical tests: seed fixed, 5 standard errors.
"""

import numpy as np
import pytest

from dpbench.data.domain import Attribute, Domain
from dpbench.data.encode import Design
from dpbench.data.table import Table
from dpbench.errors import NoEstimateError, UserError
from dpbench.models.training_rows import bin_rows, labelled_rows
from dpbench.privacy.budget import Budget
from dpbench.privacy.ledger import Ledger
from dpbench.releases import BinSums, Release, SyntheticRows


def equal_bins(K, c, sums, sums_sd, targets_sd):
    """K bins of c rows with two features."""
    box = np.zeros((K, 2))
    return BinSums(box, box + 1, np.full(K, c), sums[:, :2], sums[:, 2], np.tile(sums_sd, (K, 1)), targets_sd)


def test_rows_add_up_to_the_released_sums():
    rng = np.random.default_rng(0)
    c = np.array([2, 7, 1, 30])
    S, t, sd = rng.normal(size=(4, 3)), rng.normal(size=4), np.array([5.0, 0.0, 100.0])
    X, y = bin_rows(BinSums(S, S, c, S, t, np.tile(sd, (4, 1)), 2.0), rng)
    bin_of = np.repeat(np.arange(4), c)
    assert X.shape == (40, 3)
    for k in range(4):
        np.testing.assert_allclose(X[bin_of == k].sum(axis=0), S[k], atol=1e-11)
        np.testing.assert_allclose(y[bin_of == k].sum(), t[k], atol=1e-11)
    np.testing.assert_allclose(X[bin_of == 3, 1], S[3, 1] / 30)  # a sum without noise


def test_release_then_rows_has_the_distribution_of_algorithm_3():
    """There the c rows of a bin are independent, (s + N(0, c sd^2)) / c: 20,000 bins of equal s."""
    K, c, rng = 20_000, 4, np.random.default_rng(1)
    exact, sd = np.array([3.0, -8.0, 20.0]), np.array([2.0, 0.5, 7.0])
    released = equal_bins(K, c, exact + rng.normal(size=(K, 3)) * sd, sd[:2], sd[2])
    rows = np.column_stack(bin_rows(released, rng)).reshape(K, c, 3)
    z = ((rows - exact / c) / (sd / np.sqrt(c))).reshape(K, 3 * c)  # standard normal, all of them independent
    assert np.abs(z.mean(axis=0)).max() < 5 / np.sqrt(K)
    covariance = z.T @ z / K
    assert np.abs(covariance - np.eye(3 * c)).max() < 5 * np.sqrt(2 / K)
    assert (np.abs(z) < 1).mean() == pytest.approx(0.6827, abs=5 * 0.001)


def test_no_bins_give_no_rows():
    X, y = bin_rows(equal_bins(0, 2, np.zeros((0, 3)), np.ones(2), 1.0), np.random.default_rng(0))
    assert X.shape == (0, 2)
    assert y.shape == (0,)


# --- labels ----------------------------------------------------------------------------------------------------------

BINARY = Design(Domain((Attribute.discrete("x", [0, 1, 2, 3]), Attribute.categorical("y", "no"))), "y", intercept=False)


def released(*codes):
    rows = SyntheticRows(Table(BINARY.domain, np.array(codes).T))
    return Release(BINARY.domain, Budget(1.0), Ledger(), (rows,))


def test_a_share_of_the_rows_is_a_random_part_of_them():
    made = released(np.arange(1000) % 4, np.arange(1000) % 2)
    X, y = labelled_rows(made, BINARY, np.random.default_rng(0), share=0.8)
    again, other = (labelled_rows(made, BINARY, np.random.default_rng(i), share=0.8)[1] for i in (0, 1))
    assert len(X) == len(y) == 800
    assert np.array_equal(y, again) and not np.array_equal(y, other)
    whole = labelled_rows(made, BINARY, np.random.default_rng(0))
    assert all(np.array_equal(*pair) for pair in zip(whole, BINARY.encode(made[SyntheticRows].table), strict=True))
    for share in (0.0, 1.1, float("nan")):
        with pytest.raises(UserError, match=r"share, .* must be in \(0, 1\]"):
            labelled_rows(made, BINARY, np.random.default_rng(0), share=share)


@pytest.mark.parametrize("label", [0, 1])
def test_one_label_gives_no_estimate(label):
    with pytest.raises(NoEstimateError, match=r"all rows to train on \(3\) have the same level of 'y'"):
        labelled_rows(released([0, 1, 2], [label] * 3), BINARY, np.random.default_rng(0))


def test_labels_of_bins_keep_their_mean():
    """Bins whose mean label is -1, 0, 0.5 or 1, or outside of these; 5 standard errors of 10,000 rows each."""
    means, c = np.array([-1.0, 0.0, 0.5, 1.0, 3.0]), 10_000
    box, sums = np.zeros((5, 1)), np.zeros((5, 1))
    bins = BinSums(box, box + 1, np.full(5, c), sums, c * means, np.zeros((5, 1)), 0.0)
    made = Release(BINARY.domain, Budget(1.0), Ledger(), (bins,))
    _, y = labelled_rows(made, BINARY, np.random.default_rng(0))
    assert set(y) == {-1.0, 1.0}
    np.testing.assert_allclose(y.reshape(5, c).mean(axis=1), np.clip(means, -1, 1), atol=5 / np.sqrt(c))
