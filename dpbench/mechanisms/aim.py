"""AIM, the adaptive and iterative mechanism for marginals (DD-SSP, Algorithms 2 to 4; McKenna et al. 2022)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations

import numpy as np

from dpbench.data.domain import Clique, Floats
from dpbench.data.table import Table
from dpbench.errors import check_part
from dpbench.files import Json
from dpbench.inference import Counts, Measurement, Model, candidate_mb
from dpbench.mechanisms.fitting import (
    Costs,
    check_answers,
    check_counts,
    check_model,
    check_settings,
    check_start,
    engine_of,
    noisy_marginal,
    table_mb,
)
from dpbench.mechanisms.selection_bound import unselected_distance
from dpbench.mechanisms.workload import Workload, cliques_of, closure, weights
from dpbench.privacy.budget import Budget
from dpbench.privacy.ledger import Ledger
from dpbench.privacy.noise import exponential_mechanism
from dpbench.releases import Distribution, Marginals, Release, SyntheticRows


def aim(
    train: Table,
    budget: Budget,
    rng: np.random.Generator,
    *,
    workload: Workload = 2,
    answers: bool = True,
    max_model_mb: float = 80,
    iterations: int = 1000,
    tolerance: float | None = None,
    rounds: int | None = None,
    rows: int | None = None,
    alpha: float = 0.9,
    engine: str = "native",
    components: int | None = None,
    calibration: str = "tight",
    noise: str = "continuous",
) -> Release:
    """Measure the marginals that the current model answers worst, one per round, and fit a graphical model to them.

    **Source** DD-SSP, Algorithms 2, 3 and 4 (McKenna, Mullins, Sheldon and Miklau 2022).
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
    the workload asks for it, the model answers it once, at the end. 5. A mixture (`engine: mixture`; DD-SSP, Appendix
    H, Figure 6) has no junction tree: every candidate is allowed in every round. 6. The rounds update the model
    roughly, to select by; the last one estimates it (`Engine.update`, `Engine.estimate`). This only processes what was
    measured already; `benchmarks.aim_quality --compare` measures what it costs and saves.

    `workload`: see `cliques_of`. `answers`: whether the release holds its marginals, which at degree 4 are larger than
    all else (its distribution gives them, one by one). `max_model_mb`: the limit on the junction tree.
    `iterations`: the most steps of one estimate. `tolerance`: the native engine ends an estimate whose loss, in
    units of the noise's variance, is within this much a measured cell of its minimum (None: by the model's size, an
    update's 0.2); the mixture one when 50 steps gain less (None: 0.01, an update's 0.2). `rounds`: the T of the
    algorithm (None: 16 d). `rows`: the number of synthetic rows (None: the estimated total). `engine`: who fits the
    model, `native`, `mbi` or `mixture`.
    `components`: of a mixture (None: 100). `noise`: `continuous`, or `discrete`: counts get discrete noise, and
    candidates are drawn exactly (`noise.exponential_mechanism`). The release holds the marginals, the rows and the
    distribution that they were sampled from.
    """
    domain, sizes = train.domain, train.domain.sizes
    cliques = cliques_of(domain, workload)
    check_settings("aim", tolerance=tolerance, iterations=iterations, rows=rows, rounds=rounds, components=components)
    fitting = engine_of(engine, iterations=iterations, tolerance=tolerance, components=components)
    check_part("aim: alpha", alpha)
    costs, ledger = Costs.of("aim", budget, calibration), Ledger()
    rho = costs.total
    costs.open_filter(ledger)
    noise_rng, rows_rng = rng.spawn(2)

    T = 16 * len(sizes) if rounds is None else rounds
    sigma, epsilon = costs.sigma(alpha * rho, T), costs.epsilon((1 - alpha) * rho, T)  # Alg. 2, lines 4, 9
    check_model("aim", "a model of the one-way marginals alone", fitting.smallest_mb(sizes), max_model_mb)
    check_answers("aim", sizes, cliques if answers else [])
    candidates = [r for r in closure(cliques) if table_mb(sizes, r) <= max_model_mb]
    check_counts("aim", sizes, candidates, len(train))
    w = weights(candidates, cliques)  # line 8
    sensitivity = max(w.values()) * costs.l1
    singles = [r for r in candidates if len(r) == 1]
    rho_used = costs.of_measurements(sigma, len(singles))
    check_start("aim", len(singles), sigma, rho_used, rho)

    def measure(r: Clique) -> Measurement:  # line 15; Alg. 3, line 5
        return noisy_marginal(noise_rng, ledger, r, train.marginal(r), sigma, l2=costs.l2, noise=noise)

    measured = [measure(r) for r in singles]  # Alg. 3
    model = fitting.estimate(sizes, measured)
    counts = Counts(sizes, train.codes, candidates)
    trace: list[Json] = []
    last = False
    while not last:
        rho_left = rho - rho_used
        if rho_left <= 2 * (costs.of_measurements(sigma) + costs.of_selection(epsilon)):  # Alg. 4, lines 8 to 11
            epsilon, sigma = costs.epsilon((1 - alpha) * rho_left), costs.sigma(alpha * rho_left)
            last = True
        rho_used += costs.of_selection(epsilon) + costs.of_measurements(sigma)  # Alg. 2, line 12
        allowed = _allowed(sizes, [m.clique for m in measured], candidates, model, rho_used / rho * max_model_mb)
        scores = [  # line 14
            w[r] * (distance - math.sqrt(2 / math.pi) * sigma * counts.size(r))
            for r, distance in model.distances(counts, allowed).items()
        ]
        pick = exponential_mechanism(
            noise_rng, ledger, scores, sensitivity=sensitivity, epsilon=epsilon, label="selection", noise=noise
        )
        r = allowed[pick]
        before = model.answer([r])[r]
        measured.append(measure(r))
        model = (fitting.estimate if last else fitting.update)(sizes, measured, model)  # line 16
        trace.append(
            {"clique": list(r), "sigma": sigma, "epsilon": epsilon}
            | {"model_mb": model.size_mb, "iterations": model.iterations}
        )
        change = np.abs(model.answer([r])[r] - before).sum()
        if change <= math.sqrt(2 / math.pi) * sigma * before.size:  # Alg. 4, lines 1 to 7
            epsilon, sigma = 2 * epsilon, sigma / 2

    distribution = Distribution(model)
    diagnostics = {
        **{"rho": rho, "rounds": trace, "total": model.total, "model_mb": model.size_mb, "engine": engine},
        "marginals": len(allowed),  # in the last round, as what follows
        "promised_distance": unselected_distance(
            [(w[q], counts.size(q)) for q in allowed],
            (w[r], before, measured[-1].values),
            sigma=trace[-1]["sigma"],
            epsilon=trace[-1]["epsilon"],
            sensitivity=sensitivity,
        ),
    }
    parts = (
        Marginals(_tables(model, cliques, candidates) if answers else {}, tuple((m.clique, m.sigma) for m in measured)),
        SyntheticRows(distribution.sample(domain, rows or max(round(model.total), 1), rows_rng)),  # Alg. 2, line 19
        distribution,
    )
    return Release(domain, budget, ledger, parts, diagnostics)


def _allowed(
    sizes: dict[str, int], measured: list[Clique], candidates: Sequence[Clique], model: Model, limit: float
) -> list[Clique]:
    """C_t (Alg. 2, line 13): candidates that keep the model within the limit, or that it holds already."""
    sides = range(1, max(map(len, candidates)) + 1)
    held = {r for clique in model.cliques for side in sides for r in combinations(clique, side)}
    others = [r for r in candidates if r not in held]
    fits = {r for r, mb in zip(others, candidate_mb(sizes, measured, others), strict=True) if mb <= limit}
    return [r for r in candidates if r in held or r in fits]


def _tables(model: Model, cliques: Sequence[Clique], candidates: Sequence[Clique]) -> dict[Clique, Floats]:
    """The workload's marginals; those over the limit on a candidate last."""
    wanted = set(cliques)  # and the singles, from which separators are taken
    tables = model.answer([r for r in candidates if r in wanted or len(r) == 1])
    tables |= model.answer([r for r in cliques if r not in tables])
    return {r: tables[r] for r in cliques}
