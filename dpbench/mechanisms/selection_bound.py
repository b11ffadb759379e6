"""How far the marginals that AIM did not select are from its model: a bound from what it released alone."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dpbench.data.domain import Floats


def unselected_distance(
    candidates: Sequence[tuple[float, int]],
    selected: tuple[float, Floats, Floats],
    *,
    sigma: float,
    epsilon: float,
    sensitivity: float,
    fails: float = 0.05,
) -> float:
    """The l1 distance, in rows, of any candidate from the model before a round (Theorem C.3 of excess risk).

    That round's candidates q have (w_q, n_q), their weights and cells; the one that it selected (w_i, M_i(D_{i-1}),
    y_i), the model's marginal and the noisy one. But for the probability exp(-lambda_1^2 / 2) + exp(-lambda_2) =
    `fails`, with Delta the `sensitivity` of the scores, none is farther from the real marginal than

        (w_i ||M_i(D_{i-1}) - y_i||_1 + sqrt(2/pi) sigma (w_q n_q - w_i n_i) + 2 Delta / eps log |Q_i|
         + lambda_1 sigma w_i sqrt(n_i) + lambda_2 2 Delta / eps) / w_q.

    **Departures** 1. The paper has the real marginal in place of y_i. That of AIM is y_i, whose noise the term in
    lambda_1 is for. 2. This term has the factor w_i, which the paper and AIM's own theorem leave out.
    """
    lambda_1, lambda_2 = math.sqrt(2 * math.log(2 / fails)), math.log(2 / fails)
    weight, before, noisy = selected
    noise, cells = math.sqrt(2 / math.pi) * sigma, noisy.size
    selection = 2 * sensitivity / epsilon * (math.log(len(candidates)) + lambda_2)
    distance = float(np.abs(before - noisy).sum())
    common = weight * (distance - noise * cells + lambda_1 * sigma * math.sqrt(cells)) + selection
    return float(max(common / w + noise * n for w, n in candidates))
