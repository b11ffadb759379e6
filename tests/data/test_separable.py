"""Rows separable by a hyperplane that their marginals of few attributes do not identify."""

from itertools import combinations

import numpy as np
import pytest

from dpbench.config import composed
from dpbench.data.dataset import Dataset
from dpbench.data.encode import Design
from dpbench.data.load import fingerprint, load_dataset
from dpbench.errors import UserError

NODE = composed(["dataset=separable"])["dataset"]
HIDDEN = set(range(9))
ROWS = 100_000
NOISE = 5 / ROWS**0.5  # of a mean of -1 and 1; some 800 are looked at, so that one is outside by chance in 0.05%


@pytest.fixture(scope="module")
def rows():
    drawn = load_dataset(Dataset.of(NODE)).split(np.random.default_rng(0), train_rows=ROWS, test_rows=10)
    return Design(drawn.train.domain, "y", intercept=False).encode(drawn.train)


def means(X, y, attributes):
    """The mean of each product with a hidden feature of so many attributes, the label among them or not."""
    for count in range(1, attributes + 1):
        for chosen in combinations(range(X.shape[1]), count):
            if HIDDEN & set(chosen):
                product = X[:, chosen].prod(axis=1)
                yield product.mean()
                if count < attributes:
                    yield (y * product).mean()


@pytest.mark.slow
def test_marginals_of_three_attributes_say_nothing_of_the_hidden_features_and_of_four_they_do(rows):
    X, y = rows
    assert max(map(abs, means(X, y, 3))) < NOISE
    assert max(map(abs, means(X, y, 4))) > 3 * NOISE


def test_the_declared_hyperplane_separates_the_rows_with_its_margin(rows):
    X, y = rows
    signs = np.random.default_rng(NODE["signs_seed"]).choice([-1, 1], 9)
    w = np.concatenate([signs, np.full(6, float(NODE["weight"]))])
    margins = y * (X @ w) / np.linalg.norm(w) / 15**0.5
    assert margins.min() >= NODE["margin"]


def test_the_open_features_say_little_of_the_label(rows):
    X, y = rows
    u = X[:, 9:].sum(axis=1)
    best = sum(max(np.mean((u == value) & (y == label)) for label in (-1, 1)) for value in np.unique(u))
    assert best == pytest.approx(0.6333, abs=NOISE)
    assert abs(y.mean()) < NOISE and set(np.unique(X)) == {-1, 1}


def test_repetitions_draw_other_rows_and_another_seed_other_signs():
    one, two = (
        load_dataset(Dataset.of(NODE)).split(np.random.default_rng(i), train_rows=50, test_rows=0) for i in (0, 1)
    )
    assert not np.array_equal(one.train.codes, two.train.codes)
    again = load_dataset(Dataset.of(NODE)).split(np.random.default_rng(0), train_rows=50, test_rows=0)
    other = load_dataset(Dataset.of({**NODE, "signs_seed": 1})).split(
        np.random.default_rng(0), train_rows=50, test_rows=0
    )
    assert np.array_equal(one.train.codes, again.train.codes)
    assert not np.array_equal(one.train.codes, other.train.codes)
    assert fingerprint(Dataset.of(NODE)) != fingerprint(Dataset.of({**NODE, "signs_seed": 1}))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"hidden": 0}, "dataset.hidden must be a whole number of at least 1, not 0"),
        ({"degree": 1}, "dataset.degree must be a whole number of at least 2"),
        ({"weight": 0}, "dataset.weight must be a number above 0"),
        ({"margin": True}, "dataset.margin must be a number above 0"),
        ({"signs_seed": -1}, "dataset.signs_seed"),
        ({"open": 1, "weight": 0.1}, "uninformative marginals of 3 attributes; lower"),
    ],
)
def test_bad_parameters_are_named(change, message):
    with pytest.raises(UserError, match=message):
        load_dataset(Dataset.of({**NODE, **change}))
