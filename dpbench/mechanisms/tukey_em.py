"""TukeyEM: a point of large Tukey depth among fits to parts of the rows, without any bounds (Amin et al. 2023).

**Theorem.** Given the parts that the rows draw, neighbours differ in one of m fits, and the depth of a point by at most
1. The points of depth i or more are a box of volume V_i: from the i-th smallest to the i-th largest fit in each
coordinate. V_{i+1}(D) <= V_i(D') for neighbours D and D'. A point is drawn with the density f(x) = exp(e depth(x) / 2)
/ W on the points of depth t or more. D is stable if for some g >= 1

    V_{t-1} / V_{t+g+1} exp(-e g / 2) <= theta = delta / (1 + exp(e / 2)).

1. If D is stable, the points of D and of any neighbour D' are (e, delta)-indistinguishable. Proof. W(D) >= exp(e (t + g
+ 1) / 2) V_{t+g+1}(D), and W(D') >= exp(e (t + g) / 2) V_{t+g+1}(D). Where both densities are positive, f / f' <=
exp(e / 2) W(D') / W(D), and W(D') <= exp(e / 2) (W(D) + exp(e (t - 1) / 2) V_{t-1}(D)) <= exp(e / 2) W(D) (1 + exp(-e)
theta). Where f' is 0 the depth in D is t, and f has at most the mass exp(e t / 2) V_{t-1}(D) / W(D) <= exp(-e / 2)
theta. So P(S) <= exp(e) Q(S) + theta + exp(-e / 2) theta. In the other direction W(D) <= exp(e / 2) (W(D') + exp(e (t -
1) / 2) V_t(D)) <= exp(e / 2) W(D') (1 + exp(-e / 2) theta), and where f is 0, f' has at most the mass exp(e t / 2)
V_{t-1}(D) / W(D') <= theta: P(S) <= exp(e) Q(S) + exp(e / 2) theta + theta.

2. h(D), the number of k = 0, 1, ..., t - 2 with V_{t-k-1} / V_{t+k+g+1} exp(-e g / 2) <= theta for some g >= 1, has
sensitivity 1: what holds for k >= 1 and D holds for k - 1 and D', as V_{t-k}(D') <= V_{t-k-1}(D) and V_{t+k+g}(D') >=
V_{t+k+g+1}(D); and what holds for k holds for all smaller ones. D is stable if h(D) >= 1.

3. The test passes if h + Laplace(1 / e') > log(1 / (2 delta)) / e', and a point is drawn only then. If D or D' is
stable, test and point compose to (e + e', delta). If neither is, h is 0 for both, each passes with probability delta,
and P(S) <= exp(e') Q(S) + delta. So all is (e + e', delta)-DP.
"""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np

from dpbench.data.domain import Codes, Floats
from dpbench.data.encode import Design
from dpbench.data.table import Table
from dpbench.errors import NoEstimateError, UserError, check_part, check_positive
from dpbench.mechanisms.fitting import check_settings
from dpbench.mechanisms.kendall import dpkendall
from dpbench.privacy.accounting import check_calibration
from dpbench.privacy.budget import Budget
from dpbench.privacy.calibration import check_finite
from dpbench.privacy.ledger import Ledger
from dpbench.privacy.noise import depth_exponential, laplace
from dpbench.releases import Coefficients, Release

JITTER = 1e-10  # relative, of the coefficients of a fit, so that no two are equal; as in the authors' code
LEAST_MODELS = 12  # with which there are several depths on either side of a quarter of them


