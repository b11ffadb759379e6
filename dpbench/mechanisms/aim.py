"""AIM, the adaptive and iterative mechanism for marginals (Paper 0, Algorithms 2 to 4; McKenna et al. 2022)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from dpbench.data.domain import Clique, Floats
from dpbench.data.table import Table
from dpbench.errors import UserError
from dpbench.inference import MarkovModel, Measurement, candidate_mb
from dpbench.mechanisms.fitting import (
    Costs,
    check_answers,
    check_model,
    check_settings,
    check_sigma,
    estimator,
    smallest_mb,
    table_mb,
)
from dpbench.mechanisms.release import Release
from dpbench.mechanisms.workload import cliques_of, closure, weights
from dpbench.privacy.budget import Budget, Ledger
from dpbench.privacy.noise import exponential_mechanism, gaussian


def aim(
    train: Table,
    budget: Budget,
    rng: np.random.Generator,
    *,
    workload: int | Sequence[Sequence[str]] = 2,
    max_model_mb: float = 80,
    iterations: int = 1000,
    tolerance: float | None = None,
    rounds: int | None = None,
    rows: int | None = None,
    alpha: float = 0.9,
    engine: str = "native",
    components: int | None = None,
    calibration: str = "tight",
) -> Release:
    """Measure the marginals that the current model answers worst, one a round, and fit a graphical model to them.

    **Source** Paper 0, Algorithms 2, 3 and 4 (McKenna, Mullins, Sheldon and Miklau 2022).
    **Privacy** Add/remove, or replace one. A marginal has l2 sensitivity 1, or sqrt 2; a selection's score changes by
    at most max_r w_r times the l1 sensitivity, which is 1, or 2. The rounds choose their own noise, under a filter
    (`Ledger.open_filter`). `paper`: zCDP, with the rho that (eps, delta) allows (tight conversion); a measurement costs
    1/(2 multiplier^2), a selection eps^2/8. `tight`: Gaussian DP, with the mu that (eps, delta) allows, the currency
    being mu^2/2 (`Costs`). n is not used: the total is estimated from the measurements.
    **Shapes** A marginal on r has the shape `domain.shape(r)`.
    **Departures** 1. The estimate weighs squared errors by 1/sigma^2, not by the published 1/sigma, which belongs
    to a norm. 2. A candidate inside a clique that the model already holds stays a candidate whatever the model's size,
    so that there always is one (as in the authors' code). 3. The last round spends what is left and ends the loop
    there, so that rounding cannot start another. 4. A marginal whose own table is over the limit is no candidate; if
    the workload asks for it, the model answers it once, at the end. 5. A mixture (`engine: mixture`; Paper 0, Appendix
    H, Figure 6) has no junction tree: every candidate is allowed in every round.

    `workload`: k for all k-way marginals, or a list of cliques. `max_model_mb`: the limit on the junction tree.
    `iterations`: the most steps of one estimate. `tolerance`: the native engine ends an estimate whose loss, in
    units of the noise's variance, is within this much a measured cell of its minimum (None: by the model's size); the
    mixture one when 50 steps gain less (None: 0.01). `rounds`: the T of the algorithm (None: 16 d). `rows`: the number
    of synthetic rows (None: the estimated total). `engine`: who fits the model, `native`, `mbi` or `mixture`.
    `components`: of a mixture (None: 100). The release holds the workload's marginals and the rows.
    """
    domain, sizes = train.domain, train.domain.sizes
    cliques = cliques_of(domain, workload)
    estimate = estimator(engine, iterations=iterations, tolerance=tolerance, components=components)
    check_settings("aim", tolerance=tolerance, iterations=iterations, rows=rows, rounds=rounds, components=components)
    if not 0 < alpha < 1:
        raise UserError(f"aim: alpha must lie between 0 and 1, not {alpha}")
    costs, ledger = Costs.of("aim", budget, calibration), Ledger()
    rho = costs.total
    costs.open_filter(ledger)
    noise_rng, rows_rng = rng.spawn(2)

    T = 16 * len(sizes) if rounds is None else rounds
    sigma, epsilon = costs.sigma(alpha * rho, T), costs.epsilon((1 - alpha) * rho, T)  # Alg. 2, lines 4, 9
    check_model("aim", "a model of the one-way marginals alone", smallest_mb(engine, sizes, components), max_model_mb)
    check_answers("aim", sizes, cliques)
    candidates = [r for r in closure(cliques) if table_mb(sizes, r) <= max_model_mb]
    w = weights(candidates, cliques)  # line 8
    sensitivity = max(w.values()) * costs.l1
    singles = [r for r in candidates if len(r) == 1]
    rho_used = costs.of_measurements(sigma, len(singles))
    _check_start(len(singles), sigma, rho_used, rho)
    truth = {r: train.marginal(r) for r in candidates}

    def measure(r: Clique) -> Measurement:  # line 15; Alg. 3, line 5
        label = f"marginal {','.join(r)}"
        noisy = gaussian(noise_rng, ledger, truth[r], sensitivity=costs.l2, multiplier=sigma / costs.l2, label=label)
        return Measurement(r, noisy, sigma)

    measured = [measure(r) for r in singles]  # Alg. 3
    model = estimate(sizes, measured)
    answers = model.answer(candidates)
    trace: list[dict[str, Any]] = []
    last = False
    while not last:
        rho_left = rho - rho_used
        if rho_left <= 2 * (costs.of_measurements(sigma) + costs.of_selection(epsilon)):  # Alg. 4, lines 8 to 11
            epsilon, sigma = costs.epsilon((1 - alpha) * rho_left), costs.sigma(alpha * rho_left)
            last = True
        rho_used += costs.of_selection(epsilon) + costs.of_measurements(sigma)  # Alg. 2, line 12
        allowed = _allowed(sizes, [m.clique for m in measured], candidates, model, rho_used / rho * max_model_mb)
        scores = [w[r] * (_l1(truth[r] - answers[r]) - math.sqrt(2 / math.pi) * sigma * truth[r].size) for r in allowed]
        pick = exponential_mechanism(  # line 14
            noise_rng, ledger, scores, sensitivity=sensitivity, epsilon=epsilon, label="selection"
        )
        r = allowed[pick]
        measured.append(measure(r))
        model = estimate(sizes, measured, warm_start=model)  # line 16
        before, answers = answers[r], model.answer(candidates)
        trace.append(
            {
                "clique": list(r),
                "sigma": sigma,
                "epsilon": epsilon,
                "model_mb": model.size_mb,
                "iterations": model.iterations,
            }
        )
        if _l1(answers[r] - before) <= math.sqrt(2 / math.pi) * sigma * before.size:  # Alg. 4, lines 1 to 7
            epsilon, sigma = 2 * epsilon, sigma / 2

    synthetic = Table(domain, model.sample(rows or max(round(model.total), 1), rows_rng))  # Alg. 2, line 19
    diagnostics = {"rho": rho, "rounds": trace, "total": model.total, "model_mb": model.size_mb, "engine": engine}
    answers |= model.answer([r for r in cliques if r not in answers])
    marginals = {r: answers[r] for r in cliques}
    return Release(domain, budget, ledger, marginals=marginals, rows=synthetic, diagnostics=diagnostics)


def _allowed(
    sizes: dict[str, int], measured: list[Clique], candidates: Sequence[Clique], model: MarkovModel, limit: float
) -> list[Clique]:
    """C_t (Alg. 2, line 13): candidates that keep the model within the limit, or that it holds already."""
    cliques = [set(clique) for clique in model.cliques]
    held = {r for r in candidates if any(clique.issuperset(r) for clique in cliques)}
    others = [r for r in candidates if r not in held]
    fits = {r for r, mb in zip(others, candidate_mb(sizes, measured, others), strict=True) if mb <= limit}
    return [r for r in candidates if r in held or r in fits]


def _l1(difference: Floats) -> float:
    return float(np.abs(difference).sum())


def _check_start(singles: int, sigma: float, rho_used: float, rho: float) -> None:
    """Refuse, before any noise is drawn, a number of rounds that leaves nothing for them."""
    check_sigma("aim", sigma)
    if rho_used >= rho:
        raise UserError(f"aim: {singles} one-way marginals spend the whole budget; raise rounds above {singles}")
