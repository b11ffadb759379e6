"""Confidence intervals for DD-SSP by the parametric bootstrap (Ferrando, Wang and Sheldon 2022)."""

from __future__ import annotations

from dataclasses import replace
from statistics import NormalDist

import numpy as np

from dpbench.data.domain import Floats
from dpbench.data.encode import Design, pairs
from dpbench.data.table import Table
from dpbench.errors import NoEstimateError, UserError, check_known, check_part
from dpbench.inference import JunctionTree, Measurement, Model
from dpbench.mechanisms.fitting import check_settings
from dpbench.models.fit import Fit
from dpbench.models.linear import linear_marginals, solve
from dpbench.privacy.events import Gaussian
from dpbench.privacy.ledger import Ledger
from dpbench.privacy.noise import gaussian
from dpbench.releases import Marginals, Release, SyntheticRows

METHODS = ("pivotal", "percentile", "normal")
UNMEASURED = ("refuse", "ignore")  # pairs of attributes in no measured marginal
ENGINES = ("native", "mbi")  # they minimise the same loss over the same models; a mixture is a different estimate


def linear_marginals_bootstrap(
    release: Release,
    *,
    design: Design,
    rng: np.random.Generator,
    replicates: int = 99,
    level: float = 0.9,
    method: str = "pivotal",
    tolerance: float = 1e-4,
    iterations: int = 1000,
    unmeasured: str = "refuse",
) -> Fit:
    """DD-SSP with intervals: the release is simulated repeatedly with its own synthetic rows as the population.

    A replicate draws n' of the synthetic rows with replacement, n' being the released total; measures the marginals
    that the release measured, with the same noise; fits the graphical model to them; and regresses. The replicates vary
    around theta', the fit of the same model to the synthetic rows without noise, as theta varies around the
    population's.

    **Source** Ferrando, Wang and Sheldon 2022, "Parametric bootstrap for differentially private confidence intervals";
    the three intervals: Wasserman 2004, "All of statistics", section 8.3.
    **Privacy** Post-processing: only the release and its ledger's noise scales are used. The noise of the replicates is
    added to synthetic rows, at no privacy cost.
    **Shapes** `intervals` (p, 2): lower and upper ends in the order of `Design.columns`.
    **Departures** 1. The selection of the marginals is not repeated, so its randomness is not in the intervals. 2. The
    model is treated as true, so a dependence between attributes in no measured marginal is treated as absent, and the
    resulting bias of theta is not in the intervals. So there are none where a pair was not measured, unless
    `unmeasured` is `ignore`, and then their level does not hold; `notes` give the number of pairs measured. 3. Levels
    that MST merged are measured separately: there the noise is larger than the release's, and the equal shares that MST
    gave them are treated as true.

    `method`: `pivotal`, theta minus the quantiles of theta_b - theta', which corrects the bias of the replicates;
    `percentile`, the quantiles of theta_b; `normal`, theta -+ z times their standard deviation. `tolerance`: that
    of the estimates, a twentieth of the engine's for small models. At the engine's, theta is still about a fifth of a
    standard deviation towards independent attributes (the chain of tests/models/test_bootstrap.py, eps = 1): give the
    mechanism the same tolerance. `iterations`: the most steps of one estimate.

    Raises `UserError` for a setting out of range, or a release that is not of noisy marginals, a model and its rows;
    `NoEstimateError` where pairs were not measured and `unmeasured` is `refuse`.
    """
    _check_settings(replicates, level, method, unmeasured)
    check_settings("linear_marginals_bootstrap", tolerance=tolerance, iterations=iterations)
    _check_release(release)
    measured, synthetic = release[Marginals].noise, release[SyntheticRows].table
    fit, sizes, wanted = linear_marginals(release, design=design), release.domain.sizes, pairs(release.domain)
    seen = [pair for pair in wanted if any(set(pair) <= set(r) for r, _ in measured)]
    if unmeasured == "refuse" and len(seen) < len(wanted):
        raise NoEstimateError(
            f"no intervals: {len(wanted) - len(seen)} of {len(wanted)} pairs of attributes were not measured, and the "
            "resulting bias is unknown (unmeasured=ignore gives intervals that ignore it)"
        )
    n = max(round(float(next(iter(release[Marginals].tables.values())).sum())), 1)

    def regressed(model: Model) -> Floats:
        theta: Floats = solve(*design.moments(model.answer(wanted)), scaled=design.scaled).coefficients
        return theta

    def measure(rows: Table) -> list[Measurement]:
        ledger = Ledger()  # of synthetic rows: not a privacy cost
        counts = rows.marginals([r for r, _ in measured])
        return [
            Measurement(r, gaussian(rng, ledger, counts[r], sensitivity=1.0, multiplier=s, label="replicate"), s)
            for r, s in measured
        ]

    truth = [Measurement(r, synthetic.marginal(r), s) for r, s in measured]
    engine = JunctionTree(iterations, tolerance)
    population = engine.estimate(sizes, truth)
    draws = (synthetic.take(rng.integers(len(synthetic), size=n)) for _ in range(replicates))
    models = (engine.estimate(sizes, measure(rows), warm_start=population) for rows in draws)
    theta_b = np.stack([regressed(model) for model in models])

    intervals = _intervals(fit.coefficients, regressed(population), theta_b, level, method)
    notes = {"level": level, "method": method, "replicates": replicates, "measured_pairs": len(seen)}
    return replace(fit, intervals=intervals, notes={**fit.notes, **notes, "pairs": len(wanted)})


