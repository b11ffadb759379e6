"""PATE: who votes, what the votes cost under each aggregator, what the student learns, and its limits."""

import math

import numpy as np
import pytest
from scipy.stats import norm

from dpbench.data.domain import Attribute, Domain
from dpbench.data.encode import Design
from dpbench.data.table import Table
from dpbench.errors import UserError
from dpbench.mechanisms.pate import pate, votes_rdp
from dpbench.privacy.accounting import spent
from dpbench.privacy.budget import Budget
from dpbench.privacy.recording import record
from dpbench.releases import Coefficients

DELTA = 1e-5
ORDERS = np.array([2.0, 8.0, 64.0])


@pytest.fixture
def design(small_domain):
    age, work, sex, _ = small_domain.attributes
    return Design(Domain((age, work, sex, Attribute.categorical("high", "ny"))), "high")


@pytest.fixture
def table(small_table, design):
    """3,000 rows whose label is that the grade is among the upper two."""
    columns = [small_table.column(name) for name in ("age", "work", "sex")]
    return Table(design.domain, np.stack([*columns, small_table.column("grade") >= 3], axis=1).astype(np.int64))


def release(table, design, epsilon=1.0, relation="replace", **change):
    """The first 100 rows are public, the others train 50 teachers, if `change` does not say otherwise."""
    first, rest = np.split(np.arange(len(table)), [100])
    settings = {"train": table.take(rest), "public": table.take(first), "teachers": 50, "expected_rows": 3000, **change}
    budget = Budget(epsilon, DELTA, relation)
    return pate(settings.pop("train"), budget, np.random.default_rng(2), design=design, **settings)


def accuracy(made, table, design):
    X, y = design.encode(table)
    return np.mean((X @ made[Coefficients].values > 0) == (y > 0))


@pytest.mark.parametrize("relation", ["replace", "add_remove"])
@pytest.mark.parametrize("aggregator", ["laplace", "gnmax"])
def test_the_student_learns_what_the_teachers_know(table, design, aggregator, relation):
    _, y = design.encode(table)
    chance = max(np.mean(y > 0), np.mean(y < 0))
    assert accuracy(release(table, design, 20.0, relation, aggregator=aggregator), table, design) > chance + 0.1


def test_with_one_teacher_and_little_noise_the_student_is_fitted_to_the_teachers_answers(table, design):
    from sklearn.linear_model import LogisticRegression

    made = release(table, design, 1e4, teachers=1, C=0.5)
    X, y = design.encode(table)
    teacher = LogisticRegression(C=0.5, max_iter=10_000).fit(X[100:, :-1], y[100:])
    student = LogisticRegression(C=0.5, max_iter=10_000).fit(X[:100, :-1], teacher.predict(X[:100, :-1]))
    expected = np.append(student.coef_[0], student.intercept_)
    np.testing.assert_allclose(made[Coefficients].values, expected, rtol=1e-3, atol=1e-3)


def test_the_labels_of_the_public_rows_are_not_read(table, design):
    public = table.take(np.arange(100))
    codes = public.codes.copy()
    codes[:, design.domain.index("high")] = 1 - codes[:, design.domain.index("high")]
    one, other = (release(table, design, public=p) for p in (public, Table(design.domain, codes)))
    assert np.array_equal(one[Coefficients].values, other[Coefficients].values)
    assert one.nonprivate_inputs == ("the features of 100 public rows, which no budget protects",)


def test_one_row_changes_the_vote_of_one_teacher(table, design):
    """Any row that is replaced by one of the other label, wherever it stands; most change no vote at all."""
    flip, changes = design.domain.index("high"), []
    with record() as before:
        release(table, design)
    for row in range(100, 3000, 290):
        codes = table.codes.copy()
        codes[row, flip] = 1 - codes[row, flip]
        with record() as after:
            release(Table(design.domain, codes), design)
        changes.append(np.abs(after[0].asked - before[0].asked))
    assert np.max(changes) == 1
    assert before[0].asked.max() <= 50


def test_the_published_laplace_noise_solves_its_equation_and_is_on_the_votes_of_each_class(table, design):
    with record() as tape:
        made = release(table, design, 0.7, aggregator="laplace", calibration="paper", delta=1e-3)
    scales = {event.multiplier * event.sensitivity for event in made.ledger.events}
    (gamma,) = (1 / scale for scale in scales)
    assert 4 * 100 * gamma**2 + 2 * gamma * math.sqrt(200 * math.log(1e3)) == pytest.approx(0.7)
    assert {event.sensitivity for event in made.ledger.events} == {2.0}
    assert len(tape) == 100
    assert all(entry.asked.sum() == 50 for entry in tape)
    assert spent(made.ledger, 1e-3).epsilon < 0.7 < spent(made.ledger, 1e-9).epsilon


@pytest.mark.parametrize("aggregator", ["laplace", "gnmax"])
@pytest.mark.parametrize("epsilon", [0.2, 1.0, 8.0])
def test_the_least_noise_spends_the_budget_and_the_published_noise_less(table, design, aggregator, epsilon):
    tight, paper = (
        spent(release(table, design, epsilon, aggregator=aggregator, calibration=name).ledger, DELTA).epsilon
        for name in ("tight", "paper")
    )
    assert 0.999 * epsilon < tight <= epsilon * (1 + 1e-9)
    assert 0.4 * epsilon < paper < 0.95 * epsilon


