"""What mechanisms that fit a graphical model to noisy marginals share: engines, costs, what is refused beforehand."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import accumulate

import numpy as np

from dpbench.data.domain import Clique, Codes, Floats
from dpbench.data.table import Countable, Table
from dpbench.errors import UserError, check_known
from dpbench.inference import MOST_SIGMA, Engine, JunctionTree, Measurement, candidate_mb
from dpbench.inference.mbi_engine import Mbi
from dpbench.inference.mixture import ProductMixture
from dpbench.privacy.accounting import check_calibration, gaussian_mu, zcdp_rho
from dpbench.privacy.budget import Budget
from dpbench.privacy.discrete import whole
from dpbench.privacy.ledger import Ledger
from dpbench.privacy.noise import gaussian
from dpbench.privacy.pure import bounded_range_epsilon, bounded_range_mu
from dpbench.privacy.sensitivity import of_marginal
from dpbench.resources import memory_mb

LEAST_SIGMA = 1e-9  # the spacing of float64 near a count of some millions: less noise than that is none
LARGEST_EPSILON = 1e100  # its square stays within float64
COPIES = 5  # of a marginal in memory while it is answered, stored and scored: 4.3 measured for one of 374 MB
BYTES_A_CELL = 16  # of `Counts`: a place, a row and a count
ENGINES: dict[str, type[JunctionTree | Mbi | ProductMixture]] = {  # by their names in conf/
    "native": JunctionTree,
    "mbi": Mbi,
    "mixture": ProductMixture,
}


def engine_of(name: str, *, iterations: int, tolerance: float | None = None, components: int | None = None) -> Engine:
    """The engine of this name with these settings; None leaves its default.

    Raises `UserError` for an unknown name, or for a setting that the engine does not have.
    """
    check_known("engine", name, ENGINES)
    settings = {"iterations": iterations, "tolerance": tolerance, "components": components}
    settings = {setting: value for setting, value in settings.items() if value is not None}
    has = {other: [field.name for field in fields(engine)] for other, engine in ENGINES.items()}
    for setting in settings:
        if setting not in has[name]:
            others = " or ".join(other for other in ENGINES if setting in has[other])
            raise UserError(f"engine {name!r} has no {setting}; leave it out (null), or choose engine={others}")
    make: Callable[..., Engine] = ENGINES[name]
    return make(**settings)


@dataclass(frozen=True)
class Costs:
    """What measured marginals and selections cost, in one currency: rho.

    `paper`: rho is that of zCDP, a measurement at sigma costs l2^2 / (2 sigma^2), and a selection eps^2/8. `tight`: rho
    is mu^2/2 of Gaussian DP, in which a measurement costs the same, and a selection pure_mu(eps/2)^2/2
    (`pure.bounded_range_mu`): it is dearer, but (eps, delta) allows more. `total` is what the budget allows, and `l1`
    and `l2` are the sensitivities of a marginal.
    """

    calibration: str
    total: float
    l1: float
    l2: float

    @classmethod
    def of(cls, mechanism: str, budget: Budget, calibration: str) -> Costs:
        """Raises `UserError` for an unknown calibration, or if the total is 0 or infinite."""
        check_calibration(calibration)
        if not budget.epsilon <= LARGEST_EPSILON:
            raise UserError(f"{mechanism} needs a finite epsilon; use a large one, such as 1e6, to see its limit")
        tight = calibration == "tight"
        rho = gaussian_mu(budget.epsilon, budget.delta) ** 2 / 2 if tight else zcdp_rho(budget.epsilon, budget.delta)
        if not 0 < rho < math.inf:
            raise UserError(
                f"{mechanism}: epsilon = {budget.epsilon:g} and delta = {budget.delta:g} give rho = {rho:g}, outside "
                "the range of the arithmetic"
            )
        return cls(calibration, rho, *of_marginal(budget.relation))

    def open_filter(self, ledger: Ledger) -> None:
        """Hold the ledger to the total, whatever its events will be."""
        if self.calibration == "tight":
            ledger.open_filter("mu", math.sqrt(2 * self.total))
        else:
            ledger.open_filter("rho", self.total)

    def of_measurements(self, sigma: float, times: int = 1) -> float:
        """What so many measurements cost, each with noise of standard deviation sigma."""
        return times * self.l2**2 / (2 * sigma**2)

    def sigma(self, cost: float, times: int = 1) -> float:
        """The noise at which so many measurements cost this much together."""
        return self.l2 * math.sqrt(times / (2 * cost))

    def of_selection(self, epsilon: float) -> float:
        """What the exponential mechanism costs at this epsilon."""
        return bounded_range_mu(epsilon) ** 2 / 2 if self.calibration == "tight" else epsilon**2 / 8

    def epsilon(self, cost: float, times: int = 1) -> float:
        """The epsilon at which so many selections cost this much together."""
        if self.calibration == "tight":
            return bounded_range_epsilon(math.sqrt(2 * cost / times))
        return math.sqrt(8 * cost / times)


def noisy_marginal(
    rng: np.random.Generator,
    ledger: Ledger,
    clique: Clique,
    counts: Floats | Codes,
    sigma: float,
    *,
    l2: float,
    noise: str,
) -> Measurement:
    """A marginal with Gaussian noise of standard deviation `sigma`; a record changes its counts by `l2` at most."""
    exact, label = whole(counts, noise), f"marginal {','.join(clique)}"
    noisy = gaussian(rng, ledger, exact, sensitivity=l2, multiplier=sigma / l2, label=label)
    return Measurement(clique, noisy, sigma)


def measured_alike(
    mechanism: str,
    train: Table,
    cliques: Sequence[Clique],
    n: int | None,
    costs: Costs,
    ledger: Ledger,
    *,
    rng: np.random.Generator,
    noise: str,
) -> tuple[list[Measurement], float]:
    """All these marginals with the same Gaussian noise, which take the whole budget, and its standard deviation.

    Where n, the number of rows, is public, a marginal of a single cell is n, and is left out.
    """
    noisy = [r for r in cliques if n is None or math.prod(train.domain.shape(r)) > 1]
    sigma = costs.sigma(costs.total, max(len(noisy), 1))
    check_sigma(mechanism, sigma)
    counts = train.marginals(noisy)
    return [noisy_marginal(rng, ledger, r, counts[r], sigma, l2=costs.l2, noise=noise) for r in noisy], sigma


def rows_if_public(mechanism: str, train: Countable, budget: Budget, n_public: bool | None) -> int | None:
    """n, where neighbours replace a record, so that it is the same for both; None where it is private.

    `n_public` says so (None: as the relation has it). Raises `UserError` where it contradicts the relation.
    """
    public = budget.relation == "replace"
    if n_public is not None and n_public != public:
        if public:
            raise UserError(
                f"{mechanism}: n_public is false, but relation=replace makes the number of rows public, and needs it: "
                "leave n_public out (null), or set relation=add_remove, where n is private"
            )
        raise UserError(
            f"{mechanism}: n_public is true, but with relation=add_remove the number of rows reveals whether a "
            "record is present: leave n_public out (null), so that n is estimated, or set relation=replace"
        )
    return len(train) if public else None


def check_settings(mechanism: str, *, tolerance: float | None, **counts: int | None) -> None:
    """Raises `UserError` for a tolerance that is not positive or a count below 1."""
    if tolerance is not None and not tolerance > 0:
        raise UserError(f"{mechanism}: tolerance must be greater than 0, not {tolerance}")
    for name, count in counts.items():
        if count is not None and count < 1:
            raise UserError(f"{mechanism}: {name} must be at least 1, not {count}")


def check_sigma(mechanism: str, *sigmas: float) -> None:
    """Raises `UserError` for a noise scale outside the range of the arithmetic."""
    for sigma in sigmas:
        if not LEAST_SIGMA <= sigma <= MOST_SIGMA:
            raise UserError(f"{mechanism}: this epsilon gives sigma = {sigma:g}, outside the range of the arithmetic")


def check_start(
    mechanism: str, first: int, sigma: float, rho_used: float, rho: float, what: str = "one-way marginals"
) -> None:
    """Raises `UserError` for a number of rounds of AIM that leaves nothing for them, or a noise out of range."""
    check_sigma(mechanism, sigma)
    if rho_used >= rho:
        raise UserError(f"{mechanism}: {first} {what} spend the whole budget; raise rounds above {first}")


def check_model(mechanism: str, what: str, mb: float, max_model_mb: float) -> None:
    """Raises `UserError` for a model over its limit; `what` says which model is meant."""
    if mb > max_model_mb:
        raise UserError(
            f"{mechanism}: {what} has {mb:.3g} MB, the limit is {max_model_mb:g} MB; "
            f"raise mechanism.{mechanism}.max_model_mb or declare fewer bins"
        )


def table_mb(sizes: Mapping[str, int], clique: Clique) -> float:
    """Size in MB of the clique's marginal."""
    return math.prod(sizes[name] for name in clique) * 8 / 2**20


