"""Metrics of classification by hand, and by comparing every pair of rows."""

import math
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from dpbench.data.domain import Attribute, Domain
from dpbench.data.encode import Design
from dpbench.data.table import Split, Table
from dpbench.mechanisms.exact import exact_table
from dpbench.metrics.classification import accuracy, auc, likelihood_distance, log_loss
from dpbench.metrics.evaluation import Evaluation, Reference
from dpbench.models.fit import Fit
from dpbench.models.logistic import logistic_marginals
from dpbench.privacy.budget import Budget

DOMAIN = Domain((Attribute.discrete("x", [-1, 0, 0.5, 1]), Attribute.categorical("y", ["no", "yes"])))


def evaluation(x, y, theta=(1.0,)) -> Evaluation:
    """The test rows have these codes, and the score of a row is theta x: -1, 0, 0.5 or 1 times theta."""
    rows = Table(DOMAIN, np.array([x, y]).T)
    release = exact_table(rows, Budget(math.inf), np.random.default_rng(0))
    return Evaluation(Fit(np.array(theta)), release, Reference(Split(rows, rows), Design(DOMAIN, "y", intercept=False)))


def test_by_hand():
    # scores -1, 0, 0.5, 1, 0.5 of no, no, yes, yes, no: of six pairs five are in order and one is a tie
    five = evaluation([0, 1, 2, 3, 2], [0, 0, 1, 1, 0])
    assert auc(five).value == pytest.approx(5.5 / 6)
    losses = [math.log(1 + math.exp(s)) for s in (-1, 0, -0.5, -1, 0.5)]
    assert log_loss(five).value == pytest.approx(sum(losses) / 5)
    assert accuracy(five).value == pytest.approx((1 + 0.5 + 1 + 1 + 0) / 5)
    assert [auc(five).direction, log_loss(five).direction, accuracy(five).direction] == ["higher", "lower", "higher"]
    assert log_loss(five).unit == "nats"


@pytest.mark.parametrize("seed", range(20))
def test_auc_is_the_part_of_the_pairs_in_order(seed):
    rng = np.random.default_rng(seed)
    x, y = rng.integers(0, 4, 30), rng.permutation([0] * 11 + [1] * 19)
    scores = np.array(DOMAIN["x"].values)[x]
    won = [np.sign(a - b) / 2 + 0.5 for a, b in product(scores[y == 1], scores[y == 0])]
    assert auc(evaluation(x, y)).value == pytest.approx(np.mean(won))
    assert auc(evaluation(x, y, (-2.0,))).value == pytest.approx(1 - np.mean(won))


def test_the_distance_from_maximum_likelihood_is_relative():
    x, y = [0, 0, 0, 1, 2, 3, 3, 3], [0, 0, 1, 1, 0, 1, 1, 0]
    best = evaluation(x, y).reference.likelihood
    assert best[0] > 0.1
    assert likelihood_distance(evaluation(x, y, best)).value == 0
    assert likelihood_distance(evaluation(x, y, -best)).value == pytest.approx(2)
    assert likelihood_distance(evaluation(x, y, (0.0,))).value == pytest.approx(1)


def test_maximum_likelihood_is_of_the_rows_that_the_mechanism_saw():
    train, test = (evaluation([0, 0, 1, 3, 3], y).reference.split.train for y in ([0, 1, 0, 1, 1], [1, 1, 0, 0, 1]))
    design = Design(DOMAIN, "y", intercept=False)
    both = Split(train, test).whole
    leaked = Reference(Split(train, test, protocol="authors"), design)
    assert leaked.likelihood == pytest.approx(Reference(Split(both, test), design).likelihood)
    assert leaked.likelihood != pytest.approx(leaked.of_training.likelihood)


@pytest.mark.parametrize("label", [0, 1])
def test_one_class_has_no_auc_but_a_loss_and_an_accuracy(label):
    one = evaluation([0, 1, 3], [label] * 3)
    assert math.isnan(auc(one).value)
    assert accuracy(one).value == 0.5
    assert log_loss(one).value > 0


def test_the_scale_of_theta_changes_the_log_loss_alone():
    x, y = [0, 1, 2, 3, 0, 3], [0, 0, 1, 1, 1, 0]
    one, hundred, zero = (evaluation(x, y, (scale,)) for scale in (1.0, 100.0, 0.0))
    assert auc(one).value == auc(hundred).value
    assert accuracy(one).value == accuracy(hundred).value
    assert log_loss(hundred).value > 10 > log_loss(one).value
    assert log_loss(zero).value == pytest.approx(math.log(2))
    assert auc(zero).value == accuracy(zero).value == 0.5


def test_a_huge_score_does_not_overflow():
    assert log_loss(evaluation([0, 3], [1, 0], (1e4,))).value == pytest.approx(1e4)


def test_auc_of_degree_two_depends_on_neither_radius_nor_construction(small_table, small_domain):
    parts = Split(small_table.take(np.arange(2000)), small_table.take(np.arange(2000, 3000)))
    reference = Reference(parts, Design(small_domain, "sex"))
    release = exact_table(parts.train, Budget(math.inf), np.random.default_rng(0))
    values = {"auc": set(), "log_loss": set()}
    for radius, construction in [(6.0, "interpolation"), (6.0, "series"), (1.0, "series")]:
        fit = logistic_marginals(release, design=reference.design, radius=radius, construction=construction)
        for metric in (auc, log_loss):
            score = metric(Evaluation(fit, release, reference))
            values[score.name].add(round(score.value, 6))
    assert len(values["auc"]) == 1
    assert len(values["log_loss"]) == 3


def test_a_target_of_many_values_is_refused(small_table, small_domain):
    reference = Reference(Split(small_table, small_table), Design(small_domain, "grade"))
    release = exact_table(small_table, Budget(math.inf), np.random.default_rng(0))
    fit = Fit(np.zeros(len(reference.design.columns)))
    for metric in (auc, log_loss, accuracy):
        with pytest.raises(ValueError, match="'grade' does not have two levels; leave out metrics of classification"):
            metric(Evaluation(fit, release, reference))


def test_a_model_without_coefficients_is_refused_the_distance_of_coefficients():
    """Beside a design of one column, its empty array would count as no distance at all."""
    tree = replace(evaluation([0, 1, 3, 3], [0, 0, 1, 0]), fit=Fit(predictor=lambda X: X[:, 0]))
    with pytest.raises(ValueError, match="no coefficients; leave likelihood_distance out"):
        likelihood_distance(tree)
    assert math.isfinite(auc(tree).value)
