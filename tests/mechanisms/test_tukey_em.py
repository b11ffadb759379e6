"""TukeyEM: depths and volumes by hand, two neighbours in the worst case, where the point lies, and no estimate."""

import math

import numpy as np
import pytest

from dpbench.data.domain import Attribute, Domain
from dpbench.data.encode import Design
from dpbench.data.table import Table
from dpbench.errors import NoEstimateError, UserError
from dpbench.mechanisms.tukey_em import _distance, tukey_em, tukey_em_published
from dpbench.privacy import noise
from dpbench.privacy.accounting import spent
from dpbench.privacy.budget import Budget
from dpbench.privacy.ledger import Ledger
from dpbench.releases import Coefficients

DELTA = 1e-5
DOMAIN = Domain(tuple(Attribute.binned(name, -1, 1, 2) for name in ("x", "z", "y")))
DESIGN = Design(DOMAIN, "y", exact=True)
THETA = np.array([0.5, -0.2, 0.1])


def table(n, seed=0, sd=0.05, collinear=False):
    rng = np.random.default_rng(seed)
    x, z = rng.uniform(-1, 1, (2, n))
    z = x if collinear else z
    y = np.clip(THETA @ [x, z, np.ones(n)] + sd * rng.normal(size=n), -1, 1)
    numbers = {"x": x, "z": z, "y": y}
    codes = np.stack([DOMAIN[name].code(column) for name, column in numbers.items()], axis=1)
    return Table(DOMAIN, codes, numbers)


def run(rows, epsilon=1.0, seed=0, relation="add_remove", **parameters):
    parameters = {"models": 1000, "expected_rows": 20_000, **parameters}
    return tukey_em(rows, Budget(epsilon, DELTA, relation), np.random.default_rng(seed), design=DESIGN, **parameters)


@pytest.mark.parametrize("relation", ["add_remove", "replace"])
def test_coefficients_are_near_those_of_the_rows_and_the_budget_is_spent(relation):
    made = run(table(20_000), relation=relation)
    assert made[Coefficients].values == pytest.approx(THETA, abs=0.02)
    assert spent(made.ledger, DELTA).epsilon == pytest.approx(1.0)
    assert spent(made.ledger, DELTA / 2).epsilon == math.inf


def test_the_scale_of_the_target_does_not_matter():
    """No bound is used: rows of a target a thousand times smaller have coefficients a thousand times smaller."""
    rows = table(20_000)
    numbers = {**rows.numbers, "y": rows.numbers["y"] / 1000}
    small = Table(DOMAIN, rows.codes, numbers)
    assert 1000 * run(small)[Coefficients].values == pytest.approx(run(rows)[Coefficients].values, rel=1e-4)


# --- privacy -------------------------------------------------------------------------------------------------------


