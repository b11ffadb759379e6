"""PACE-GGM: second moments measured one by one, and a Gaussian graphical model of them (Ferrando et al. 2026)."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from dpbench.data.encode import Design
from dpbench.data.table import Table
from dpbench.errors import check_part
from dpbench.inference.gaussian_model import Measured, gaussian_model
from dpbench.mechanisms.fitting import Costs, check_settings, check_start
from dpbench.privacy.budget import Budget
from dpbench.privacy.ledger import Ledger
from dpbench.privacy.noise import exponential_mechanism, gaussian
from dpbench.privacy.sensitivity import of_products
from dpbench.releases import Release, SufficientStatistics

ROUGH, CLOSE = 0.2, 0.002  # tolerances an entry, in a round and at the end: those of `inference.estimation`
SLIGHT = 0.01  # of the least noise that the budget allows: that of entries that are known


def pace_ggm(
    train: Table,
    budget: Budget,
    rng: np.random.Generator,
    *,
    design: Design,
    rounds: int | None = None,
    alpha: float = 0.9,
    calibration: str = "tight",
) -> Release:
    """Measure the entry of A'A, A = [X, y], that the model is worst at, one per round, and fit the model to them.

    **Source** Ferrando, Fuentes, Mullins, Musco and Sheldon (2026, arXiv 2605.24295), of which the abstract and the
    introduction were read: an entry that is poorly approximated is selected and measured by the Gaussian mechanism, and
    the whole matrix follows from the largest entropy, which makes a Gaussian graphical model.
    **Privacy** Add/remove, or replace one, where n is public. Each column of A has bounds of its own, so that a record
    changes the entry (i, j) by Delta_ij at most (`of_products`), which is far less than it changes all of A'A. An entry
    gets noise of standard deviation sigma Delta_ij; the scores of a selection change by the largest Delta_ij at most.
    The rounds choose their own noise, under a filter (`Ledger.open_filter`). `paper` is zCDP, `tight` Gaussian DP, as
    in `aim` (`Costs`).
    **Shapes** X (n, p), y (n,) as `design` encodes them; A'A (p + 1, p + 1).
    **Departures** What was not read is as in AIM (DD-SSP, Algorithms 2 to 4): the diagonal is measured first; the part
    1 - alpha of the budget is for selections, whose score is the distance less what is expected of the noise; where a
    measurement changes the model by less than its noise would, epsilon doubles and the noise is halved; the last round
    spends what is left. An entry that is measured again counts by the weighted mean. Entries that no record changes, as
    those between features of one attribute, which are 0, count as if they were measured with next to no noise.

    `rounds`: the T that the first noise is for (None: 5 (p + 1), chosen on simulated tables). `xtx_sd` and `xty_sd` of
    the release are what the last round's noise is, or would be, on the entry that a record changes least.
    """
    check_settings("pace_ggm", tolerance=None, rounds=rounds)
    check_part("pace_ggm: alpha", alpha)
    costs, ledger = replace(Costs.of("pace_ggm", budget, calibration), l1=1.0, l2=1.0), Ledger()  # in units of Delta
    rho = costs.total
    costs.open_filter(ledger)
    low, high = (np.append(*ends) for ends in zip(design.box, design.target_range, strict=True))
    bounds = np.maximum(np.abs(low), np.abs(high))
    unit = np.where(bounds > 0, bounds, 1.0)
    units = np.outer(unit, unit)
    A = np.column_stack(design.encode(train)) / unit
    exact, sensitivity = A.T @ A, of_products(design, budget.relation) / units
    d = len(exact)
    diagonal = [(i, i) for i in range(d) if sensitivity[i, i] > 0]
    candidates = [(i, j) for i in range(d) for j in range(i, d) if sensitivity[i, j] > 0]
    largest = float(sensitivity.max())

    T = 5 * d if rounds is None else rounds
    sigma, epsilon = costs.sigma(alpha * rho, T), costs.epsilon((1 - alpha) * rho, T)
    rho_used = costs.of_measurements(sigma, len(diagonal))
    check_start("pace_ggm", len(diagonal), sigma, rho_used, rho, "entries of the diagonal")
    n, constants = len(train) if budget.relation == "replace" else 0, np.where(low == high, low / unit, 0.0)
    known = [(int(i), int(j)) for i, j in zip(*np.nonzero(sensitivity == 0), strict=True) if i <= j]
    measured = {(i, j): (n * constants[i] * constants[j], SLIGHT * costs.sigma(rho)) for i, j in known}

    def measure(i: int, j: int) -> None:
        answer = gaussian(
            rng, ledger, exact[i, j], sensitivity=sensitivity[i, j], multiplier=sigma, label=f"entry {i},{j}"
        )
        measured[i, j] = _combined(measured.get((i, j)), (float(answer), sigma * sensitivity[i, j]))

    for i, j in diagonal:
        measure(i, j)
    total = max(1.0, *(measured[i, i][0] for i in range(d)))
    model = gaussian_model(d, measured, total, tolerance=CLOSE)
    last, selected = False, []
    while not last:
        rho_left = rho - rho_used
        if rho_left <= 2 * (costs.of_measurements(sigma) + costs.of_selection(epsilon)):
            epsilon, sigma = costs.epsilon((1 - alpha) * rho_left), costs.sigma(alpha * rho_left)
            last = True
        rho_used += costs.of_selection(epsilon) + costs.of_measurements(sigma)
        noise = math.sqrt(2 / math.pi) * sigma * sensitivity
        scores = np.abs(exact - model.moments) - noise
        pick = exponential_mechanism(
            rng,
            ledger,
            [scores[place] for place in candidates],
            sensitivity=largest,
            epsilon=epsilon,
            label="selection",
        )
        i, j = candidates[pick]
        before = model.moments[i, j]
        measure(i, j)
        model = gaussian_model(d, measured, total, model, tolerance=CLOSE if last else ROUGH)
        selected.append([i, j])
        if not last and abs(model.moments[i, j] - before) <= noise[i, j]:
            epsilon, sigma = 2 * epsilon, sigma / 2

    moments, sd = model.moments * units, float(sigma * (sensitivity * units)[sensitivity > 0].min())
    statistics = SufficientStatistics(moments[:-1, :-1], moments[:-1, -1], sd, sd)
    return Release(train.domain, budget, ledger, (statistics,), {"rho": rho, "entries": selected, "total": total})


def _combined(earlier: Measured | None, new: Measured) -> Measured:
    """The weighted mean of two measurements of an entry, and its standard deviation."""
    if earlier is None:
        return new
    weights = earlier[1] ** -2, new[1] ** -2
    return (earlier[0] * weights[0] + new[0] * weights[1]) / sum(weights), sum(weights) ** -0.5