def tukey_em(
    train: Table,
    budget: Budget,
    rng: np.random.Generator,
    *,
    design: Design,
    models: int = 1000,
    expected_rows: int,
    features: int | None = None,
    selection_share: float = 0.1,
) -> Release:
    """A point of large approximate Tukey depth among m least-squares fits to parts of the rows, by an exponential
    mechanism, if a private test says that such points are stable: coefficients that many fits agree with.

    The depth of a point is the least number of fits on either side of it in any one coordinate. No bound of features,
    target or coefficients is used.

    **Source** Amin, Joseph, Ribero and Vassilvitskii 2023, "Easy Differentially Private Linear Regression", arXiv
    2208.07353: m = 1000 and the depths from t = m/4 on. It asks for some 1,000 rows a column.
    **Privacy** Add/remove, or replace one: (eps, delta) by the theorem above, e = e' = eps/2. With `features`
    `selection_share` of eps goes to `kendall.dpkendall` before, and half of the rest to each.
    **Shapes** X (n, p), y (n,) as `design` encodes them; fits (m, p), theta (p,).
    **Departures** 1. A row draws its part, where the paper's have equal sizes: with those one row more would move
    others to another part. 2. The stability is derived above; the public code has theta = delta / (8 exp(e)). 3. The
    noise of the test has the scale 2 / eps; in the public code it is eps / 2. 4. The density of a point is exp(eps
    depth / 4); in the public code it is exp(eps depth / 2), which `tukey_em_published` has. 5. Collinear parts, and
    those that by chance have fewer rows than columns, have the least-squares fit of least norm.

    `expected_rows` declares about how many rows the table has. `features`: the fits have so many columns besides the
    intercept, where there are more; None: all. A tenth of eps finds correlations of .1 in some 20,000 rows.
    Raises `UserError` for a setting out of range or an infinite eps, `NoEstimateError` if there are fewer expected rows
    than m times the columns, or the test fails.
    """
    check_finite(budget.epsilon)
    check_positive("tukey_em", expected_rows=expected_rows)
    check_settings("tukey_em", tolerance=None, features=features)
    check_part("tukey_em: selection_share", selection_share)
    _check_models("tukey_em", models)
    p, constant = len(design.columns), int(design.intercept)
    chosen = p - constant if features is None else min(features, p - constant)
    _check_rows(models, chosen + constant, expected_rows)
    epsilon, ledger, columns = budget.epsilon, Ledger(), list(range(p))
    X, y = design.encode(train)
    if chosen < p - constant:
        paid, relation = selection_share * epsilon, budget.relation
        found = dpkendall(
            *(rng, ledger, X[:, : p - constant], y),
            count=chosen,
            epsilon=paid,
            relation=relation,
            expected_rows=expected_rows,
        )
        columns, epsilon = found + columns[p - constant :], epsilon - paid
    e = epsilon / 2
    theta = _point(rng, ledger, _parts(X[:, columns], y, models, rng), e, budget.delta, of_point=e)
    return _released(train, budget, ledger, design, columns, theta)


def tukey_em_published(
    train: Table,
    budget: Budget,
    rng: np.random.Generator,
    *,
    design: Design,
    calibration: str = "paper",
    models: int = 1000,
    expected_rows: int,
) -> Release:
    """`tukey_em` on all columns with the density of the authors' code, which spends 1.5 times the budget: `paper`. With
    `tight` it is `tukey_em`.

    **Source** google-research 4c42994, `dp_regression/tukey.py`: `restricted_racing_sample_depth` draws a point with
    the density exp(e depth(x)), where the theorem has exp(e depth(x) / 2).
    **Privacy** Add/remove, or replace one: (1.5 eps, delta), as the ledger says. A table that is stable for e is stable
    for 2 e, too: exp(-e g) theta(e) / exp(-e g / 2) <= delta / (exp(e / 2) + exp(e)) <= theta(2 e), g >= 1. So 1. to 3.
    of the theorem hold with 2 e in the density and e in the test.
    **Shapes** and **Departures**, and what it raises, as for `tukey_em`.
    """
    check_calibration(calibration)
    check_finite(budget.epsilon)
    check_positive("tukey_em_published", expected_rows=expected_rows)
    _check_models("tukey_em_published", models)
    _check_rows(models, len(design.columns), expected_rows)
    X, y = design.encode(train)
    ledger, e = Ledger(), budget.epsilon / 2
    of_point = 2 * e if calibration == "paper" else e
    return _released(
        *(train, budget, ledger, design, list(range(X.shape[1]))),
        _point(rng, ledger, _parts(X, y, models, rng), e, budget.delta, of_point=of_point),
    )


