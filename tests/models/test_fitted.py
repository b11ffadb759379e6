"""Coefficients in the table's own units are those that a regression on the plain numbers gives."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression

import dpbench
from dpbench.data.declare import domain_from_config
from dpbench.data.encode import Design
from dpbench.models.fit import Fit
from dpbench.models.fitted import Fitted, own_units

DOMAIN = {
    "age": {"values": {"from": 20, "to": 80}},
    "sex": {"levels": ["f", "m"]},
    "sick": {"levels": ["no", "yes"]},
    "income": {"values": {"from": 0, "to": 300}},
}


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    n = 3000
    age, sex = rng.integers(20, 81, n), rng.choice(["f", "m"], n)
    income = np.clip(np.round(3 * age - 20 * (sex == "m") + rng.normal(0, 10, n)), 0, 300).astype(int)
    sick = np.where(rng.random(n) < 1 / (1 + np.exp(3 - 0.05 * age)), "yes", "no")
    return pd.DataFrame({"age": age, "sex": sex, "sick": sick, "income": income})


def features(rows, names):
    plain = pd.DataFrame({"age": rows["age"], "sex=m": rows["sex"] == "m", "sick=yes": rows["sick"] == "yes"})
    return plain.assign(income=rows["income"])[names].to_numpy(float)


def test_of_linear_regression(rows):
    table = dpbench.fit(rows, model="linear_rows", target="income", domain=DOMAIN).table().set_index("feature")
    names = ["age", "sex=m", "sick=yes"]
    known = LinearRegression().fit(features(rows, names), rows["income"])
    assert table.loc[names, "own_estimate"].to_numpy() == pytest.approx(known.coef_, rel=1e-6)
    assert table.loc["(intercept)", "own_estimate"] == pytest.approx(known.intercept_, rel=1e-6)
    assert table[["standard_error", "lower", "own_upper"]].isna().all(axis=None)


def test_of_logistic_regression(rows):
    table = dpbench.fit(rows, model="logistic_rows", target="sick", domain=DOMAIN).table().set_index("feature")
    names = ["age", "sex=m", "income"]
    known = LogisticRegression(C=np.inf, tol=1e-10, max_iter=10_000).fit(features(rows, names), rows["sick"] == "yes")
    assert table.loc[names, "own_estimate"].to_numpy() == pytest.approx(known.coef_[0], rel=1e-3)
    assert table.loc["(intercept)", "own_estimate"] == pytest.approx(known.intercept_[0], rel=1e-3)


def test_own_units_predict_what_the_scaled_ones_predict(rows):
    """Also for the logarithm of a mean, where the target is not scaled."""
    domain = domain_from_config(DOMAIN)
    rng = np.random.default_rng(1)
    theta, plain = rng.normal(size=4), np.column_stack([features(rows, ["age", "sex=m", "sick=yes"]), np.ones(3000)])
    design = Design(domain, "income")
    scaled = plain * [1 / 30, 1, 1, 1] - [50 / 30, 0, 0, 0]
    for linked, expected in ((False, 150 + 150 * scaled @ theta), (True, scaled @ theta)):
        factors, constant = own_units(design, linked=linked)
        own = factors @ theta + [0, 0, 0, 0 if linked else constant]
        assert plain @ own == pytest.approx(expected)


def test_errors_and_intervals_are_in_own_units_where_the_model_gives_them(rows):
    design, rng = Design(domain_from_config(DOMAIN), "income"), np.random.default_rng(2)
    draws = rng.multivariate_normal([1, 2, 3, 4], np.diag([1, 4, 9, 16]) + 0.5, size=4000)
    mean, intervals = draws.mean(axis=0), np.quantile(draws, [0.05, 0.95], axis=0).T
    fit = Fit(mean, draws=draws, covariance=np.cov(draws.T), intervals=intervals, notes={"level": 0.9})
    table = Fitted("any", fit, design).table().set_index("feature")
    own = draws * [150 / 30, 150, 150, 150]
    own[:, 3] += 150 - 50 * own[:, 0]
    assert table["own_standard_error"].to_numpy() == pytest.approx(own.std(axis=0, ddof=1))
    ends = table[["own_lower", "own_upper"]].to_numpy()
    assert ends == pytest.approx(np.quantile(own, [0.05, 0.95], axis=0).T)
