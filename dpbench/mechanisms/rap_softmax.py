"""RAP-softmax, the relaxed projection of RAP on mixtures of product distributions (Liu, Vietri and Wu 2021)."""

from __future__ import annotations

import numpy as np

from dpbench.data.domain import Floats
from dpbench.data.table import Table
from dpbench.errors import check_positive
from dpbench.inference.mixture import adam
from dpbench.inference.product_queries import ProductQueries, softmax, softmax_slope
from dpbench.inference.products import Distributions
from dpbench.inference.query_workload import QueryWorkload
from dpbench.mechanisms.adaptive import Asked, run_equal_rounds
from dpbench.mechanisms.fitting import check_settings
from dpbench.mechanisms.query_release import mixture_of, release_of_model
from dpbench.mechanisms.rap import Rap, squared_loss
from dpbench.mechanisms.workload import Workload, cliques_of
from dpbench.privacy.budget import Budget
from dpbench.releases import Release


def rap_softmax(
    train: Table,
    budget: Budget,
    rng: np.random.Generator,
    *,
    workload: Workload = 3,
    rounds: int = 50,
    per_round: int = 1,
    components: int = 1000,
    rate: float = 0.1,
    iterations: int = 25,
    patience: int | None = None,
    alpha: float = 0.5,
    rows: int | None = None,
    calibration: str = "tight",
) -> Release:
    """Keep a mixture of product distributions, and fit its logits to all measurements by gradient steps.

    **Source** Liu, Vietri and Wu 2021, end of Appendix B.2 and Table 3 (Aydore et al. 2021). The last D_t is released.
    **Privacy** Replace one record, n public; rho-zCDP in all, see `equal_rounds`. `paper`: the rho of Theorem 1's
    conversion, as in the authors' code of this method; `tight`: that of the tight one, as in their other methods.
    **Shapes** Logits (W, n') of all levels in each of n' components, float32.
    **Departures** 1. A round makes so many Adam steps; the authors' code makes up to 5,000 and ends them at a plateau
    (`iterations=5000`, `patience=5`), after 177 to 2,717 for the same T and K. 2. Measurements are clipped to [0, 1],
    as in the authors' code. Both are post-processing.

    `workload`: see `cliques_of`. `rounds`, `per_round`: T and K; no query is measured twice. `components`: n'. `rate`:
    Adam's. `iterations`: its steps in a round, fewer if more than `patience` in a row have not lowered the loss;
    experiment=queries_options_rap has others, on other data than the paper's. `rows`: the number of synthetic rows
    (None: n).
    """
    queries = QueryWorkload(train.domain.sizes, cliques_of(train.domain, workload))
    check_settings(
        "rap_softmax", tolerance=None, components=components, iterations=iterations, patience=patience, rows=rows
    )
    check_positive("rap_softmax", rate=rate)
    noise_rng, start_rng, rows_rng = rng.spawn(3)
    family = RapSoftmax(queries, components, rate, iterations, start_rng, patience)
    logits, ledger, rho = run_equal_rounds(
        "rap_softmax",
        train,
        budget,
        noise_rng,
        queries,
        family,
        rounds=rounds,
        per_round=per_round,
        alpha=alpha,
        calibration=calibration,
        repeats=False,
    )
    model = mixture_of(queries.sizes, logits, len(train), rounds)
    return release_of_model(train.domain, budget, ledger, model, rows_rng, rows, {"rho": rho})


class RapSoftmax(Rap):
    """{softmax(M): M in R^(n' x d')}, and the squared error of all measurements; logits start as the entries of RAP."""

    def answers(self, D: Distributions) -> Floats:
        """The mean over the components."""
        return self.queries.of_products(softmax(D, self._sizes).T)

    def update(self, D: Distributions, asked: Asked) -> Distributions:
        """The best of Adam's steps from D."""
        measured = ProductQueries(self.queries.columns(asked.queries), len(D))

        def loss(logits: Distributions) -> tuple[float, Distributions]:
            distributions = softmax(logits, self._sizes)
            value, slope = squared_loss(measured, distributions, asked)
            return value, softmax_slope(distributions, slope, self._sizes)

        return adam(loss, D, self.iterations, patience=self.patience, rate=self.rate)[0]

    @property
    def _sizes(self) -> list[int]:
        return list(self.queries.sizes.values())
