"""GEM, generative networks with the exponential mechanism (Liu, Vietri and Wu 2021, section 2.2 and Appendix D).

| paper | here |
| --- | --- |
| G_theta, z | `Generator` |
| f_Q(G(z)) | `ProductQueries` of the softmax of its logits |
| B, T_max, beta | `components`, `iterations`, `ema` |
| EMA({c_i}), theta_out | `Trained.largest`, `Trained.average` |
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from dpbench.data.domain import Floats
from dpbench.data.table import Table
from dpbench.errors import NoEstimateError, UserError, check_known, check_positive
from dpbench.inference.product_queries import ProductQueries, softmax, softmax_slope
from dpbench.inference.products import Distributions
from dpbench.inference.query_workload import QueryWorkload
from dpbench.mechanisms.adaptive import Asked, Places, run_equal_rounds
from dpbench.mechanisms.fitting import check_settings
from dpbench.mechanisms.query_release import mixture_of, release_of_model
from dpbench.mechanisms.workload import Workload, cliques_of
from dpbench.privacy.budget import Budget
from dpbench.releases import Release

if TYPE_CHECKING:
    from dpbench.inference.generator import Generator, Weights

DEVICES, PRODUCTS = ("cpu", "cuda"), ("float32", "bfloat16")
LAST_RATE = 1e-8  # where the cosine ends: the authors' code
DIVERGED = "the generator diverged: its output is no number; lower rate"
BETA = 0.5  # of the moving average of the largest errors (D.3)


def gem(
    train: Table,
    budget: Budget,
    rng: np.random.Generator,
    *,
    workload: Workload = 3,
    rounds: int = 50,
    per_round: int = 1,
    components: int = 1000,
    latent: int = 512,
    hidden: Sequence[int] = (1024, 1024),
    resample: bool = False,
    rate: float = 1e-4,
    cosine: bool = True,
    iterations: int = 100,
    most: int | None = 100,
    ema: float = 0.5,
    alpha: float = 0.67,
    device: str = "cpu",
    products: str = "float32",
    rows: int | None = None,
    calibration: str = "tight",
) -> Release:
    """Train a network that maps noise to product distributions, so that their mixture answers as measured.

    **Source** Liu, Vietri and Wu 2021, Algorithms 3 and 4, Appendix D, Table 2.
    **Privacy** Replace one record, n public; rho-zCDP in all, see `equal_rounds`. `paper`: the rho of Theorem 1's
    conversion; `tight`: that of the tight one, as in the authors' code.
    **Shapes** A network R^latent -> R^W, float32; B product distributions over W levels.
    **Departures** 1. No query is measured twice, and measurements are clipped to [0, 1]. 2. Table 2's first layer of
    512 is z, and the output of each other one is concatenated with its input. 3. gamma is half of the average of the
    largest errors of all measurements so far. All are as in the authors' code, and post-processing or a selection from
    fewer queries.

    `workload`: see `cliques_of`. `rounds`, `per_round`: T and K. `components`: B. `latent`, `hidden`: the sizes of z
    and of the hidden layers. `resample`: whether z is drawn anew for each step (Algorithm 4), or once (the authors'
    code). `rate`: Adam's, which begins anew in each round. `cosine`: whether the rate decreases to 1e-8 in T_max steps
    (the authors' code) or stays (Table 2). `iterations`: T_max. `most`: how many measurements, the worst, a step's loss
    has at most (100 in the authors' code; None: all, as in Algorithm 4). `ema`: beta of the weights that are released,
    from the rounds after T/2 (D.2, which does not say it); 0: the last ones. `device`: cpu or cuda, whose
    steps differ in the last digits of float32. `products`: float32, or bfloat16 for half the time and gradients that
    are some per cent off. `rows`: the number of synthetic rows (None: n).
    """
    generator_rng, rng = rng.spawn(2)
    queries = QueryWorkload(train.domain.sizes, cliques_of(train.domain, workload))
    generator = generator_of("gem", queries, components, latent, hidden, device, generator_rng, products)
    family = Gem(queries, generator, rounds, rate, cosine, iterations, most, resample, ema)
    check_training("gem", family)
    return trained_release(
        "gem", train, budget, rng, family, per_round=per_round, alpha=alpha, rows=rows, calibration=calibration
    )


def trained_release(
    mechanism: str,
    train: Table,
    budget: Budget,
    rng: np.random.Generator,
    family: Gem,
    *,
    per_round: int,
    alpha: float,
    rows: int | None,
    calibration: str,
    unpaid: tuple[str, ...] = (),
) -> Release:
    """Algorithm 3 from the generator as it is, and the release of G_out; the parameters are those of `gem`.

    Raises `UserError` for a parameter out of range, `NoEstimateError` for a generator that diverges.
    """
    check_settings(mechanism, tolerance=None, rows=rows)
    noise_rng, rows_rng = rng.spawn(2)
    trained, ledger, rho = run_equal_rounds(
        mechanism,
        train,
        budget,
        noise_rng,
        family.queries,
        family,
        rounds=family.rounds,
        per_round=per_round,
        alpha=alpha,
        calibration=calibration,
        repeats=False,
    )
    model = mixture_of(family.queries.sizes, family.output(trained), len(train), family.rounds)
    diagnostics = {"rho": rho, "steps": trained.steps}
    return release_of_model(train.domain, budget, ledger, model, rows_rng, rows, diagnostics, unpaid)


@dataclass(frozen=True)
class Trained:
    """The generator after some rounds: its logits (W, B), the moving averages, and the steps that it took."""

    logits: Distributions
    rounds: int = 0
    steps: int = 0
    largest: float | None = None
    average: Weights | None = None


@dataclass(frozen=True)
class Gem:
    """Mixtures of B product distributions that a network gives, and the absolute error of the worst measurements.

    The parameters are those of `gem`. The generator is trained in place, so that a D is used up by its update.
    """

    signed: ClassVar[bool] = False
    queries: QueryWorkload
    generator: Generator
    rounds: int
    rate: float
    cosine: bool
    iterations: int
    most: int | None
    resample: bool
    ema: float

    def initial(self) -> Trained:
        """G_0, as PyTorch draws its weights, or as it was trained before."""
        return Trained(self.generator.logits())

    def answers(self, D: Trained) -> Floats:
        """The mean over the batch."""
        return self.queries.of_products(self.distributions(D.logits).T)

    def update(self, D: Trained, asked: Asked) -> Trained:
        """GEM-UPDATE with all measurements (Algorithm 4), and the moving averages of D.2 and D.3."""
        columns, a = self.queries.columns(asked.queries), np.clip(asked.answers, 0, 1)
        measured = self.asked(columns)

        def answers(distributions: Distributions) -> Floats:
            return measured.answers(measured.entries(distributions))

        largest = float(np.abs(a - answers(self.distributions(D.logits))).max())
        if D.largest is not None:
            largest = BETA * D.largest + (1 - BETA) * largest
        logits, steps = self.lowered(D.logits, columns, a, largest / 2, answers)
        late = D.rounds + 1 >= self.rounds / 2
        average = self.generator.averaged(D.average, self.ema) if late else None
        return Trained(logits, D.rounds + 1, D.steps + steps, largest, average)

    def lowered(
        self,
        logits: Distributions,
        columns: Places,
        a: Floats,
        gamma: float,
        answers: Callable[[Distributions], Floats],
    ) -> tuple[Distributions, int]:
        """Algorithm 4: descend until no error of the queries at `columns` (t, k) is gamma, or for T_max steps.

        `a` (t,) is what they are to be, `answers` what they are. Raises `NoEstimateError` for a generator that
        diverges.
        """
        if self.generator.device != "cpu":
            return self.lowered_on_device(columns, a, gamma)
        self.generator.restart()
        for i, rate in enumerate(self.rates()):
            distributions = self.distributions(logits)
            c = a - answers(distributions)
            J = worst(c, gamma, self.most)
            if not len(J):
                return logits, i
            _, slope = absolute_loss(self.asked(columns[J]), distributions, c[J])
            self.generator.step(softmax_slope(distributions, slope, list(self.queries.sizes.values())), rate)
            if self.resample:
                self.generator.draw()
            logits = self.generator.logits()
            if not np.isfinite(logits).all():
                raise NoEstimateError(DIVERGED)
        return logits, self.iterations

    def lowered_on_device(self, columns: Places, a: Floats, gamma: float) -> tuple[Distributions, int]:
        """`lowered` with all of a step in PyTorch."""
        from dpbench.inference.generator_descent import descend

        sizes = list(self.queries.sizes.values())
        try:
            steps = descend(self.generator, sizes, columns, a, gamma, self.rates(), self.most, self.resample)
        except FloatingPointError as error:
            raise NoEstimateError(DIVERGED) from error
        return self.generator.logits(), steps

    def rates(self) -> list[float]:
        """Adam's of each step."""
        if not self.cosine:
            return [self.rate] * self.iterations
        return [cosine_rate(self.rate, i / self.iterations) for i in range(self.iterations)]

    def output(self, D: Trained) -> Distributions:
        """The logits (W, B) of G_out."""
        if D.average is not None:
            self.generator.load(D.average)
        return self.generator.logits()

    def distributions(self, logits: Distributions) -> Distributions:
        """The probabilities (W, B)."""
        return softmax(logits, list(self.queries.sizes.values()))

    def asked(self, columns: Places) -> ProductQueries:
        """The queries at these columns."""
        return ProductQueries(columns, sum(self.queries.sizes.values()))


def worst(c: Floats, gamma: float, most: int | None) -> Places:
    """The places of the errors of gamma or more, the largest of them if there are more than `most`."""
    J = np.flatnonzero(np.abs(c) >= gamma)
    return J if most is None or len(J) <= most else J[np.argsort(np.abs(c[J]))[-most:]]


def absolute_loss(measured: ProductQueries, distributions: Distributions, c: Floats) -> tuple[float, Distributions]:
    """The mean of the |c_j| (Algorithm 4), c_j = a_j - q_j, and its derivative by the distributions (W, B)."""
    return float(np.abs(c).mean()), measured.slope_at(distributions, -np.sign(c) / len(c))


def cosine_rate(rate: float, part: float) -> float:
    """The rate after this part of the steps: half a cosine from `rate` to 1e-8."""
    return LAST_RATE + (rate - LAST_RATE) * (1 + math.cos(math.pi * part)) / 2


def generator_of(
    mechanism: str,
    queries: QueryWorkload,
    components: int,
    latent: int,
    hidden: Sequence[int],
    device: str,
    rng: np.random.Generator,
    products: str = "float32",
) -> Generator:
    """G_0. Raises `UserError` for a size out of range, or a device or products that are unknown or not there."""
    from dpbench.inference.generator import Generator

    check_known("device", device, DEVICES)
    check_known("products", products, PRODUCTS)
    check_settings(mechanism, tolerance=None, latent=latent, **{f"hidden[{i}]": size for i, size in enumerate(hidden)})
    if components < 2:
        raise UserError(f"{mechanism}: components must be at least 2, for layers to be normalised, not {components}")
    return Generator(sum(queries.sizes.values()), components, latent, hidden, device, rng, products)


def check_training(mechanism: str, family: Gem) -> None:
    """Raises `UserError` for a parameter out of range."""
    check_settings(mechanism, tolerance=None, iterations=family.iterations, most=family.most)
    check_positive(mechanism, rate=family.rate)
    if not 0 <= family.ema < 1:
        raise UserError(f"{mechanism}: ema must be at least 0 and less than 1, not {family.ema}")
