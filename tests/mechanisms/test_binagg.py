"""BinAgg: what it spends, its sensitivities on worst-case neighbours, and its limit without noise."""

import math

import numpy as np
import pytest

from dpbench.config import compose
from dpbench.data.domain import Attribute, Domain
from dpbench.data.encode import Design
from dpbench.data.table import Table
from dpbench.errors import UserError
from dpbench.mechanisms import binagg as module
from dpbench.mechanisms.binagg import ALLOCATIONS, binagg
from dpbench.privacy.accounting import gaussian_epsilon, spent
from dpbench.privacy.budget import Budget
from dpbench.releases import BinSums

DELTA = 1e-5
BOXES = [(-3.0, 1.0), (2.0, 5.0), (0.0, 100.0)]  # none of them symmetric
TARGET = (-1.0, 7.0)


def budget(mu=1.0):
    return Budget(gaussian_epsilon(mu, DELTA), DELTA)


def design_of(*boxes):
    names = [*(f"x{i}" for i in range(1, len(boxes))), "y"]
    domain = Domain(tuple(Attribute.binned(name, *box, 4) for name, box in zip(names, boxes, strict=True)))
    return Design(domain, "y", intercept=False, categorical="one_hot", scaled=False, exact=True)


def table_of(design, rows):
    """The codes of categorical attributes and the numbers of the others."""
    columns = dict(zip(design.domain.names, np.asarray(rows, dtype=float).T, strict=True))
    numbers = {name: column for name, column in columns.items() if design.domain[name].numeric}
    codes = [design.domain[name].code(column) if name in numbers else column for name, column in columns.items()]
    return Table(design.domain, np.stack(codes, axis=1).astype(np.int64), numbers)


def uniform_rows(n, seed=0):
    low, high = np.array([*BOXES, TARGET]).T
    return low + (high - low) * np.random.default_rng(seed).random((n, 4))


def release_of(rows, seed=0, asked=None, **settings):
    design = design_of(*BOXES, TARGET)
    return binagg(table_of(design, rows), asked or budget(), np.random.default_rng(seed), design=design, **settings)


@pytest.mark.parametrize("allocation", ALLOCATIONS)
def test_tight_spends_the_budget_and_paper_more(allocation):
    design = design_of(*[(0, 1)] * 5, (0, 7))
    table = table_of(design, np.random.default_rng(0).random((200, 6)))
    mu = {}
    for calibration in ("tight", "paper"):
        released = binagg(
            table, budget(), np.random.default_rng(0), design=design, calibration=calibration, allocation=allocation
        )
        mu[calibration] = spent(released.ledger, DELTA).mu
    assert mu["tight"] == pytest.approx(1, rel=1e-9)
    assert mu["paper"] == pytest.approx(math.sqrt((1 + 9 + 5 * 9 + 9) / 28))  # 1.51, as papers/READING.md says


@pytest.mark.parametrize("allocation", ALLOCATIONS)
def test_with_discrete_noise_the_sums_are_those_of_the_same_bins(allocation):
    """With hardly any noise: what is released is what its bins hold, but for 5 standard deviations of the noise."""
    rows = uniform_rows(300)
    release = release_of(rows, asked=budget(100.0), noise="discrete", theta=20.0, allocation=allocation)
    bins, design = release[BinSums], design_of(*BOXES, TARGET)
    exact = bins.exact(table_of(design, rows), design)
    assert len(bins.counts) == len(exact.counts) > 5
    assert np.array_equal(bins.counts, exact.counts)
    assert (np.abs(bins.sums - exact.sums) <= 5 * bins.sums_sd).all()
    assert (np.abs(bins.targets - exact.targets) <= 5 * bins.targets_sd).all()


