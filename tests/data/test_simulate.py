import numpy as np
import pytest

from dpbench.data.dataset import Dataset
from dpbench.data.encode import Design
from dpbench.data.load import check, fingerprint, load_dataset
from dpbench.errors import UserError

NODE = {
    "_target_": "dpbench.data.simulate.load",
    "name": "simulation",
    "attributes": {"_target_": "dpbench.data.simulate.attributes"},
    "features": 3,
    "sigma": 1.0,
    "coefficients_seed": 0,
    "feature_bounds": [0, 1],
    "target_bounds": [-20, 20],
    "bins": 8,
    "target": "y",
}


def test_least_squares_finds_the_truth_that_the_rows_were_drawn_with():
    drawn = load_dataset(Dataset.of(NODE)).split(np.random.default_rng(0), train_rows=100_000, test_rows=10)
    design = Design(drawn.train.domain, "y", intercept=False, scaled=False, exact=True)
    X, y = design.encode(drawn.train)
    beta = np.array([drawn.truth[name] for name in design.columns])
    found, residuals, *_ = np.linalg.lstsq(X, y, rcond=None)
    se = np.sqrt(np.diag(np.linalg.inv(X.T @ X)))
    assert np.all(np.abs(found - beta) < 4.5 * se)  # fails by chance less than once in 10,000 seeds
    assert residuals[0] / len(y) == pytest.approx(1.0, abs=0.03)
    assert (len(drawn.train), len(drawn.test)) == (100_000, 10)
    assert np.all((beta >= 1) & (beta <= 2)) and X.min() >= 0 and X.max() <= 1


def test_repetitions_draw_other_rows_of_the_same_coefficients():
    one, two = (
        load_dataset(Dataset.of(NODE)).split(np.random.default_rng(i), train_rows=50, test_rows=0.5) for i in (0, 1)
    )
    assert one.truth == two.truth and not np.array_equal(one.train.numbers["x1"], two.train.numbers["x1"])
    assert len(one.test) == 50


@pytest.mark.parametrize(("train_rows", "tested"), [(400, 100), (20_000, 1000)])
def test_a_fifth_of_the_rows_and_a_thousand_at_most_are_for_testing(train_rows, tested):
    drawn = load_dataset(Dataset.of(NODE)).split(np.random.default_rng(0), train_rows=train_rows, test_rows=[0.2, 1000])
    assert (len(drawn.train), len(drawn.test)) == (train_rows, tested)


@pytest.mark.parametrize("change", [{"target_bounds": [0, 1e-3]}, {"feature_bounds": [0.2, 0.3]}, {"sigma": 1e6}])
def test_drawn_rows_obey_their_bounds(change):
    drawn = load_dataset(Dataset.of({**NODE, **change})).split(np.random.default_rng(0), train_rows=300, test_rows=100)
    for part in (drawn.train, drawn.test):
        for attribute in part.domain.attributes:
            numbers, (lower, upper) = part.numbers[attribute.name], attribute.bounds
            assert numbers.min() >= lower and numbers.max() <= upper
            assert np.array_equal(attribute.code(numbers), part.column(attribute.name))
            assert not numbers.flags.writeable


def test_what_falls_outside_the_declared_bounds_is_moved_to_them():
    drawn = load_dataset(Dataset.of({**NODE, "target_bounds": [0, 2]})).split(
        np.random.default_rng(0), train_rows=500, test_rows=0
    )
    assert drawn.train.numbers["y"].max() == 2 and drawn.train.numbers["y"].min() == 0
    assert drawn.train.column("y").max() == 7  # the upper bound belongs to the last bin


def test_the_declared_bounds_are_part_of_the_identity():
    assert fingerprint(Dataset.of(NODE)) != fingerprint(Dataset.of({**NODE, "feature_bounds": [0, 2]}))
    assert fingerprint(Dataset.of(NODE)) != fingerprint(Dataset.of({**NODE, "coefficients_seed": 1}))
    assert "nothing to check" in check(Dataset.of(NODE))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"features": 0}, "dataset.features must be a whole number"),
        ({"feature_bounds": [1, 0]}, "lower < upper"),
        ({"target_bounds": 7}, "dataset.target_bounds must be two numbers"),
        ({"sigma": -1}, "dataset.sigma must be a number of at least 0"),
        ({"coefficients_seed": "a"}, "dataset.coefficients_seed"),
        ({"drop": ["x1"]}, "dataset.drop cannot be used"),
    ],
)
def test_bad_parameters_are_named(change, message):
    with pytest.raises(UserError, match=message):
        load_dataset(Dataset.of({**NODE, **change}))
