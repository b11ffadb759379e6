"""RAP, relaxed adaptive projection (Aydore, Brown, Kearns, Kenthapadi, Melis, Roth and Siva 2021)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpbench.data.domain import Floats
from dpbench.data.table import Table
from dpbench.errors import check_positive
from dpbench.inference.mixture import adam
from dpbench.inference.product_queries import ProductQueries
from dpbench.inference.products import Distributions
from dpbench.inference.query_workload import QueryWorkload
from dpbench.mechanisms.adaptive import Asked, run_equal_rounds
from dpbench.mechanisms.fitting import check_settings
from dpbench.mechanisms.query_release import mixture_of, release_of_model
from dpbench.mechanisms.workload import Workload, cliques_of
from dpbench.privacy.budget import Budget
from dpbench.releases import Marginals, Release, SyntheticRows

LEAST = 1e-9  # of a probability that rows are drawn by


def rap(
    train: Table,
    budget: Budget,
    rng: np.random.Generator,
    *,
    workload: Workload = 3,
    rounds: int = 50,
    per_round: int = 1,
    components: int = 1000,
    rate: float = 0.1,
    iterations: int = 50,
    patience: int | None = None,
    alpha: float = 0.5,
    rows: int | None = None,
    calibration: str = "tight",
) -> Release:
    """Keep rows whose one-hot entries are relaxed to [-1, 1], and fit them to all measurements by gradient steps.

    **Source** Liu, Vietri and Wu 2021, Appendices B.2 and F.3 and Table 3 (Aydore et al. 2021). The answers of the last
    D_t to the workload are released; no distribution need have them.
    **Privacy** Replace one record, n public; rho-zCDP in all, see `equal_rounds`. `paper`: the rho of Theorem 1's
    conversion, as in the authors' code of this method; `tight`: that of the tight one, as in their other methods.
    **Shapes** Entries (W, n') of all levels in each of n' relaxed rows, float32; the workload's marginals.
    **Departures** 1. A round makes so many Adam steps; the authors' code makes up to 5,000 and ends them at a plateau
    (`iterations=5000`, `patience=5`), or at a loss below 1e-8, and goes on from the last of them, here from the best.
    2. Measurements and the released answers are clipped to [0, 1], as in the authors' code. 3. Synthetic rows, and the
    marginals of one and two attributes besides the workload's, are of the mixture of products that the relaxed rows are
    when negative entries are put to 0 and those of an attribute are divided by their sum. All are post-processing.

    `workload`: see `cliques_of`. `rounds`, `per_round`: T and K; no query is measured twice. `components`: n'. `rate`:
    Adam's, 0.001 in Table 3, 0.005 or 0.1 in the authors' code; the default was chosen on other data than the
    paper's (experiment=queries_options_rap). `iterations`: its steps in a round, fewer if more than `patience` in a
    row have not lowered the loss. `rows`: the number of synthetic rows (None: n).
    """
    queries = QueryWorkload(train.domain.sizes, cliques_of(train.domain, workload))
    check_settings("rap", tolerance=None, components=components, iterations=iterations, patience=patience, rows=rows)
    check_positive("rap", rate=rate)
    noise_rng, start_rng, rows_rng = rng.spawn(3)
    family = Rap(queries, components, rate, iterations, start_rng, patience)
    relaxed, ledger, rho = run_equal_rounds(
        "rap",
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
    model = mixture_of(queries.sizes, np.log(np.maximum(relaxed, LEAST)), len(train), rounds)
    drawn = release_of_model(train.domain, budget, ledger, model, rows_rng, rows, {"rho": rho})
    singles = model.answer([(name,) for name in train.domain.names])  # else a reader sums the answers to the workload
    answers = queries.tables(len(train) * np.clip(family.answers(relaxed), 0, 1))
    parts = (Marginals({**singles, **drawn[Marginals].tables, **answers}), drawn[SyntheticRows])
    return Release(train.domain, budget, ledger, parts, drawn.diagnostics)


@dataclass(frozen=True)
class Rap:
    """[-1, 1]^(n' x d'), and the squared error of all measurements."""

    signed: ClassVar[bool] = False
    queries: QueryWorkload
    components: int
    rate: float
    iterations: int
    rng: np.random.Generator
    patience: int | None = None

    def initial(self) -> Distributions:
        """Entries (W, n') that are uniform between -1 and 1."""
        return self.rng.uniform(-1, 1, (sum(self.queries.sizes.values()), self.components)).astype(np.float32)

    def answers(self, D: Distributions) -> Floats:
        """The mean over the relaxed rows of the products of their entries."""
        return self.queries.of_products(D.T)

    def update(self, D: Distributions, asked: Asked) -> Distributions:
        """The best of Adam's steps from D, each followed by a projection onto [-1, 1]."""
        measured = ProductQueries(self.queries.columns(asked.queries), len(D))

        def loss(D: Distributions) -> tuple[float, Distributions]:
            return squared_loss(measured, D, asked)

        return adam(loss, D, self.iterations, patience=self.patience, rate=self.rate, bound=1.0)[0]


def squared_loss(measured: ProductQueries, distributions: Distributions, asked: Asked) -> tuple[float, Distributions]:
    """L^RAP = sum_i (q_i(D) - a_i)^2, with a_i clipped to [0, 1], and its derivative by the distributions (W, n')."""
    entries = measured.entries(distributions)
    gaps = measured.answers(entries) - np.clip(asked.answers, 0, 1)
    return float(gaps @ gaps), measured.slope(entries, 2 * gaps)
