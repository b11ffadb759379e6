"""PASS-GLM: the worst pairs of records, its noise, what the rows are made to fit, and invalid input."""

import math

import numpy as np
import pytest

from dpbench.data.domain import Attribute, Domain
from dpbench.data.encode import Design
from dpbench.data.table import Table
from dpbench.errors import UserError
from dpbench.inference.glm_statistics import blocks, sum_statistics
from dpbench.mechanisms.pass_glm import pass_glm
from dpbench.privacy.accounting import gaussian_mu, spent
from dpbench.privacy.budget import Budget
from dpbench.releases import GlmStatistics, Release, check_release

DELTA = 1e-5
FEATURES = tuple(Attribute.binned(name, -1, 1, 4) for name in ("a", "b", "c"))
LABEL, COUNT = Attribute.categorical("y", ["-1", "1"]), Attribute.discrete("y", range(10))
DESIGNS = {
    family: Design(Domain((*FEATURES, target)), "y", intercept=False, scaled=False, exact=True)
    for family, target in [("logistic", LABEL), ("poisson", COUNT)]
}


def table(X, codes, family="logistic"):
    """The table of these features (n, 3), and of these codes of the target."""
    domain = DESIGNS[family].domain
    numbers = {attribute.name: column for attribute, column in zip(FEATURES, np.transpose(X), strict=True)}
    coded = [attribute.code(numbers[attribute.name]) for attribute in FEATURES]
    if family == "poisson":
        numbers["y"] = np.asarray(codes, dtype=float)
    return Table(domain, np.column_stack([*coded, codes]), numbers)


def rows(family, n=200, seed=0):
    rng = np.random.default_rng(seed)
    return table(rng.uniform(-1, 1, (n, 3)), rng.integers(0, 2 if family == "logistic" else 10, n), family)


def released(given, family="logistic", relation="replace", epsilon=1.0, seed=0, **settings):
    rng = np.random.default_rng(seed)
    return pass_glm(given, Budget(epsilon, DELTA, relation), rng, design=DESIGNS[family], family=family, **settings)


def asked(given, family, relation, **settings):
    """The statistics in units of their noise, at an eps where there is nearly none."""
    release = released(given, family, relation, epsilon=1e12, **settings)
    found, (event,) = release[GlmStatistics], release.ledger.events
    values, sds = found.values, np.sqrt(found.variances)
    if found.rows_sd:
        values, sds = np.append(values, found.rows), np.append(sds, found.rows_sd)
    return values / sds * event.multiplier  # a neighbour is at most 1 away


@pytest.mark.parametrize("settings", [{"radius": 1.0}, {}, {"radius": 0.4}, {"radius": 0.6, "outside": "drop"}])
@pytest.mark.parametrize("relation", ["replace", "add_remove"])
@pytest.mark.parametrize("family", ["logistic", "poisson"])
def test_the_noise_covers_every_pair_of_neighbours_and_no_more(family, relation, settings):
    """Random records and the worst ones, for which the change is the sensitivity to 1e-6."""
    change = settings | ({"largest_count": 5} if family == "poisson" else {})
    radius = settings.get("radius", DESIGNS[family].x_bound)
    inside = min(radius, 1.0)  # the box has no point of norm sqrt 3 on an axis
    rng = np.random.default_rng(1)
    angle = math.acos(-1 / (2 * (inside / radius) ** 2)) if inside / radius > math.sqrt(0.5) else math.pi
    worst = [inside * np.array([1.0, 0, 0]), inside * np.array([math.cos(angle), math.sin(angle), 0])]
    one = rng.uniform(-1, 1, (30, 3))
    codes = np.append(
        rng.integers(0, 2 if family == "logistic" else 10, 30), [1, 1] if family == "logistic" else [9, 9]
    )
    records = np.concatenate([one, [w * (1 - 1e-12) for w in worst]])
    found = np.stack([asked(table(records[[i]], codes[[i]], family), family, relation, **change) for i in range(32)])
    if relation == "add_remove" or settings.get("outside"):
        found = np.concatenate([found, np.zeros((1, found.shape[1]))])  # where it comes or goes alone
    moves = np.linalg.norm(found[:, None] - found[None], axis=2)
    largest = moves[-1].max() if relation == "add_remove" else moves.max()
    assert largest <= 1 + 1e-6
    if "radius" in settings:
        assert largest == pytest.approx(1, rel=1e-6)


@pytest.mark.parametrize("family", ["logistic", "poisson"])
def test_it_spends_its_budget_with_the_papers_noise_at_radius_1(family):
    """Corollaries 3.1.1 and 3.1.2: sigma = sqrt 4.5 / mu, or sqrt(4.5 (1 + R_y^2)) / mu, over sqrt 2 for i < j."""
    release = released(rows(family), family, radius=1.0, largest_count=5)
    found, mu = release[GlmStatistics], gaussian_mu(1.0, DELTA)
    assert spent(release.ledger, DELTA).epsilon == pytest.approx(1.0, rel=1e-6)
    sd = math.sqrt(4.5 * (26 if family == "poisson" else 1)) / mu
    mixed = [1, 0.5, 0.5, 1, 0.5, 1]
    expected = np.tile([1, 1, 1, *mixed], 2 if family == "poisson" else 1)
    assert found.variances == pytest.approx(sd**2 * expected)
    assert np.array_equal(found.covariance, np.diag(found.variances))
    assert (found.rows, found.rows_sd, found.features) == (200, 0.0, 3)


