"""MWEM+PGM: MWEM's rounds over whole marginals, with a graphical model (McKenna, Sheldon and Miklau 2019)."""

from __future__ import annotations

import numpy as np

from dpbench.data.domain import Clique
from dpbench.data.table import Table
from dpbench.errors import check_part
from dpbench.inference import Counts, Measurement, candidate_mb
from dpbench.mechanisms.fitting import (
    Costs,
    check_answers,
    check_counts,
    check_model,
    check_settings,
    check_sigma,
    engine_of,
    noisy_marginal,
    table_mb,
    within,
)
from dpbench.mechanisms.workload import Workload, cliques_of
from dpbench.privacy.budget import Budget
from dpbench.privacy.ledger import Ledger
from dpbench.privacy.noise import exponential_mechanism
from dpbench.releases import Distribution, Marginals, Release, SyntheticRows


def mwem_pgm(
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
    calibration: str = "tight",
    noise: str = "continuous",
) -> Release:
    """In each of T rounds measure the marginal of the workload that the model answers worst, and fit the model anew.

    **Source** McKenna, Sheldon and Miklau 2019, "Graphical-model based estimation and inference for differential
    privacy" (MWEM with Private-PGM), and the authors' `mwem+pgm.py` in private-pgm, with its defaults but for
    `max_model_mb`. The score of a marginal h, to which the model answers m, is ||h - m||_1 less its number of cells.
    **Privacy** Add/remove, or replace one. A marginal has l2 sensitivity 1, or sqrt 2; a score changes by at most the
    l1 sensitivity, which is 1, or 2. T selections and T measurements, all fixed beforehand: the measurements have the
    part alpha of what (eps, delta) allows. `paper`: of rho (zCDP, tight conversion); a measurement costs
    1/(2 multiplier^2), a selection eps^2/8. `tight`: of mu^2/2 (Gaussian DP), see `Costs`. n is not used: the total is
    estimated from the measurements.
    **Shapes** A marginal on r has the shape `domain.shape(r)`.
    **Departures** 1. Where neighbours replace one, the code takes n as the total of every model. Here the first model,
    uniform before anything is measured, has the total 1 under both relations, as the code's where a record is added or
    removed: the first selection sees little but the marginals' sizes. 2. The noise is Gaussian; the code also has the
    paper's Laplace. 3. The code releases rows alone.

    `workload`: see `cliques_of`; its cliques are the candidates. `max_model_mb`: the limit on the junction tree, of
    which round t may take t/T (25 MB in the code). `rounds`: T (None: the number of attributes). The other parameters
    are those of `aim`, and so is what the release holds.
    """
    domain, sizes = train.domain, train.domain.sizes
    cliques = cliques_of(domain, workload)
    check_settings("mwem_pgm", tolerance=tolerance, iterations=iterations, rows=rows, rounds=rounds)
    fitting = engine_of(engine, iterations=iterations, tolerance=tolerance)
    check_part("mwem_pgm: alpha", alpha)
    costs, ledger = Costs.of("mwem_pgm", budget, calibration), Ledger()
    T = len(sizes) if rounds is None else rounds
    sigma, epsilon = costs.sigma(alpha * costs.total, T), costs.epsilon((1 - alpha) * costs.total, T)
    check_sigma("mwem_pgm", sigma)
    least = float(candidate_mb(sizes, [], cliques).min())
    check_model("mwem_pgm", f"the smallest model of a marginal, in the first of {T} rounds,", least, max_model_mb / T)
    check_answers("mwem_pgm", sizes, cliques if answers else [])
    candidates = [r for r in cliques if table_mb(sizes, r) <= max_model_mb]
    check_counts("mwem_pgm", sizes, candidates, len(train))
    noise_rng, rows_rng = rng.spawn(2)

    def measure(r: Clique) -> Measurement:
        return noisy_marginal(noise_rng, ledger, r, train.marginal(r), sigma, l2=costs.l2, noise=noise)

    counts = Counts(sizes, train.codes, candidates)
    measured: list[Measurement] = []
    model = fitting.estimate(sizes, measured)
    trace: list[dict[str, object]] = []
    for t in range(1, T + 1):
        allowed = within(sizes, [m.clique for m in measured], candidates, max_model_mb * t / T)
        scores = [distance - counts.size(r) for r, distance in model.distances(counts, allowed).items()]
        pick = exponential_mechanism(
            noise_rng, ledger, scores, sensitivity=costs.l1, epsilon=epsilon, label="selection", noise=noise
        )
        measured.append(measure(allowed[pick]))
        model = fitting.estimate(sizes, measured, warm_start=model)
        size = {"model_mb": model.size_mb, "iterations": model.iterations}
        trace.append({"clique": list(allowed[pick]), "candidates": len(allowed)} | size)

    distribution = Distribution(model)
    choice = {"rho": costs.total, "sigma": sigma, "epsilon": epsilon, "rounds": trace}
    diagnostics = {**choice, "total": model.total, "model_mb": model.size_mb, "engine": engine}
    parts = (
        Marginals(model.answer(cliques) if answers else {}, tuple((m.clique, m.sigma) for m in measured)),
        SyntheticRows(distribution.sample(domain, rows or max(round(model.total), 1), rows_rng)),
        distribution,
    )
    return Release(domain, budget, ledger, parts, diagnostics)