def _released(
    train: Table, budget: Budget, ledger: Ledger, design: Design, columns: list[int], theta: Floats
) -> Release:
    """The release of a point with these columns; the coefficients of the others are 0."""
    whole = np.zeros(len(design.columns))
    whole[columns] = theta
    return Release(
        train.domain, budget, ledger, (Coefficients(whole),), {"columns": [design.columns[j] for j in columns]}
    )


def _point(
    rng: np.random.Generator,
    ledger: Ledger,
    fits: Floats,
    epsilon: float,
    delta: float,
    of_point: float,
) -> Floats:
    """A point (p,) for the fits (m, p), sorted in each column: the test for `epsilon` and the point for `of_point`.

    Raises `NoEstimateError` where the test fails.
    """
    m = len(fits)
    t, boxes = m // 4, np.stack([fits, fits[::-1]], axis=1)[: m // 2]  # (m/2, 2, p): of depth i or more at i - 1
    distance = laplace(
        rng,
        ledger,
        _distance(boxes, t, epsilon, delta),
        sensitivity=1.0,
        multiplier=1 / epsilon,
        label="distance to an unstable table",
    )
    if not float(distance) > math.log(1 / (2 * delta)) / epsilon:
        raise NoEstimateError(
            "no point of large depth is stable among the fits, as a private test says; train on more rows, raise "
            "epsilon or use fewer columns"
        )
    return depth_exponential(rng, ledger, boxes[t - 1 :], epsilon=of_point, delta=delta, label="point of large depth")


def _check_models(mechanism: str, models: int) -> None:
    if models < LEAST_MODELS:
        raise UserError(f"{mechanism}: models must be at least {LEAST_MODELS}, not {models}")


def _check_rows(models: int, columns: int, expected_rows: int) -> None:
    """Raises `NoEstimateError` where the parts of the declared rows would have fewer rows than columns."""
    needed = models * columns
    if expected_rows < needed:
        raise NoEstimateError(
            f"{models} fits of {columns} coefficients need {needed:,} rows, and {expected_rows:,} are declared by "
            "expected_rows; lower models or features"
        )


def _parts(X: Floats, y: Floats, models: int, rng: np.random.Generator) -> Floats:
    """The fits (m, p) to parts that the rows draw, no two equal, sorted in each column."""
    fits = _fits(X, y, rng.integers(models, size=len(y)), models)
    return np.sort(fits + JITTER * np.maximum(np.abs(fits), 1.0) * rng.random(fits.shape), axis=0)


def _fits(X: Floats, y: Floats, part: Codes, models: int) -> Floats:
    """The least-squares fit of least norm (m, p) to each part of the rows."""
    order = np.argsort(part, kind="stable")
    ends = np.searchsorted(part[order], np.arange(models + 1))
    rows = (order[first:last] for first, last in pairwise(ends))
    return np.array([np.linalg.lstsq(X[mine], y[mine], rcond=None)[0] for mine in rows])


def _distance(boxes: Floats, t: int, epsilon: float, delta: float) -> int:
    """h of the theorem, for boxes (m/2, 2, p)."""
    volumes = np.log(boxes[:, 1] - boxes[:, 0]).sum(axis=1)  # log V_i at i - 1
    limit = math.log(delta) - np.logaddexp(0.0, epsilon / 2)

    def unstable(k: int) -> bool:
        deeper = volumes[t + k + 1 :]  # of the depths t + k + g + 1, g = 1, 2, ...
        gaps = volumes[t - k - 2] - deeper - epsilon / 2 * np.arange(1, len(deeper) + 1)
        return not len(gaps) or bool(gaps.min() > limit)

    return next((k for k in range(t - 1) if unstable(k)), t - 1)