@pytest.mark.parametrize("settings", [{}, {"radius": 0.7, "noise_scales": [1, 2, 3, 0.5]}])
def test_the_noise_has_the_law_that_the_release_states(settings):
    """1,000 draws; each variance within 6 standard errors, each correlation too (error rate below 1e-6)."""
    given, runs = rows("poisson", 20), 1000
    draws = [released(given, "poisson", "add_remove", seed=seed, **settings)[GlmStatistics] for seed in range(runs)]
    exact = draws[0].exact(given, DESIGNS["poisson"])
    errors = np.array([np.append(one.values - exact.values, one.rows - exact.rows) for one in draws])
    root = np.sqrt([*draws[0].variances, draws[0].rows_sd ** 2])
    correlation = errors.T @ errors / runs / np.outer(root, root)
    np.testing.assert_allclose(np.diag(correlation), 1, atol=6 * np.sqrt(2 / runs))
    np.testing.assert_allclose(correlation - np.diag(np.diag(correlation)), 0, atol=6 / np.sqrt(runs))


def test_a_scale_twice_as_large_is_a_deviation_twice_as_large():
    sds = np.sqrt(released(rows("logistic"), radius=0.5, noise_scales=[1, 2])[GlmStatistics].variances)
    first, second = blocks("logistic", 3)
    assert sds[second][0] / sds[first][0] == pytest.approx(2 * 0.5)  # x x' is measured in units of R^2


def test_rows_outside_the_ball_are_scaled_or_dropped_and_counts_clipped():
    X, y = np.array([[0.1, 0.2, 0.0], [0.9, 0.9, -0.9]]), [3, 8]
    given, settings = table(X, y, "poisson"), {"radius": 0.5, "largest_count": 5, "epsilon": 1e12}
    scaled = np.stack([X[0], X[1] * 0.5 / np.linalg.norm(X[1])])
    found = released(given, "poisson", **settings)[GlmStatistics]
    assert found.values == pytest.approx(sum_statistics(scaled, np.array([3.0, 5.0]), "poisson"), abs=1e-4)
    dropped = released(given, "poisson", outside="drop", **settings)[GlmStatistics]
    assert dropped.values == pytest.approx(sum_statistics(X[:1], np.array([3.0]), "poisson"), abs=1e-4)
    assert dropped.rows == pytest.approx(1, abs=1e-4)
    assert dropped.rows_sd > 0
    for one in (found, dropped):
        assert np.allclose(one.exact(given, DESIGNS["poisson"]).values, one.values, atol=1e-4)


def test_the_unit_of_a_feature_changes_nothing():
    """Features in thousandths have statistics in thousandths, noise included."""
    domain = Domain((*(Attribute.binned(a.name, -1000, 1000, 4) for a in FEATURES), LABEL))
    given = rows("logistic")
    other = Table(domain, given.codes, {name: 1000 * x for name, x in given.numbers.items()})
    design = Design(domain, "y", intercept=False, scaled=False, exact=True)
    plain = released(given)[GlmStatistics]
    large = pass_glm(other, Budget(1.0, DELTA, "replace"), np.random.default_rng(0), design=design)[GlmStatistics]
    unit = np.repeat([1e3, 1e6], [3, 6])
    assert large.values == pytest.approx(plain.values * unit)
    assert large.variances == pytest.approx(plain.variances * unit**2)


@pytest.mark.parametrize("family", ["logistic", "poisson"])
def test_the_release_is_stored_and_read_back(family):
    release = released(rows(family), family, "add_remove")
    back = check_release(Release.from_parts(*release.to_parts()), ["glm_statistics"])
    one, two = release[GlmStatistics], back[GlmStatistics]
    assert one.values.tobytes() == two.values.tobytes()
    assert (one.rows, one.rows_sd, one.outline) == (two.rows, two.rows_sd, two.outline)


def test_one_feature_and_one_class_and_no_rows_make_a_release():
    domain = Domain((FEATURES[0], LABEL))
    design = Design(domain, "y", intercept=False)
    for codes in (np.ones((5, 2), dtype=np.int64), np.empty((0, 2), dtype=np.int64)):
        release = pass_glm(Table(domain, codes), Budget(1.0, DELTA), np.random.default_rng(0), design=design)
        assert release[GlmStatistics].values.shape == (2,)
        assert check_release(release).offers == ("glm_statistics",)


@pytest.mark.parametrize(
    ("family", "settings", "message"),
    [
        ("logistic", {"radius": 0.0}, "radius must be greater than 0, not 0"),
        ("poisson", {"largest_count": -1}, "largest_count must be greater than 0, not -1"),
        ("logistic", {"outside": "clip"}, "unknown outside 'clip'"),
        ("logistic", {"noise_scales": [1, 0]}, "must be 2 numbers greater than 0"),
        ("poisson", {"noise_scales": [1, 1]}, "must be 4 numbers greater than 0"),
    ],
)
def test_settings_out_of_range_are_named(family, settings, message):
    with pytest.raises(UserError, match=message):
        released(rows(family), family, **settings)


def test_a_target_of_another_family_is_named():
    numbers = Design(Domain((FEATURES[0], Attribute.discrete("y", [-1, 0, 1, 2]))), "y")
    for design, family, message in [
        (numbers, "logistic", "needs a target of two levels"),
        (numbers, "poisson", "whole numbers of at least 0"),
        (DESIGNS["logistic"], "poisson", "whole numbers of at least 0"),
        (DESIGNS["logistic"], "probit", "unknown family 'probit'"),
    ]:
        empty = Table(design.domain, np.empty((0, len(design.domain.names)), dtype=np.int64))
        with pytest.raises(UserError, match=message):
            pass_glm(empty, Budget(1.0), np.random.default_rng(0), design=design, family=family)