# --- teachers that have little to learn from -----------------------------------------------------------------------


@pytest.mark.parametrize(("label", "answer"), [(0, False), (1, True)])
def test_rows_of_one_class_say_that_class(table, design, label, answer):
    kept = table.take(np.flatnonzero(table.column("high") == label)[:300])
    made = release(kept, design, 1e4, teachers=20)
    X, _ = design.encode(table)
    assert set(X @ made[Coefficients].values > 0) == {answer}


def test_a_part_without_rows_votes_for_the_first_class(table, design):
    none = table.take(np.arange(0))
    with record() as tape:
        release(table, design, relation="add_remove", train=none)
    assert set(tape[0].asked) == {0.0}


# --- the cost on the very votes ------------------------------------------------------------------------------------


def theorem_6(votes, teachers, sigma, order):
    """The bound of Papernot et al. (2018) for a row, noise sigma on each class; order / sigma^2 where it fails."""
    q = norm.sf(abs(2 * votes - teachers) / (math.sqrt(2) * sigma))  # Proposition 7, two classes
    plain = order / sigma**2
    mu2 = sigma * math.sqrt(-math.log(q))
    mu1 = mu2 + 1
    if not (order <= mu1 and mu2 > 1):
        return plain
    e1, e2 = mu1 / sigma**2, mu2 / sigma**2
    if q > math.exp((mu2 - 1) * e2) / (mu1 / (mu1 - 1) * mu2 / (mu2 - 1)) ** mu2:
        return plain
    a = (1 - q) / (1 - (q * math.exp(e2)) ** ((mu2 - 1) / mu2))
    b = math.exp(e1) / q ** (1 / (mu1 - 1))
    return min(plain, math.log((1 - q) * a ** (order - 1) + q * b ** (order - 1)) / (order - 1))


@pytest.mark.parametrize("votes", [125, 140, 180, 215, 250])
def test_the_cost_on_given_votes_is_below_the_theorem_and_the_bound_for_all_votes(votes):
    sigma = 20.0
    exact = votes_rdp(np.array([float(votes)]), 250, sigma / math.sqrt(2), ORDERS)
    bounds = np.array([theorem_6(votes, 250, sigma, order) for order in ORDERS])
    assert np.all(exact <= bounds * (1 + 1e-9) + 1e-12)
    if votes == 125:  # a tie: a sign of Gaussian noise has 2 / pi of its information
        assert exact[0] == pytest.approx(2 / math.pi * ORDERS[0] / sigma**2, rel=0.05)
    if votes == 250:
        assert exact[0] < 1e-6 < ORDERS[0] / sigma**2


def test_the_cost_of_votes_is_that_of_as_many_votes_for_the_other_class():
    """Which of the two neighbours tells more depends on the side of the tie that the votes are on."""
    for votes in (0.0, 35.0, 110.0, 124.0):
        one, other = (votes_rdp(np.array([v]), 250, 14.0, ORDERS) for v in (votes, 250 - votes))
        assert one == pytest.approx(other, rel=1e-9)


def test_the_cost_on_the_very_votes_is_named_as_private_and_left_out_unless_asked_for(table, design):
    plain, told = (release(table, design, data_dependent=asked) for asked in (False, True))
    assert plain.diagnostics == {}
    assert 0 < told.diagnostics["data_dependent_epsilon"] < 1.0
    assert "data_dependent_epsilon" in told.nonprivate_inputs[1]
    assert np.array_equal(plain[Coefficients].values, told[Coefficients].values)


# --- limits --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"teachers": 2901}, "2901 teachers are more than the 2900 training rows there are"),
        ({"teachers": 301, "expected_rows": 300, "relation": "add_remove"}, "more than the 300 rows .* expected_rows"),
        ({"teachers": 0}, "teachers must be at least 1"),
        ({"public": None}, "set sample.public_rows"),
        ({"aggregator": "gmax"}, "gnmax"),
        ({"aggregator": "laplace", "data_dependent": True}, "for aggregator=gnmax alone"),
        ({"calibration": "loose"}, "unknown calibration 'loose'; known: paper, tight"),
        ({"epsilon": math.inf}, "needs a finite epsilon"),
        ({"C": 0.0}, "C must be greater than 0"),
        ({"delta": 1.0}, "delta null or between 0 and 1"),
    ],
)
def test_invalid_settings_are_named(table, design, change, message):
    with pytest.raises(UserError, match=message):
        release(table, design, **change)


def test_a_target_of_many_values_and_a_design_without_intercept_are_refused(table, small_table, small_domain, design):
    with pytest.raises(UserError, match="needs a target of two levels"):
        release(small_table, Design(small_domain, "grade"))
    with pytest.raises(UserError, match=r"set design\.intercept=true"):
        release(table, Design(design.domain, "high", intercept=False))
