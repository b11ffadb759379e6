"""DP-GD with intervals: its path is that of gradient descent, its spread is its error, its steps pay for all."""

import math

import numpy as np
import pytest

from dpbench.data.domain import Attribute, Domain
from dpbench.data.encode import Design
from dpbench.data.table import Table
from dpbench.errors import NoEstimateError, UserError
from dpbench.mechanisms.dpgd_intervals import dpgd_intervals
from dpbench.models.descent_intervals import descent_intervals
from dpbench.privacy.accounting import spent
from dpbench.privacy.budget import Budget
from dpbench.privacy.recording import answered_by
from dpbench.releases import Coefficients

DELTA, LEVEL = 1e-5, 0.9
NUMBERS = Domain(tuple(Attribute.binned(name, -1, 1, 2) for name in ("x", "z", "y")))
DESIGN = Design(NUMBERS, "y", exact=True)
BETA = np.array([0.3, -0.2, 0.1])


def of_numbers(x, z, y):
    numbers = {"x": x, "z": z, "y": y}
    return Table(NUMBERS, np.stack([NUMBERS[name].code(v) for name, v in numbers.items()], axis=1), numbers)


def simulate(n, rng):
    """y = x'beta + U[-0.4, 0.4], within its bounds."""
    x, z = rng.uniform(-1, 1, (2, n))
    return of_numbers(x, z, BETA[0] * x + BETA[1] * z + BETA[2] + rng.uniform(-0.4, 0.4, n))


def run(table, epsilon=1.0, seed=0, *, relation="add_remove", **parameters):
    rng = np.random.default_rng(seed)
    return dpgd_intervals(table, Budget(epsilon, DELTA, relation), rng, design=DESIGN, **parameters)


def exact(entry):
    return np.asarray(entry.asked)


def least_squares(table):
    X, y = DESIGN.encode(table)
    return np.linalg.lstsq(X, y, rcond=None)[0]


@pytest.mark.parametrize(("of", "epsilon", "n"), [("rows", 1.0, 1000), ("population", 2.0, 1000)])
def test_the_spread_of_the_iterates_covers_what_it_says(of, epsilon, n):
    """80 runs of three coefficients: the mean is the level but for 4 standard errors (error rate below 1e-4)."""
    shares, refused = [], 0
    for seed in range(80):
        table = simulate(n, np.random.default_rng([5, seed]))
        truth = least_squares(table) if of == "rows" else BETA
        try:
            fit = descent_intervals(run(table, epsilon, seed), design=DESIGN, level=LEVEL, of=of, expected_rows=n)
        except NoEstimateError:
            refused += 1
            continue
        shares.append(np.mean((fit.intervals[:, 0] <= truth) & (truth <= fit.intervals[:, 1])))
    assert abs(np.mean(shares) - LEVEL) < 4 * np.std(shares) / math.sqrt(len(shares))
    assert refused <= 8  # 1 in 100 is expected: more than 8 have odds below 1e-5


def test_the_autocovariances_give_the_variances_of_least_squares():
    """Over 60 runs diag((X'X)^-1) is right within 7 %: its mean has a standard error below 2 %."""
    table = simulate(1000, np.random.default_rng(0))
    X, y = DESIGN.encode(table)
    found = np.mean([run(table, seed=seed).diagnostics["inverse"] for seed in range(60)], axis=0)
    assert found == pytest.approx(np.diag(np.linalg.inv(X.T @ X)), rel=0.07)
    residuals = run(table, 100.0).diagnostics["squared_residuals"]
    assert residuals == pytest.approx(np.sum((y - X @ least_squares(table)) ** 2), rel=0.05)


def test_without_noise_and_clipping_it_is_least_squares_and_clipping_moves_it():
    table = simulate(500, np.random.default_rng(1))
    with answered_by(exact):
        release, clipped = run(table), run(table, clip=0.1)
    assert release[Coefficients].values == pytest.approx(least_squares(table), abs=1e-9)
    assert np.abs(release[Coefficients].covariance).max() < 1e-18
    assert np.abs(clipped[Coefficients].values - least_squares(table)).max() > 1e-3


def test_a_step_is_the_sum_of_clipped_gradients_by_hand():
    table = simulate(20, np.random.default_rng(2))
    X, y = DESIGN.encode(table)
    seen = []

    def watched(entry):
        seen.append(np.asarray(entry.asked))
        return seen[-1]

    with answered_by(watched):
        step = run(table, clip=0.2, steps=8, burn_in=0.4, batches=4).diagnostics["step"]
    bound, theta = 0.2 * DESIGN.x_bound * DESIGN.y_bound, np.zeros(3)
    eigenvalue, *sums, _ = seen
    assert float(eigenvalue) == pytest.approx(np.linalg.eigvalsh(X.T @ X)[-1])
    assert len(sums) == 8
    for total in sums:
        each = (X @ theta - y)[:, None] * X
        lengths = np.linalg.norm(each, axis=1)
        assert lengths.max() > bound > lengths.min(), "some are clipped"
        assert total == pytest.approx((each * np.minimum(1, bound / lengths)[:, None]).sum(axis=0))
        theta = theta - step * total


@pytest.mark.parametrize("relation", ["add_remove", "replace"])
def test_tight_spends_all_and_paper_somewhat_less(relation):
    table = simulate(50, np.random.default_rng(0))
    assert spent(run(table, relation=relation).ledger, DELTA).epsilon == pytest.approx(1.0)
    paper = spent(run(table, relation=relation, calibration="paper").ledger, DELTA).epsilon
    assert 0.85 < paper < 0.99
    _, steps, _ = run(table, relation=relation).ledger.events
    assert steps.count == 400
    assert steps.sensitivity == pytest.approx(DESIGN.x_bound * (2 if relation == "replace" else 1))


def test_steps_that_diverge_have_no_estimate():
    """With a hundredth of the largest eigenvalue each step is a hundred times too long."""
    table = simulate(20_000, np.random.default_rng(0))

    def answer(entry):
        return exact(entry) / 100 if entry.label.startswith("lambda_max") else exact(entry)

    with answered_by(answer), pytest.raises(NoEstimateError, match=r"the steps diverge.*raise epsilon"):
        run(table, 100.0)


@pytest.mark.parametrize("epsilon", [1e-3, 1.0, 1e6])
def test_few_rows_collinear_columns_and_a_constant_target_have_an_estimate(epsilon):
    for rows in (0, 1, 2, 50):
        x = np.linspace(-1, 1, rows)
        found = run(of_numbers(x, x, np.full(rows, 0.5)), epsilon)[Coefficients]
        assert np.isfinite(found.values).all() and np.isfinite(found.covariance).all()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"steps": 0}, "steps must be at least 1"),
        ({"steps": 10}, "10 steps with a burn_in of 0.25 leave none for 10 batches; raise steps"),
        ({"batches": 5}, "batches must be even and at least 4, not 5"),
        ({"burn_in": 1.0}, "burn_in must lie between 0 and 1"),
        ({"clip": 0.0}, "clip must be greater than 0"),
    ],
)
def test_bad_parameters_are_named(given, message):
    with pytest.raises(UserError, match=f"dpgd_intervals: {message}"):
        run(simulate(5, np.random.default_rng(0)), **given)
