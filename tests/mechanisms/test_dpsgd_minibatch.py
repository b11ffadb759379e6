"""DP minibatch SGD: its steps, its published and its least noise, its batches, and its limits."""

import math

import numpy as np
import pytest
from scipy.special import expit

from dpbench.data.encode import Design
from dpbench.errors import UserError
from dpbench.mechanisms.dpsgd_minibatch import dpsgd_minibatch
from dpbench.privacy.accounting import spent
from dpbench.privacy.budget import Budget
from dpbench.privacy.recording import record
from dpbench.releases import Coefficients

DELTA = 1e-5
SETTINGS = {"batch_size": 30, "steps": 40, "learning_rate": 2.0, "decay": 0.1, "clip": 0.8, "expected_rows": 3000}


@pytest.fixture
def design(small_domain):
    return Design(small_domain, "sex")


def release(table, design, epsilon=1.0, relation="replace", **change):
    budget = Budget(epsilon, DELTA, relation)
    return dpsgd_minibatch(table, budget, np.random.default_rng(5), design=design, **{**SETTINGS, **change})


@pytest.mark.parametrize(
    ("relation", "replacement", "sizes"),
    [("replace", True, {30}), ("replace", False, {30}), ("add_remove", True, None)],
)
def test_each_step_is_that_of_the_algorithm(small_table, design, relation, replacement, sizes):
    with record() as tape:
        made = release(small_table, design, relation=relation, replacement=replacement)
    (X, y), w = design.encode(small_table), np.zeros(len(design.columns))
    for t, entry in enumerate(tape):
        gradients = -(y * expit(-y * (X @ w)))[entry.rows, None] * X[entry.rows]
        norms = np.linalg.norm(gradients, axis=1, keepdims=True)
        np.testing.assert_allclose(entry.asked, (gradients / np.maximum(1, norms / 0.8)).sum(axis=0), atol=1e-12)
        w = w - 2.0 / (1 + 0.1 * t) * entry.answer / 30
    np.testing.assert_allclose(made[Coefficients].values, w, rtol=1e-12)
    assert len(tape) == 40
    found = {len(entry.rows) for entry in tape}
    assert found == sizes or (sizes is None and len(found) > 5)
    assert any(len(set(entry.rows)) < len(entry.rows) for entry in tape) == (sizes is not None and replacement)


@pytest.mark.parametrize(("relation", "sensitivity"), [("replace", 1.6), ("add_remove", 0.8)])
def test_the_published_noise_is_that_of_algorithm_6_on_the_mean_of_a_batch(small_table, design, relation, sensitivity):
    (event,) = release(small_table, design, 0.5, relation, calibration="paper").ledger.events
    sigma = math.sqrt(16 * 0.8**2 * 40 * math.log(1 / DELTA) / (len(small_table) ** 2 * 0.5**2))
    assert event.multiplier * event.sensitivity / 30 == pytest.approx(sigma)
    assert (event.sensitivity, event.count) == (sensitivity, 40)
    drawn = (event.rows, event.batch) if relation == "replace" else event.rate
    assert drawn == ((3000, 30) if relation == "replace" else 0.01)


@pytest.mark.parametrize("relation", ["replace", "add_remove"])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 2.0])
def test_the_least_noise_spends_the_budget_and_the_published_noise_less(small_table, design, epsilon, relation):
    long = {"batch_size": 200, "steps": 500}  # about the rates of Figure 4
    tight, paper = (
        spent(release(small_table, design, epsilon, relation, calibration=name, **long).ledger, DELTA).epsilon
        for name in ("tight", "paper")
    )
    assert 0.998 * epsilon < tight <= epsilon
    assert 0.15 * epsilon < paper < 0.8 * epsilon


def test_the_published_noise_breaks_its_claim_in_few_steps(small_table, design):
    """Where a batch rarely holds a given record, and the noise is less than half of what the record then changes."""
    made = release(small_table, design, calibration="paper", replacement=False)
    assert made.ledger.events[0].multiplier < 0.5
    assert spent(made.ledger, DELTA).epsilon > 5 * made.budget.epsilon
    assert spent(release(small_table, design, replacement=False).ledger, DELTA).epsilon <= made.budget.epsilon


def test_with_little_noise_it_finds_the_classes(small_table, design):
    """The rule that the noise must not hide: the linear classifier of least logistic loss on these rows."""
    X, y = design.encode(small_table)
    theta = release(small_table, design, 1e3, steps=400, clip=10.0)[Coefficients].values
    loss, none = np.logaddexp(0, -y * (X @ theta)).mean(), math.log(2)
    assert loss < none


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"batch_size": 10**6}, "batch_size must be at least 1 and at most n = "),
        ({"batch_size": 300, "expected_rows": 200, "relation": "add_remove"}, "at most n = 200 rows"),
        ({"batch_size": 0}, "batch_size must be at least 1"),
        ({"steps": 0}, "steps must be at least 1, not 0"),
        ({"clip": 0.0}, "clip must be a finite number greater than 0"),
        ({"decay": -0.1}, "decay must be a finite number greater than 0"),
        ({"learning_rate": math.inf}, "learning_rate must be a finite number"),
        ({"calibration": "loose"}, "unknown calibration 'loose'; known: paper, tight"),
        ({"epsilon": math.inf}, "needs a finite epsilon"),
    ],
)
def test_invalid_settings_are_named(small_table, design, change, message):
    with pytest.raises(UserError, match=message):
        release(small_table, design, **change)


def test_a_target_of_many_values_is_refused(small_table, small_domain):
    numeric = next(one.name for one in small_domain.attributes if one.numeric)
    with pytest.raises(UserError, match="needs a target of two levels"):
        release(small_table, Design(small_domain, numeric))
