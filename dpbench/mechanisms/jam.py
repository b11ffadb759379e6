"""JAM-PGM: marginals of the private or of public rows, chosen together (Fuentes et al. 2024)."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from dpbench.data.domain import Clique
from dpbench.data.table import Table
from dpbench.errors import UserError, check_part
from dpbench.files import Json
from dpbench.inference import Counts, Measurement, candidate_mb
from dpbench.mechanisms.fitting import (
    Costs,
    check_counts,
    check_model,
    check_settings,
    check_sigma,
    engine_of,
    noisy_marginal,
    table_mb,
    within,
)
from dpbench.mechanisms.query_release import release_of_model
from dpbench.mechanisms.workload import Workload, cliques_of, closure
from dpbench.privacy.budget import Budget
from dpbench.privacy.ledger import Ledger
from dpbench.privacy.noise import exponential_mechanism
from dpbench.releases import Release


def jam(
    train: Table,
    budget: Budget,
    rng: np.random.Generator,
    *,
    public: Table | None,
    workload: Workload = 3,
    max_model_mb: float = 80,
    iterations: int = 1000,
    tolerance: float | None = None,
    rounds: int | None = None,
    rows: int | None = None,
    alpha: float = 0.8,
    engine: str = "native",
    calibration: str = "tight",
    noise: str = "continuous",
) -> Release:
    """In each of T rounds choose a marginal, and whether noise or the public rows answer it; fit a model to all.

    A marginal r of the private rows, of which the model answers m, scores ||h - m||_1 - sqrt(2/pi) sigma n_r, what
    noise on its n_r cells is expected to gain; of the public rows, with p their counts times n / n_public, ||h - m||_1
    - ||h - p||_1. In the first round there is no m, and the first term is left out.

    **Source** Fuentes, Mullins, McKenna, Miklau and Sheldon 2024, "Joint Selection: Adaptively Incorporating Public
    Information for Private Synthetic Data", AISTATS, arXiv 2403.07797. Read: the abstract, and the authors' `jam.py`
    (Miguel-Fuentes/JAM_AiStats), whose defaults these are.
    **Privacy** Replace one: n is public. ||h - m||_1 and ||h - p||_1 change by at most 2, given m; so a score changes
    by at most 4, as the authors' code has it (the version in private-pgm has 2, half of it). A noisy marginal has l2
    sensitivity sqrt 2. A round may spend an equal part of what is left, 1 - alpha of that on the selection, and the
    rest only if noise is chosen: costs depend on what was released before, under a filter (`Ledger.open_filter`),
    `paper` and `tight` as in `aim`. The public rows are not protected.
    **Shapes** A marginal on r has the shape `domain.shape(r)`. The public rows may lack attributes: marginals with them
    are of the private rows.
    **Departures** 1. A measurement weighs 1/sigma^2, with the sigma of its round, and a public one as a private one of
    that round; in the code all weigh alike. 2. The limit of a round on the model, the part of the budget that is spent,
    never falls, and is at least max_model_mb / T. 3. A marginal that does not fit in one round may in a later one.
    4. A noisy marginal is shifted to sum to n; in the code the model has this total.

    `rounds`: T (None: 30). The other parameters are those of `aim`. The release holds the distribution, its marginals
    of pairs, and rows drawn from it.
    """
    domain, sizes, n = train.domain, train.domain.sizes, len(train)
    if public is None or not len(public):
        raise UserError("jam needs public rows: set dataset.public_data, or sample.public_rows such as 1000")
    cliques = cliques_of(domain, workload)
    check_settings("jam", tolerance=tolerance, iterations=iterations, rows=rows, rounds=rounds)
    check_part("jam: alpha", alpha)
    fitting = engine_of(engine, iterations=iterations, tolerance=tolerance)
    costs, ledger = Costs.of("jam", budget, calibration), Ledger()
    T = 30 if rounds is None else rounds
    rho, rho_used, limit = costs.total, 0.0, max_model_mb / T
    costs.open_filter(ledger)
    check_sigma("jam", costs.sigma(alpha * rho, T))
    candidates = [r for r in closure(cliques) if table_mb(sizes, r) <= max_model_mb]
    least = float(candidate_mb(sizes, [], candidates).min()) if candidates else math.inf
    check_model("jam", f"the smallest model of a marginal, in the first of {T} rounds,", least, limit)
    check_counts("jam", sizes, candidates, n)
    noise_rng, rows_rng = rng.spawn(2)

    scale = n / len(public)
    known = [r for r in candidates if all(name in public.domain.sizes for name in r)]
    public_error = {r: float(np.abs(train.marginal(r) - scale * public.marginal(r)).sum()) for r in known}
    counts = Counts(sizes, train.codes, candidates)
    model, measured = fitting.estimate(sizes, []), list[Measurement]()
    trace: list[Json] = []
    for t in range(T):
        share = (rho - rho_used) / (T - t)
        epsilon, sigma = costs.epsilon((1 - alpha) * share), costs.sigma(alpha * share)
        limit = max(limit, rho_used / rho * max_model_mb)
        allowed = within(sizes, [m.clique for m in measured], candidates, limit)
        error = model.distances(counts, allowed) if measured else dict.fromkeys(allowed, 0.0)
        choices: list[tuple[Clique, bool]] = [(r, False) for r in allowed]
        choices += [(r, True) for r in allowed if r in public_error]
        scores = [
            error[r] - (public_error[r] if is_public else math.sqrt(2 / math.pi) * sigma * counts.size(r))
            for r, is_public in choices
        ]
        pick = exponential_mechanism(
            noise_rng, ledger, scores, sensitivity=2 * costs.l1, epsilon=epsilon, label="selection", noise=noise
        )
        rho_used += costs.of_selection(epsilon)
        r, is_public = choices[pick]
        if is_public:
            measured.append(Measurement(r, scale * public.marginal(r), sigma))
        else:
            noisy = noisy_marginal(noise_rng, ledger, r, train.marginal(r), sigma, l2=costs.l2, noise=noise)
            measured.append(replace(noisy, values=noisy.values + (n - noisy.values.sum()) / noisy.values.size))
            rho_used += costs.of_measurements(sigma)
        model = (fitting.estimate if t == T - 1 else fitting.update)(sizes, measured, model)
        size = {"model_mb": model.size_mb, "iterations": model.iterations}
        trace.append({"clique": list(r), "public": is_public, "sigma": sigma, "epsilon": epsilon} | size)

    diagnostics = {"rho": rho, "rounds": trace, "total": model.total, "model_mb": model.size_mb, "engine": engine}
    unpaid = (f"marginals of {len(public)} public rows, which no budget protects",)
    return release_of_model(domain, budget, ledger, model, rows_rng, rows, diagnostics, unpaid)