def _intervals(theta: Floats, centre: Floats, theta_b: Floats, level: float, method: str) -> Floats:
    """(p, 2), from theta (p,), the centre of the replicates (p,), and the replicates (replicates, p)."""
    tails = [(1 - level) / 2, (1 + level) / 2]
    low, high = np.quantile(theta_b, tails, axis=0, method="weibull")  # the (B + 1) q-th smallest of B
    if method == "pivotal":
        low, high = theta - (high - centre), theta - (low - centre)
    if method == "normal":
        half = NormalDist().inv_cdf(tails[1]) * theta_b.std(axis=0, ddof=1)
        low, high = theta - half, theta + half
    return np.stack([low, high], axis=1)


def _check_release(release: Release) -> None:
    marginals, engine = release.get(Marginals), release.diagnostics.get("engine")
    if marginals is None or not marginals.noise or release.get(SyntheticRows) is None or engine not in ENGINES:
        raise UserError(
            "linear_marginals_bootstrap simulates a release of noisy marginals and of rows by engine "
            f"{' or '.join(ENGINES)}, such as aim's or mst's; this one offers {', '.join(release.offers)} by engine "
            f"{engine}, and {'some' if marginals and marginals.noise else 'no'} marginal was measured with noise"
        )
    drawn = [one.sensitivity * one.multiplier for one in release.ledger.events if isinstance(one, Gaussian)]
    scales = [scale for _, scale in marginals.noise]
    if len(drawn) != len(scales) or not np.allclose(drawn, scales, rtol=1e-9, atol=0.0):
        raise UserError(
            f"linear_marginals_bootstrap: the {len(scales)} measured marginals of the release do not have the noise of "
            f"its ledger, which holds {len(drawn)} Gaussian events"
        )


def _check_settings(replicates: int, level: float, method: str, unmeasured: str) -> None:
    check_known("method", method, METHODS)
    check_known("setting of unmeasured", unmeasured, UNMEASURED)
    check_part("linear_marginals_bootstrap: level", level)
    if (replicates + 1) * (1 - level) / 2 < 1 - 1e-9:  # else a quantile lies beyond all replicates
        raise UserError(
            f"linear_marginals_bootstrap: level {level} needs at least {np.ceil(2 / (1 - level) - 1 - 1e-9):.0f} "
            f"replicates, not {replicates}"
        )