def within(
    sizes: Mapping[str, int], measured: Sequence[Clique], candidates: Sequence[Clique], limit: float
) -> list[Clique]:
    """The candidates with which the junction tree of the marginals that were measured has at most `limit` MB.

    Those measured already are among them, where it has not more without another one.
    """
    mb = candidate_mb(sizes, measured, candidates)
    return [r for r, one in zip(candidates, mb, strict=True) if one <= limit]


def check_answers(mechanism: str, sizes: Mapping[str, int], cliques: Sequence[Clique]) -> None:
    """Raises `UserError` for a workload whose marginals, worked on `COPIES` times, exceed this process's memory."""
    mb, limit = sum(table_mb(sizes, clique) for clique in cliques), memory_mb()
    if COPIES * mb > limit:
        sums = accumulate(sorted(COPIES * table_mb(sizes, clique) for clique in cliques))
        fit = sum(one <= limit for one in sums)
        raise UserError(
            f"{mechanism}: the workload's marginals have {mb:.3g} MB, and {COPIES} times that while they are made; the "
            f"limit is {limit:.4g} MB: the {fit:,} smallest of {len(cliques):,} would fit; raise limits.memory_mb, "
            "name fewer cliques in workload or declare fewer bins"
        )


def check_counts(mechanism: str, sizes: Mapping[str, int], candidates: Sequence[Clique], rows: int) -> None:
    """Raises `UserError` for candidates whose non-zero cells (`Counts`) exceed this process's memory, however they lie.

    A marginal of n rows has n of them at most; the places of all rows in the parts of the candidates come on top.
    """
    cells = [min(rows, math.prod(sizes[name] for name in clique)) for clique in candidates]
    mb = (BYTES_A_CELL * sum(cells) + 4 * rows * len(candidates)) / 2**20
    limit = memory_mb()
    if mb > limit:  # by how much is not said: it depends on n, which may be private
        raise UserError(
            f"{mechanism}: the non-zero cells of the {len(candidates):,} candidate marginals may take more than the "
            f"limit of {limit:.4g} MB; lower the degree or workload.max_cells, train on fewer rows or raise "
            "limits.memory_mb"
        )
