"""AIM with residuals in place of a graphical model (Fuentes et al. 2026; Mullins et al. 2024; McKenna et al. 2022)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from dpbench.data.domain import Clique, Domain, Floats
from dpbench.data.table import Countable
from dpbench.errors import UserError, check_part
from dpbench.inference import Measurement
from dpbench.inference.residuals import RunningAnswers
from dpbench.mechanisms.fitting import Costs, check_answers, check_settings, check_start, noisy_marginal
from dpbench.mechanisms.reconstruction import Reconstruction
from dpbench.mechanisms.workload import Workload, closure, distinct_cliques, weights
from dpbench.privacy.budget import Budget
from dpbench.privacy.ledger import Ledger
from dpbench.privacy.noise import exponential_mechanism
from dpbench.releases import Marginals, Part, Release

WAYS = ("simplex", "mixture")


def aim_grem(
    train: Countable,
    budget: Budget,
    rng: np.random.Generator,
    *,
    workload: Workload = 2,
    rounds: int | None = None,
    alpha: float = 0.9,
    reconstruction: str = "simplex",
    max_model_mb: float = 80,
    iterations: int = 1000,
    tolerance: float | None = None,
    components: int | None = None,
    rows: int | None = None,
    calibration: str = "tight",
    noise: str = "continuous",
) -> Release:
    """Measure the marginals that are answered worst, one per round, and answer from the residuals of all measurements.

    **Source** DD-SSP, Algorithms 2, 3 and 4 (AIM), whose lines are marked as in `aim`, with GReM-MLE (Mullins et al.
    2024, section 4) in place of Private-PGM, as Fuentes et al. 2026 propose (AIM+GReM).
    **Privacy** That of `aim`.
    **Shapes** A marginal on r has the shape `domain.shape(r)`.
    **Departures** 1. What is measured are marginals, as in AIM, and the budget of a round is AIM's; Fuentes et al.
    measure residuals, with budgets that are optimised. 2. What was not measured is answered by a product in place of
    GReM's sum, whose cells are often negative (`RunningAnswers`). 3. The last round spends what is left and ends the
    loop there, as in `aim`. No model limits the candidates.

    `workload`: see `cliques_of`. `rounds`: the T of the algorithm (None: 16 d). `reconstruction`: `simplex`, the
    answers of the loop, each non-negative with the estimated total, which do not agree on what they share; or
    `mixture`, a mixture of products fitted once, to all measurements, at the end. The parameters after it: see
    `Reconstruction`. `noise`: as in `aim`. The release holds the workload's marginals; of a mixture, rows and the
    distribution too.
    """
    domain, sizes = train.domain, train.domain.sizes
    cliques = distinct_cliques("aim_grem", domain, workload)
    if reconstruction not in WAYS:
        raise UserError(f"aim_grem: reconstruction must be {' or '.join(WAYS)}, not {reconstruction!r}")
    how = Reconstruction(
        "aim_grem", reconstruction, sizes, cliques, max_model_mb, iterations, tolerance, components, rows
    )
    check_settings("aim_grem", tolerance=None, rounds=rounds)
    check_part("aim_grem: alpha", alpha)
    candidates = closure(cliques)
    check_answers("aim_grem", sizes, candidates)
    costs, ledger = Costs.of("aim_grem", budget, calibration), Ledger()
    rho = costs.total
    costs.open_filter(ledger)
    noise_rng, rows_rng = rng.spawn(2)

    T = 16 * len(sizes) if rounds is None else rounds
    sigma, epsilon = costs.sigma(alpha * rho, T), costs.epsilon((1 - alpha) * rho, T)  # Alg. 2, lines 4, 9
    w = weights(candidates, cliques)  # line 8
    sensitivity = max(w.values()) * costs.l1
    singles = [r for r in candidates if len(r) == 1]
    rho_used = costs.of_measurements(sigma, len(singles))
    check_start("aim_grem", len(singles), sigma, rho_used, rho)
    true = train.marginals(candidates)
    state = _State(candidates, RunningAnswers(sizes))

    def measure(r: Clique) -> Measurement:  # line 15; Alg. 3, line 5
        return noisy_marginal(noise_rng, ledger, r, true[r], sigma, l2=costs.l2, noise=noise)

    state.take([measure(r) for r in singles])  # Alg. 3
    trace: list[dict[str, object]] = []
    last = False
    while not last:
        rho_left = rho - rho_used
        if rho_left <= 2 * (costs.of_measurements(sigma) + costs.of_selection(epsilon)):  # Alg. 4, lines 8 to 11
            epsilon, sigma = costs.epsilon((1 - alpha) * rho_left), costs.sigma(alpha * rho_left)
            last = True
        rho_used += costs.of_selection(epsilon) + costs.of_measurements(sigma)  # Alg. 2, line 12
        scores = [  # line 14
            w[r] * (np.abs(true[r] - state.answer(r)).sum() - math.sqrt(2 / math.pi) * sigma * true[r].size)
            for r in candidates
        ]
        pick = exponential_mechanism(
            noise_rng, ledger, scores, sensitivity=sensitivity, epsilon=epsilon, label="selection", noise=noise
        )
        r = candidates[pick]
        before = state.answer(r)
        state.take([measure(r)])  # line 16
        trace.append({"clique": list(r), "sigma": sigma, "epsilon": epsilon})
        change = np.abs(state.answer(r) - before).sum()
        if change <= math.sqrt(2 / math.pi) * sigma * before.size:  # Alg. 4, lines 1 to 7
            epsilon, sigma = 2 * epsilon, sigma / 2

    tables, parts, notes = state.released(how, domain, rows_rng)
    noise_sds = tuple((m.clique, m.sigma) for m in state.measured)
    diagnostics = {**notes, "rho": rho, "rounds": trace}
    return Release(domain, budget, ledger, (Marginals(tables, noise_sds), *parts), diagnostics)


@dataclass
class _State:
    """What was measured, and the answers to all candidates, as parts of the total, smaller ones first."""

    candidates: Sequence[Clique]
    running: RunningAnswers
    measured: list[Measurement] = field(default_factory=list)
    distributions: dict[Clique, Floats] = field(default_factory=dict)

    def take(self, measurements: Sequence[Measurement]) -> None:
        """Take in more, and answer anew the candidates that share an attribute with them; others have a new total."""
        for one in measurements:
            self.measured.append(one)
            self.running.add(one)
        self._refresh({name for one in measurements for name in one.clique})

    def _refresh(self, changed: set[str]) -> None:
        for r in self.candidates:
            if changed & set(r):
                self.distributions[r] = self.running.distribution(r, self.distributions)

    def answer(self, clique: Clique) -> Floats:
        """The answer to a candidate."""
        return self.distributions[clique] * self.running.total

    def released(
        self, how: Reconstruction, domain: Domain, rng: np.random.Generator
    ) -> tuple[dict[Clique, Floats], tuple[Part, ...], dict[str, object]]:
        """The tables of the workload, what a model gives, and diagnostics."""
        if how.how == "simplex":
            self._refresh(set(domain.names))
            notes = {"reconstruction": how.how, "total": self.running.total, "consistent": False}
            return {r: self.answer(r) for r in how.cliques}, (), notes
        return how.parts(domain, self.measured, None, rng)
