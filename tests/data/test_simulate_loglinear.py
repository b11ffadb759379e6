"""Simulated rows of a log-linear model: their coefficients, their distribution, and what is refused."""

import numpy as np
import pytest

from dpbench.config.composition import composed
from dpbench.data.dataset import Dataset
from dpbench.data.encode import Design
from dpbench.data.load import fingerprint, load_dataset
from dpbench.data.simulate_loglinear import drawn_population
from dpbench.errors import UserError
from dpbench.models.sandwich import robust_fit

NODE = composed(["dataset=simulation_loglinear"])["dataset"]


def drawn(n=100, seed=0, **change):
    return load_dataset(Dataset.of({**NODE, **change})).split(np.random.default_rng(seed), train_rows=n, test_rows=5)


def interactions(p, order):
    """The largest effect of each set of so many attributes, a mean of log p that sums to 0 along each of its axes."""
    log = np.log(p)
    for axes in np.ndindex(*(2,) * p.ndim):
        if sum(axes) == order:
            effect = log.mean(axis=tuple(i for i, inside in enumerate(axes) if not inside), keepdims=True)
            for axis in (i for i, inside in enumerate(axes) if inside):
                effect = effect - effect.mean(axis=axis, keepdims=True)
            yield np.abs(effect).max()


@pytest.mark.parametrize("change", [{}, {"degree": 3, "levels": [2, 3, 4], "scale": 1.0}, {"prior": True}])
def test_least_squares_on_very_many_rows_finds_the_populations_coefficients(change):
    """Within 5 robust standard errors (error rate below 1e-5 for all coefficients of the three)."""
    rows = drawn(400_000, **change)
    design = Design(rows.train.domain, "y", scaled=False)
    fit, variances = robust_fit(*design.encode(rows.train), scaled=False)
    truth = np.array([rows.truth[name] for name in design.columns])
    assert set(rows.truth) == set(design.columns)
    assert np.all(np.abs(fit.coefficients - truth) < 5 * np.sqrt(variances))
    assert np.abs(truth).max() > 20 * np.sqrt(variances).max()  # which tells them from none


def test_interactions_go_up_to_the_degree():
    p = drawn_population(np.random.default_rng(0), (2, 3, 4, 2), 2, 0.5)
    assert p.sum() == pytest.approx(1)
    assert min(interactions(p, 1)) > 0.01 and min(interactions(p, 2)) > 0.01
    assert max(interactions(p, 3)) < 1e-12 and max(interactions(p, 4)) < 1e-12
    assert min(interactions(drawn_population(np.random.default_rng(0), (2, 3, 4, 2), 3, 0.5), 3)) > 0.01


def test_parameters_have_the_declared_standard_deviation():
    """Of a contrast of two levels, and of two such: 4,000 draws, within 5 standard errors (error rate 1e-6)."""
    rng = np.random.default_rng(1)
    logs = [np.log(drawn_population(rng, (2, 2), 2, 0.7)) for _ in range(4000)]
    for signs in ([[1, 1], [-1, -1]], [[1, -1], [-1, 1]]):
        theta = [float((log * signs).sum()) / 2 for log in logs]
        effect = 0.7 * (2**0.5 if signs[0][1] == 1 else 1)  # a main effect is in two cells
        assert np.std(theta) == pytest.approx(effect, rel=5 / (2 * 4000) ** 0.5)


def test_repetitions_draw_other_rows_of_one_population_unless_it_comes_from_the_prior():
    one, two = drawn(seed=0), drawn(seed=1)
    assert one.truth == two.truth and not np.array_equal(one.train.codes, two.train.codes)
    assert drawn(seed=0, prior=True).truth != drawn(seed=1, prior=True).truth
    assert drawn(parameters_seed=1).truth != one.truth
    assert fingerprint(Dataset.of(NODE)) != fingerprint(Dataset.of({**NODE, "parameters_seed": 1}))


def test_without_effects_all_cells_are_alike():
    truth = drawn(scale=0).truth
    assert truth["(intercept)"] == pytest.approx(2.0)
    assert max(abs(value) for name, value in truth.items() if name != "(intercept)") < 1e-9


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"levels": [5]}, "dataset.levels must be two or more whole numbers of at least 2"),
        ({"levels": [3, 1]}, "dataset.levels must be two or more whole numbers of at least 2"),
        ({"levels": [100, 100, 101]}, "dataset.levels has 1,010,000 cells"),
        ({"degree": 0}, "dataset.degree must be a whole number of at least 1, not 0"),
        ({"scale": -1}, "dataset.scale must be a number of at least 0"),
        ({"parameters_seed": True}, "dataset.parameters_seed must be"),
        ({"prior": 1}, "dataset.prior must be true or false"),
    ],
)
def test_values_out_of_range_are_named(change, message):
    with pytest.raises(UserError, match=message):
        drawn(**change)