def boxes_of(fits, t=1):
    fits = np.sort(fits, axis=0)
    return np.stack([fits, fits[::-1]], axis=1)[t - 1 : len(fits) // 2]


def density(fits, points, t, epsilon):
    """Of points (n, 1), by their depths counted one by one, normalised by hand."""
    edges = np.unique(fits)
    middles = (edges[1:] + edges[:-1]) / 2

    def weights(x):
        depth = np.minimum((fits[:, 0] <= x[:, None]).sum(axis=1), (fits[:, 0] >= x[:, None]).sum(axis=1))
        return np.where(depth >= t, np.exp(epsilon * depth / 2), 0.0)

    return weights(points) / (weights(middles) @ np.diff(edges))


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_points_are_drawn_with_the_density_of_their_depth(epsilon):
    """5,000 points in one dimension: cells within 5 standard errors of what the density says (error rate 1e-4)."""
    fits, t = np.random.default_rng(1).normal(size=(12, 1)), 3
    rng, draws = np.random.default_rng(2), 5_000
    found = [
        noise.depth_exponential(rng, Ledger(), boxes_of(fits, t), epsilon=epsilon, delta=DELTA, label="point")[0]
        for _ in range(draws)
    ]
    edges = np.sort(fits[:, 0])
    middles = ((edges[1:] + edges[:-1]) / 2)[:, None]
    expected = density(fits, middles[:, 0], t, epsilon) * np.diff(edges)
    seen = np.histogram(found, edges)[0] / draws
    assert np.all(np.abs(seen - expected) <= 5 * np.sqrt(expected / draws) + 1e-12)


def test_points_of_several_dimensions_are_uniform_between_two_boxes():
    """6,000 points between nested boxes of volumes 12 and 2: five parts within 5 standard errors (error rate 1e-5)."""
    boxes = np.array([[[0.0, 0, 0], [3, 2, 2]], [[1.0, 0.5, 0], [2, 1.5, 2]]])
    rng, draws = np.random.default_rng(3), 6_000
    points = np.array(
        [noise.depth_exponential(rng, Ledger(), boxes, epsilon=1e-9, delta=DELTA, label="p") for _ in range(draws)]
    )
    assert np.all(points >= boxes[0, 0]) and np.all(points <= boxes[0, 1])
    parts = {
        2 / 12: np.all((points > boxes[1, 0]) & (points < boxes[1, 1]), axis=1),
        4 / 12: points[:, 0] < 1,
        3 / 12: points[:, 1] < 0.5,
        0.5: points[:, 2] < 1,
        1 / 12: (points[:, 0] < 1) & (points[:, 1] < 0.5),
    }
    for part, inside in parts.items():
        assert abs(inside.mean() - part) < 5 * math.sqrt(part / draws)


@pytest.mark.parametrize("seed", range(40))
def test_a_fit_more_or_less_moves_the_distance_by_one_at_most_and_what_is_stable_is_indistinguishable(seed):
    """Exact hockey-stick divergences of the points of neighbours in one dimension, where either is stable."""
    rng, m, epsilon, delta = np.random.default_rng(seed), 48, 4.0, 0.05
    t = m // 4
    fits = rng.normal(size=(m, 1)) ** rng.integers(1, 4)
    other = fits.copy()
    other[rng.integers(m)] = rng.choice([-50.0, 50.0, 0.0]) + rng.normal()
    distances = [_distance(boxes_of(one), t, epsilon, delta) for one in (fits, other)]
    assert abs(distances[0] - distances[1]) <= 1
    assert max(distances) >= 1, "neither is stable, and nothing is tested"
    edges = np.unique(np.concatenate([fits, other]))
    middles, widths = (edges[1:] + edges[:-1]) / 2, np.diff(edges)
    p, q = (density(one, middles, t, epsilon) for one in (fits, other))
    for one, two in ((p, q), (q, p)):
        assert np.maximum(one - math.exp(epsilon) * two, 0) @ widths <= delta


def test_the_published_density_is_private_for_twice_its_part_and_not_for_that_part():
    """Exact hockey-stick divergences, as above, of a table that is stable by the test for the part itself."""
    m, epsilon, delta = 48, 4.0, 0.05
    t = m // 4
    fits = np.concatenate([np.linspace(-1e-3, 0, m // 2), np.linspace(1e-3, 1, m // 2)])[:, None]
    other = fits.copy()
    other[0] = 2.0
    assert _distance(boxes_of(fits), t, epsilon, delta) >= 1
    edges = np.unique(np.concatenate([fits, other]))
    middles, widths = (edges[1:] + edges[:-1]) / 2, np.diff(edges)
    p, q = (density(one, middles, t, 2 * epsilon) for one in (fits, other))
    for times, within in ((1, False), (2, True)):
        worst = max(np.maximum(a - math.exp(times * epsilon) * b, 0) @ widths for a, b in ((p, q), (q, p)))
        assert (worst <= delta) == within


def test_the_published_density_spends_one_and_a_half_budgets_and_has_deeper_points():
    rows, deeper = table(20_000, sd=0.5), []
    for seed in range(5):
        options = {"design": DESIGN, "models": 1000, "expected_rows": 20_000}
        published = tukey_em_published(rows, Budget(1.0, DELTA), np.random.default_rng(seed), **options)
        assert spent(published.ledger, DELTA).epsilon == pytest.approx(1.5)
        errors = [np.abs(one[Coefficients].values - THETA).max() for one in (published, run(rows, seed=seed))]
        deeper.append(errors[0] < errors[1])
    assert sum(deeper) >= 3


@pytest.mark.parametrize("epsilon", [1.0, 2.0, 3.0, 4.0])
def test_the_distance_is_found_as_the_definition_says(epsilon):
    t, delta, found = 15, 1e-3, set()
    theta = delta / (1 + math.exp(epsilon / 2))
    for seed in range(20):
        fits = np.random.default_rng(seed).normal(size=(60, 3))
        volumes = {i: np.prod(box[1] - box[0]) for i, box in enumerate(boxes_of(fits), start=1)}

        def holds(k, volumes=volumes):
            reach = range(1, 30 - t - k)
            return any(volumes[t - k - 1] / volumes[t + k + g + 1] * math.exp(-epsilon * g / 2) <= theta for g in reach)

        expected = next(k for k in range(t) if k == t - 1 or not holds(k))
        assert _distance(boxes_of(fits), t, epsilon, delta) == expected
        found.add(expected)
    assert epsilon < 3 or len(found) > 1


def test_an_unstable_table_passes_with_the_declared_probability_at_most():
    """The noise of the test has the scale 2 / eps: of 200,000 draws within 5 standard errors of delta = 0.01."""
    epsilon, delta, draws = 1.0, 0.01, 200_000
    drawn = np.random.default_rng(0).laplace(0.0, 2 / epsilon, draws)
    part = (drawn > 2 * math.log(1 / (2 * delta)) / epsilon).mean()
    assert abs(part - delta) < 5 * math.sqrt(delta / draws)
    event = run(table(20_000)).ledger.events[0]
    assert (event.sensitivity, event.multiplier) == (1.0, 2.0)


# --- no estimate ---------------------------------------------------------------------------------------------------


def test_fits_that_disagree_or_a_small_budget_have_no_estimate():
    with pytest.raises(NoEstimateError, match="no point of large depth is stable"):
        run(table(20_000), epsilon=0.1)
    with pytest.raises(NoEstimateError, match="no point of large depth is stable"):
        run(table(2_000), models=12, expected_rows=2_000)


def test_more_coefficients_than_the_expected_rows_of_a_part_have_no_estimate_whatever_the_rows_are():
    for rows in (0, 20_000):
        with pytest.raises(NoEstimateError, match=r"1000 fits of 3 coefficients need 3,000 rows, and 1,000 are"):
            run(table(rows), expected_rows=1_000)


@pytest.mark.parametrize("rows", [table(20_000, collinear=True), table(20_000, sd=0.0), table(3), table(0)])
def test_collinear_columns_fits_that_agree_and_few_rows_have_an_estimate_or_say_that_there_is_none(rows):
    try:
        assert np.isfinite(run(rows)[Coefficients].values).all()
    except NoEstimateError:
        assert len(rows) < 20_000


@pytest.mark.parametrize(
    ("given", "message"),
    [({"models": 11}, "models must be at least 12"), ({"expected_rows": 0}, "expected_rows must be greater than 0")],
)
def test_bad_parameters_are_named(given, message):
    with pytest.raises(UserError, match=f"tukey_em: {message}"):
        run(table(50), **given)
    with pytest.raises(UserError, match="needs a finite epsilon"):
        run(table(50), math.inf)
