"""BoostedAdaSSP: one round is AdaSSP, further ones take off its bias, and rounds that diverge are no estimate."""

import numpy as np
import pytest

from dpbench.data.domain import Attribute, Domain
from dpbench.data.encode import Design
from dpbench.data.table import Table
from dpbench.errors import NoEstimateError, UserError
from dpbench.mechanisms.adassp import adassp
from dpbench.mechanisms.boosted_adassp import boosted_adassp
from dpbench.models.linear import linear_statistics
from dpbench.privacy.accounting import spent
from dpbench.privacy.budget import Budget
from dpbench.privacy.recording import answered_by
from dpbench.releases import Coefficients

DELTA = 1e-5


@pytest.fixture
def design(small_domain):
    return Design(small_domain, "grade")


def run(table, design, epsilon=1.0, seed=0, mechanism=boosted_adassp, **parameters):
    return mechanism(table, Budget(epsilon, DELTA), np.random.default_rng(seed), design=design, **parameters)


def theta(table, design, *arguments, **parameters):
    return run(table, design, *arguments, **parameters)[Coefficients].values


@pytest.mark.parametrize("epsilon", [0.1, 10.0])
def test_one_round_is_adassp_with_the_same_noise(epsilon, small_table, design):
    ours = theta(small_table, design, epsilon, rounds=1)
    assert ours == pytest.approx(
        linear_statistics(run(small_table, design, epsilon, mechanism=adassp), design=design).coefficients
    )


@pytest.mark.parametrize("rounds", [1, 5, 30])
def test_the_whole_budget_is_spent_on_rounds_of_equal_noise(rounds, small_table, design):
    ledger = run(small_table, design, rounds=rounds).ledger
    assert spent(ledger, DELTA).epsilon == pytest.approx(1.0)
    assert len(ledger.events) == 2 + rounds and len({event.multiplier for event in ledger.events}) == 1
    X, y = design.encode(small_table)
    assert ledger.events[-1].sensitivity >= (np.linalg.norm(X, axis=1) * np.abs(y)).max() * (1 - 1e-12)


def answers(**changed):
    """The exact values in place of noisy ones, but for those of these labels, by their beginning."""

    def answer(entry):
        found = [change for name, change in changed.items() if entry.label.startswith(name)]
        return found[0](np.asarray(entry.asked)) if found else np.asarray(entry.asked)

    return answer


NUMBERS = Domain(tuple(Attribute.binned(name, -1, 1, 2) for name in ("x", "z", "y")))


def of_numbers(x, z, y):
    numbers = {"x": x, "z": z, "y": y}
    codes = np.stack([NUMBERS[name].code(column) for name, column in numbers.items()], axis=1)
    return Table(NUMBERS, codes, numbers), Design(NUMBERS, "y", exact=True)


def test_a_round_leaves_the_ridge_s_part_of_the_bias():
    """Without noise, and a target within half of its bounds, so that nothing is clipped."""
    x, z = np.random.default_rng(0).uniform(-1, 1, (2, 3000))
    table, design = of_numbers(x, z, 0.3 * x - 0.1 * z + 0.05)
    X, y = design.encode(table)
    exact = np.linalg.lstsq(X, y, rcond=None)[0]
    values, vectors = np.linalg.eigh(X.T @ X)
    for rounds in (1, 4):
        with answered_by(answers()):
            release = run(table, design, 0.05, rounds=rounds)
        left = vectors.T @ (exact - release[Coefficients].values) / (vectors.T @ exact)
        ridge = release.diagnostics["ridge"]
        assert ridge > 100 and left == pytest.approx((ridge / (values + ridge)) ** rounds, rel=1e-6)


def test_large_budgets_give_least_squares(small_table, design):
    X, y = design.encode(small_table)
    assert theta(small_table, design, 1e4) == pytest.approx(np.linalg.lstsq(X, y, rcond=None)[0], abs=1e-3)


def test_rounds_that_diverge_have_no_estimate_and_one_round_cannot(small_table, design):
    """With a fifth of X'X each step is five times too long."""
    for rounds in (5, 1):
        with answered_by(answers(upper=lambda x: x / 5, lambda_min=lambda x: x + 1e9)):
            if rounds == 1:
                assert np.isfinite(theta(small_table, design, 100.0, rounds=1)).all()
            else:
                with pytest.raises(NoEstimateError, match="the rounds diverge"):
                    run(small_table, design, 100.0, rounds=5)


def test_a_matrix_that_is_not_positive_definite_has_no_estimate(small_table, design):
    with (
        answered_by(answers(upper=lambda x: -x, lambda_min=lambda x: x + 1e9)),
        pytest.raises(NoEstimateError, match="not positive definite"),
    ):
        run(small_table, design)


def test_noise_alone_is_seldom_taken_for_divergence(small_table, design):
    """No signal, little budget: of 200 runs at most 20 (5 % is the bound; odds below 1e-3) have no estimate."""
    lost = 0
    for seed in range(200):
        try:
            run(small_table.take(np.arange(5)), design, 0.05, seed)
        except NoEstimateError:
            lost += 1
    assert lost <= 20


@pytest.mark.parametrize("epsilon", [1e-3, 1.0, 1e6])
def test_few_rows_collinear_columns_and_a_constant_target_have_an_estimate(epsilon):
    for rows in (0, 1, 2, 50):
        x = np.linspace(-1, 1, rows)
        found = theta(*of_numbers(x, x, np.full(rows, 0.5)), epsilon)
        assert np.isfinite(found).all() and found.shape == (3,)


@pytest.mark.parametrize(
    ("given", "message"), [({"rounds": 0}, "rounds must be at least 1"), ({"failure": 1.0}, "failure must lie between")]
)
def test_bad_parameters_are_named(given, message, small_table, design):
    with pytest.raises(UserError, match=f"boosted_adassp: {message}"):
        run(small_table, design, **given)
