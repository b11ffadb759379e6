"""PASS-GLM: noisy polynomial statistics of logistic and Poisson regression (Kulkarni et al. 2021)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dpbench.data.domain import Floats
from dpbench.data.encode import Design
from dpbench.data.table import Table
from dpbench.errors import UserError, check_known, check_positive
from dpbench.inference.glm_statistics import FAMILIES, blocks, sum_statistics, weights
from dpbench.privacy.accounting import gaussian_mu
from dpbench.privacy.budget import Budget
from dpbench.privacy.ledger import Ledger
from dpbench.privacy.noise import gaussian
from dpbench.privacy.sensitivity import of_monomials
from dpbench.releases import GlmStatistics, Release
from dpbench.releases.offers import OUTSIDE, bounded_rows


def pass_glm(
    train: Table,
    budget: Budget,
    rng: np.random.Generator,
    *,
    design: Design,
    family: str = "logistic",
    radius: float | None = None,
    largest_count: float | None = None,
    outside: str = "scale",
    noise_scales: Sequence[float] | None = None,
) -> Release:
    """All statistics of order 1 and 2 of a generalised linear model, released together with Gaussian noise.

    **Source** Kulkarni et al. 2021 (Bayesian GLM), section 3.4: logistic regression releases sum t_1(y x), sum t_2(x);
    Poisson regression sum t_1(x), t_2(x), y t_1(x), y t_2(x); t_1 and t_2 of equation (7).
    **Privacy** Replace one, or add/remove; one Gaussian release of multiplier 1 / mu, mu the largest Gaussian-DP
    parameter that (eps, delta) allows. The noise of block b has the standard deviation sigma_b R^m, m the order of its
    statistic, sigma_b in the ratio of `noise_scales`: Lemmas 3.4.1 and 3.4.2 for x / R. Sensitivity:
    `privacy.sensitivity.of_monomials`, with noise of one scale that of Corollaries 3.1.1 and 3.1.2: sqrt 4.5, and
    sqrt(4.5 (1 + R_y^2)) for Poisson, R_y = `largest_count`. Under add/remove a record has a norm of sqrt 2, or
    sqrt(2 (1 + R_y^2)); the number of rows is private then, and one more statistic, of order 0 with the noise sigma_1.
    So it is with `outside`: drop, whatever the relation.
    **Shapes** X (n, d), y (n,) as `design` encodes them; statistics (k,) in the order of `inference.glm_statistics`.
    **Departures** 1. Any R; the paper's experiments have R = 1. 2. Rows outside the ball ||x||_2 <= R are scaled onto
    it; the paper's synthetic rows are left out, which is `outside`: drop. How many rows were outside, and how many
    counts above R_y, is not paid for and not released.

    `radius`: R; null is the least bound of ||x||_2 over the domain, so that no row is outside. `largest_count`: null is
    the greatest declared one. Raises `UserError` for a target that is not of the family, or a setting out of range.
    """
    radius, largest = _checked(design, family, radius, largest_count, outside)
    scales, plain, times_y = _scales(family, noise_scales)
    ledger, relation, d = Ledger(), budget.relation, len(design.columns)
    X, y = bounded_rows(train, design, family, radius, largest, outside)
    # the unit of each entry, in which all noise is alike
    unit = np.empty(blocks(family, d)[-1].stop)
    for b, (block, scale) in enumerate(zip(blocks(family, d), scales, strict=True)):
        unit[block] = scale * radius ** (b % 2 + 1)
    unit /= weights(family, d)
    value = sum_statistics(X, y, family) / unit
    sensitivity = of_monomials(1.0, plain, relation, times_y=times_y, largest=largest)
    counted = relation == "add_remove" or outside == "drop"
    if counted:  # where a record can come or go alone
        one = of_monomials(1.0, plain, "add_remove", times_y=times_y, largest=largest)
        sensitivity = max(sensitivity, math.hypot(1.0, one))
        value = np.append(value, len(y))

    multiplier = 1 / gaussian_mu(budget.epsilon, budget.delta)
    noisy = gaussian(rng, ledger, value, sensitivity=sensitivity, multiplier=multiplier, label="statistics")
    sd = multiplier * sensitivity
    rows, rows_sd = (float(noisy[-1]), sd) if counted else (float(len(y)), 0.0)
    values: Floats = noisy[: len(unit)] * unit
    statistics = GlmStatistics(family, values, (sd * unit) ** 2, rows, rows_sd, radius, largest, outside)
    return Release(train.domain, budget, ledger, (statistics,))


def _scales(family: str, given: Sequence[float] | None) -> tuple[list[float], list[float], list[float]]:
    """sigma_b over sigma_1 of each block, and the weights (sigma_1 / sigma_b)^2 of t_1, t_2 and of y t_1, y t_2."""
    count = len(blocks(family, 1))
    scales = [1.0] * count if given is None else [float(scale) for scale in given]
    if len(scales) != count or not all(0 < scale < math.inf for scale in scales):
        raise UserError(
            f"pass_glm: noise_scales must be {count} numbers greater than 0, one per block of the {family} statistics, "
            f"not {list(given or ())}"
        )
    scales = [scale / scales[0] for scale in scales]
    weight = [scale**-2 for scale in scales]
    return scales, weight[:2], weight[2:]


def _checked(
    design: Design, family: str, radius: float | None, largest_count: float | None, outside: str
) -> tuple[float, float]:
    """R and R_y; 1 for labels, whose sign no norm sees."""
    check_known("family", family, FAMILIES)
    check_known("outside", outside, OUTSIDE)
    if family == "logistic" and not design.binary:
        raise UserError(
            f"pass_glm: logistic regression needs a target of two levels; {design.target!r} has other values"
        )
    if family == "poisson" and not design.counted:
        raise UserError(
            "pass_glm: Poisson regression needs a target of listed whole numbers of at least 0, such as "
            f"{{values: {{from: 0, to: 9}}}}, which {design.target!r} is not"
        )
    radius = design.x_bound if radius is None else radius
    largest = 1.0 if family == "logistic" else max(design.domain[design.target].values)
    largest = largest if largest_count is None else largest_count
    check_positive("pass_glm", radius=radius, largest_count=largest)
    return float(radius), float(largest)
