"""Metrics of Poisson regression by hand."""

import math
from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import mean_poisson_deviance

from dpbench.data.domain import Attribute, Domain
from dpbench.data.encode import Design
from dpbench.data.table import Split, Table
from dpbench.errors import UserError
from dpbench.mechanisms.exact import exact_table
from dpbench.metrics.counts import mse_count, poisson_deviance
from dpbench.metrics.evaluation import Evaluation, Reference
from dpbench.models.fit import Fit
from dpbench.privacy.budget import Budget

DOMAIN = Domain((Attribute.discrete("x", [-1, 0, 0.5, 1]), Attribute.discrete("y", [0, 1, 2, 5], "people")))


def evaluation(x, y, theta) -> Evaluation:
    rows = Table(DOMAIN, np.array([x, y]).T)
    release = exact_table(rows, Budget(math.inf), np.random.default_rng(0))
    return Evaluation(Fit(np.array(theta)), release, Reference(Split(rows, rows), Design(DOMAIN, "y")))


def test_by_hand():
    x, y = [0, 1, 2, 3, 2], [0, 0, 1, 3, 2]  # scores 0.3 - 0.8, 0.3, 0.3 + 0.4, ... and counts 0, 0, 1, 5, 2
    scored = evaluation(x, y, [0.8, 0.3])
    mu = np.exp(0.8 * np.array([-1, 0, 0.5, 1, 0.5]) + 0.3)
    counts = np.array([0, 0, 1, 5, 2])
    assert poisson_deviance(scored).value == pytest.approx(mean_poisson_deviance(counts, mu))
    assert mse_count(scored).value == pytest.approx(np.mean((counts - mu) ** 2))
    assert mse_count(scored).unit == "people^2"
    assert poisson_deviance(scored).direction == mse_count(scored).direction == "lower"


def test_a_mean_equal_to_the_count_has_no_deviance():
    assert poisson_deviance(evaluation([1, 3], [1, 2], [math.log(2), 0.0])).value == pytest.approx(0, abs=1e-12)


def test_a_mean_that_overflows_is_infinitely_wrong_and_one_that_underflows_is_not():
    far = evaluation([3, 1], [1, 1], [1e3, 0.0])
    assert poisson_deviance(far).value == mse_count(far).value == math.inf
    large = evaluation([3, 1], [1, 1], [600.0, 0.0])  # the mean is a float, its square is not
    assert mse_count(large).value == math.inf
    assert math.isfinite(poisson_deviance(large).value)
    low = evaluation([3, 3], [1, 0], [-1e3, 0.0])
    assert poisson_deviance(low).value == pytest.approx(2 * (1e3 - 1) / 2)


def test_a_target_that_is_not_a_count_is_refused(small_table, small_domain):
    reference = Reference(Split(small_table, small_table), Design(small_domain, "sex"))
    release = exact_table(small_table, Budget(math.inf), np.random.default_rng(0))
    fit = Fit(np.zeros(len(reference.design.columns)))
    for metric in (poisson_deviance, mse_count):
        with pytest.raises(UserError, match="needs a target of listed whole numbers"):
            metric(Evaluation(fit, release, reference))


def test_a_model_without_coefficients_is_refused():
    tree = replace(evaluation([0, 1], [0, 1], [0.0, 0.0]), fit=Fit(predictor=lambda X: X[:, 0]))
    for metric in (poisson_deviance, mse_count):
        with pytest.raises(ValueError, match=f"no coefficients; leave {metric.__name__} out"):
            metric(tree)
