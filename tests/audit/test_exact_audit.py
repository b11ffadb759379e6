"""The exact bound is all that a tight ledger says, more than a wrong one says, and nothing where paths disagree."""

import numpy as np
import pytest
from mechanisms.helpers import answering

from dpbench.audit.exact_audit import exact_audit
from dpbench.audit.neighbours import odd_tables, random_table
from dpbench.data.domain import Attribute, Domain
from dpbench.privacy import noise
from dpbench.privacy.budget import Budget

DELTA = 1e-5
DOMAIN = Domain((Attribute.binned("a", -3, 1, 4), Attribute.binned("b", 0, 2, 4), Attribute.categorical("c", "xyz")))


def found(answer, relation="add_remove"):
    make = answering(answer, Budget(10.0, DELTA))
    table = random_table(DOMAIN, 40, 0, numbers=True)
    return exact_audit({name: (make, one) for name, one in odd_tables(table).items()}, DELTA, relation=relation)


def total(sensitivity):
    return lambda t, rng, ledger: noise.gaussian(
        rng, ledger, t.numbers["a"].sum(), sensitivity=sensitivity, multiplier=0.5, label="sum"
    )


def counts(table):
    return np.bincount(table.codes[:, 0], minlength=4).astype(float)


def adaptive(table, rng, ledger):
    """A selection, then a marginal that depends on it and on the noise before: a record moves either by 1."""
    for _ in range(3):
        pick = noise.exponential_mechanism(
            rng, ledger, [counts(table)[0], 2.0], sensitivity=1.0, epsilon=0.3, label="selection"
        )
        value = np.bincount(table.codes[:, pick], minlength=4).astype(float)
        told = noise.gaussian(rng, ledger, value, sensitivity=1.0, multiplier=2.0, label="marginal")
    return told


def depends(table, rng, ledger):
    """What is asked after a noisy answer is nothing, or a count."""
    told = noise.gaussian(rng, ledger, [0.0], sensitivity=1.0, multiplier=1.0, label="first")
    noise.gaussian(rng, ledger, counts(table) * (told[0] > 0), sensitivity=1.0, multiplier=1.0, label="second")


def sampled(table, rng, ledger):
    distribution = {"sensitivity": 1.0, "multiplier": 1.0, "rate": 0.1, "count": 20}
    for _ in noise.sampled_gaussian(
        rng, ledger, len(table), lambda rows: np.array([float(len(rows))]), **distribution, label="steps"
    ):
        pass


def laplace(table, rng, ledger):
    noise.laplace(rng, ledger, [len(table), 2.0 * len(table)], sensitivity=3.0, multiplier=1.0, label="counts")


def rows(sensitivity, failure=0.0):
    """Projections of rows of [a, 1], a in [-3, 1], with noise on their sum."""

    def answer(table, rng, ledger):
        x = np.column_stack([table.numbers["a"], np.ones(len(table))])
        gram = x.T @ x + 100.0 * np.eye(2)
        noise.projection(
            rng,
            ledger,
            gram,
            sensitivity=sensitivity,
            multiplier=10.0 / sensitivity,
            count=200,
            failure=failure,
            label="rows",
        )
        noise.gaussian(rng, ledger, x.sum(axis=0), sensitivity=sensitivity, multiplier=2.0, label="sum")

    return answer


@pytest.mark.parametrize(
    ("answer", "relation", "least", "most"),
    [
        (total(3.0), "add_remove", 1 - 1e-6, 1 + 1e-6),
        (total(4.0), "replace", 1 - 1e-6, 1 + 1e-6),
        (sampled, "add_remove", 0.99, 1.0),
        (laplace, "add_remove", 0.7, 1.0),  # eps = 1: one answer would cost more than the two parts of it
        (adaptive, "add_remove", 0.8, 1.0),  # the selections are left out
    ],
)
def test_what_a_tight_ledger_says_is_found_and_no_more(answer, relation, least, most):
    exact = found(answer, relation)
    assert least <= exact.epsilon / exact.spent.epsilon <= most
    assert exact.short == {}


@pytest.mark.parametrize(("sensitivity", "relation"), [(1.0, "add_remove"), (2.9, "add_remove"), (3.9, "replace")])
def test_a_sensitivity_that_is_too_small_exceeds_the_ledger(sensitivity, relation):
    exact = found(total(sensitivity), relation)
    assert exact.epsilon > 1.01 * exact.spent.epsilon
    assert exact.mu == pytest.approx((3.0 if relation == "add_remove" else 4.0) / sensitivity / 0.5)


def test_projections_with_noise_cost_what_the_ledger_says_but_for_the_other_rows_of_the_table():
    """They add to the Gram matrix, in units of which the record is then shorter."""
    exact = found(rows(10**0.5))
    assert 0.97 < exact.epsilon / exact.spent.epsilon <= 1.0
    assert exact.short == {"rows": pytest.approx(1.0, abs=0.01)}


def test_a_record_longer_than_declared_in_a_projection_exceeds_the_ledger():
    exact = found(rows(2.0))
    assert exact.epsilon > 1.3 * exact.spent.epsilon


def test_a_condition_that_may_fail_takes_its_probability_off_the_bound():
    """The paths agree but where it fails, and what happens then is not known."""
    sure, unsure = found(rows(10**0.5)), found(rows(10**0.5, failure=DELTA / 2))
    assert unsure.epsilon < sure.epsilon and unsure.spent.epsilon > sure.spent.epsilon


def test_a_value_that_does_not_move_as_far_as_is_paid_for_is_named():
    exact = found(total(6.0))
    assert exact.short == {"sum": pytest.approx(0.5)} and exact.mu == pytest.approx(1.0)


def test_nothing_is_said_where_the_moves_depend_on_the_answers():
    assert found(depends) is None