def test_authors_counts_add_up_to_the_exact_number_of_rows_unpaid_and_the_rest_is_as_published():
    rows = uniform_rows(300)
    paper, authors = (release_of(rows, calibration=name, theta=-20.0) for name in ("paper", "authors"))
    ours, theirs = paper[BinSums], authors[BinSums]
    assert authors.ledger.to_list() == paper.ledger.to_list()
    assert authors.nonprivate_inputs == ("the number of training rows",) and not paper.nonprivate_inputs
    assert theirs.counts.sum() == 300 != ours.counts.sum()
    assert np.abs(theirs.counts - ours.counts * 300 / ours.counts.sum()).max() < 1
    np.testing.assert_array_equal(theirs.sums, ours.sums)
    np.testing.assert_array_equal(theirs.targets, ours.targets)


def test_authors_have_more_bins_than_features_however_few_the_rows():
    one, more = (release_of(uniform_rows(5), calibration=name, theta=1e6) for name in ("paper", "authors"))
    assert one.diagnostics["bins"] == 1 and more.diagnostics["bins"] == 4
    none = release_of(uniform_rows(5), calibration="authors", least_count=1000)
    assert none[BinSums].counts.shape == (0,)


def test_ratio_divides_mu():
    events = release_of(uniform_rows(100), ratio=(1, 2, 3, 4)).ledger.events
    assert [event.label for event in events] == ["tree of bins", "counts", "sums of features", "sums of the target"]
    assert [1 / event.multiplier for event in events[1:]] == pytest.approx(np.array([2, 3, 4]) / math.sqrt(30))


def largest_moves(monkeypatch, design, rows, corners, **settings):
    """How far each added row moves what is noised, by its declared sensitivity: counts, sums of features, of target.

    The tree has next to no noise, so that the bins are those of the rows.
    """
    noised = []

    def exact(rng, ledger, value, *, sensitivity, **_):
        noised.append((np.asarray(value, dtype=float), sensitivity))
        return noised[-1][0]

    monkeypatch.setattr(module, "gaussian", exact)
    monkeypatch.setattr("dpbench.mechanisms.privtree.tree_laplace", lambda *_, **__: np.array)

    def released(rows):
        noised.clear()
        binagg(table_of(design, rows), budget(1e6), np.random.default_rng(0), design=design, least_count=1, **settings)
        return list(noised)

    before = released(rows)
    assert len(before[0][0]) >= 4  # bins
    moves = [
        [np.linalg.norm(new - old) / s for (new, s), (old, _) in zip(released(more), before, strict=True)]
        for more in (np.vstack([rows, corner]) for corner in corners)
    ]
    return np.max(moves, axis=0)


@pytest.mark.parametrize("allocation", ALLOCATIONS)
def test_no_record_moves_what_is_noised_by_more_than_the_sensitivity(monkeypatch, allocation):
    """All corners of the box, added to the same bins; a row outside of it never gets as far as the mechanism."""
    design, rows = design_of(*BOXES, TARGET), uniform_rows(500)
    corners = np.stack(np.meshgrid(*BOXES, TARGET), axis=-1).reshape(-1, 4)
    with pytest.raises(ValueError, match="outside its declared bounds"):
        table_of(design, [[1e9, -1e9, 1e9, -1e9]])
    settings = {"theta": 60.0, "allocation": allocation}
    assert largest_moves(monkeypatch, design, rows, corners, **settings) == pytest.approx(np.ones(3), rel=1e-9)


@pytest.mark.parametrize("allocation", ALLOCATIONS)
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("categorical", ["one_hot", "reduced_one_hot"])
def test_of_a_one_hot_attribute_one_column_counts_unless_centred(monkeypatch, allocation, intercept, categorical):
    """All corners of two one-hot attributes and a number, in bins that halve the one-hot columns too."""
    domain = Domain(
        (
            Attribute.categorical("a", "pqr"),
            Attribute.categorical("b", "uv"),
            Attribute.binned("x", -3, 1, 4),
            Attribute.binned("y", *TARGET, 4),
        )
    )
    design = Design(domain, "y", intercept=intercept, categorical=categorical, scaled=False, exact=True)
    rng = np.random.default_rng(0)
    codes = rng.integers(0, [3, 2, 1, 1], size=(600, 4))
    rows = codes + np.column_stack([np.zeros((600, 2)), 4 * rng.random(600) - 3, 8 * rng.random(600) - 1])
    corners = np.stack(np.meshgrid(range(3), range(2), [-3, 1], TARGET), axis=-1).reshape(-1, 4)
    settings = {"theta": 20.0, "widest": "relative", "allocation": allocation}
    tree = binagg(table_of(design, rows), budget(1e6), np.random.default_rng(0), design=design, **settings)[BinSums]
    low, high = design.box
    assert ((tree.upper - tree.lower)[:, low < high] < (high - low)[low < high]).any(axis=0).all()  # every side is cut
    assert largest_moves(monkeypatch, design, rows, corners, **settings) == pytest.approx(np.ones(3), rel=1e-9)


def test_published_noise_on_abalone_is_mu_1_80():
    """BinAgg, D4: three columns for sex and seven numbers are 8 attributes, not 10 features."""
    domain = compose(["dataset=abalone"]).dataset.domain
    design = Design(domain, "Rings", intercept=False, categorical="one_hot", scaled=False, exact=True)
    none = Table(domain, np.zeros((0, len(domain.names)), dtype=np.int64))
    assert len(design.columns) == 10
    for calibration, mu in {"paper": math.sqrt((1 + 9 + 8 * 9 + 9) / 28), "tight": 1.0}.items():  # 1.80, and as asked
        ledger = binagg(none, budget(), np.random.default_rng(0), design=design, calibration=calibration).ledger
        assert spent(ledger, DELTA).mu == pytest.approx(mu, rel=1e-9)
        assert ledger.events[2].sensitivity == pytest.approx(math.sqrt(8))


@pytest.mark.slow
def test_the_noise_is_of_the_size_that_the_release_states():
    """Root mean square of 1,500 noises by its stated size: standard error 1.8%, four of them."""
    for allocation, calibration in ((a, c) for a in ALLOCATIONS for c in ("tight", "paper")):
        settings = {"allocation": allocation, "calibration": calibration, "theta": 1e6, "max_bins": 1}
        rows = uniform_rows(200)
        residuals = []
        for seed in range(1500):
            bins = release_of(rows, seed, **settings)[BinSums]
            middle = (bins.lower + bins.upper) / 2 * (allocation == "centred")
            exact = rows[:, :3].sum(axis=0) + (bins.counts[:, None] - 200) * middle
            exact_y = rows[:, 3].sum() + (bins.counts - 200) * 3.0 * (allocation == "centred")
            residuals.append([*((bins.sums - exact) / bins.sums_sd)[0], *((bins.targets - exact_y) / bins.targets_sd)])
        assert np.sqrt(np.mean(np.square(residuals), axis=0)) == pytest.approx(np.ones(4), abs=4 * 0.018)


@pytest.mark.parametrize("calibration", ["tight", "paper"])
@pytest.mark.parametrize("allocation", ALLOCATIONS)
def test_the_deviations_of_the_sums_are_those_of_the_ledger(calibration, allocation):
    """An event's noise is in units of Delta_i of the bin: the reach of its sums, or half of its sides."""
    made = release_of(uniform_rows(500), calibration=calibration, allocation=allocation)
    bins = made[BinSums]
    event = next(one for one in made.ledger.events if one.label == "sums of features")
    reach = (bins.upper - bins.lower) / 2 if allocation == "centred" else np.maximum(abs(bins.lower), abs(bins.upper))
    assert bins.sums_sd == pytest.approx(event.multiplier * event.sensitivity * reach)


@pytest.mark.parametrize("allocation", ALLOCATIONS)
def test_without_noise_the_sums_are_those_of_the_rows_in_the_bins(allocation):
    rows = uniform_rows(800)
    bins = release_of(rows, asked=budget(1e6), theta=50.0, allocation=allocation)[BinSums]
    X = rows[:, None, :3]
    inside = ((bins.lower <= X) & (bins.upper > X)).all(axis=2)
    assert len(bins.counts) > 8
    np.testing.assert_array_equal(bins.counts, inside.sum(axis=0))
    np.testing.assert_allclose(bins.sums, inside.T @ rows[:, :3], atol=0.01)
    np.testing.assert_allclose(bins.targets, inside.T @ rows[:, 3], atol=0.01)


def test_sides_can_be_measured_against_the_box():
    """In its own unit the third feature is by far the widest, and the only one that few rows split."""
    own, relative = (release_of(uniform_rows(300), widest=widest)[BinSums] for widest in ("own_unit", "relative"))
    assert (own.upper - own.lower)[:, 1] == pytest.approx(3.0)
    assert (relative.upper - relative.lower)[:, 1].min() < 3.0


def test_bins_with_small_noisy_counts_are_discarded():
    rows = uniform_rows(300)
    every, few = (release_of(rows, theta=-60.0, least_count=least) for least in (2, 20))
    assert every[BinSums].counts.min() >= 2
    assert few[BinSums].counts.min() >= 20
    assert every.diagnostics["bins"] == few.diagnostics["bins"] > len(every[BinSums].counts) > len(few[BinSums].counts)
    none = release_of(rows, least_count=1000)
    assert none[BinSums].sums.shape == (0, 3)


@pytest.mark.parametrize("allocation", ALLOCATIONS)
def test_a_feature_with_one_value_costs_nothing(allocation, small_table, small_domain):
    """An intercept, which is 1 in each row, has its count as sum; noise on it only where it could be 0."""
    for intercept in (True, False):
        design = Design(small_domain, "grade", intercept=intercept, categorical="one_hot")
        released = binagg(small_table, budget(), np.random.default_rng(0), design=design, allocation=allocation)
        sensitivity = released.ledger.events[2].sensitivity ** 2  # age, and three levels of work and two of sex
        assert sensitivity == pytest.approx(6 if allocation == "centred" else 3 + intercept)
    if allocation == "centred":
        with_intercept = binagg(
            small_table,
            budget(),
            np.random.default_rng(0),
            design=Design(small_domain, "grade"),
            allocation=allocation,
        )[BinSums]
        np.testing.assert_array_equal(with_intercept.sums[:, -1], with_intercept.counts)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"ratio": (1, 3, 3)}, "four positive numbers"),
        ({"ratio": (1, 0, 3, 3)}, "four positive numbers"),
        ({"allocation": "even"}, "centred, proportional"),
        ({"widest": "unit"}, "own_unit, relative"),
        ({"theta": math.nan}, "theta"),
        ({"least_count": 0}, "least_count"),
        ({"max_bins": 0}, "max_bins"),
        ({"calibration": "loose"}, "calibration"),
    ],
)
def test_a_setting_that_cannot_be_used_is_named_before_any_draw(settings, message):
    design, rng = design_of(*BOXES, TARGET), np.random.default_rng(0)
    with pytest.raises(UserError, match=message):
        binagg(table_of(design, uniform_rows(10)), budget(), rng, design=design, **settings)
    assert rng.random() == np.random.default_rng(0).random()


def test_a_budget_or_a_design_that_cannot_be_used_is_named():
    with pytest.raises(UserError, match="finite epsilon"):
        release_of(uniform_rows(10), asked=Budget(math.inf))
    design = Design(
        Domain((Attribute.categorical("a", ["only"]), Attribute.binned("y", 0, 1, 4))), "y", intercept=False
    )
    table = Table(design.domain, np.zeros((5, 2), dtype=np.int64))
    for allocation in ALLOCATIONS:
        with pytest.raises(UserError, match="one that varies"):
            binagg(table, budget(), np.random.default_rng(0), design=design, allocation=allocation)
