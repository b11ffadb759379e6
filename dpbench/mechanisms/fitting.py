"""What mechanisms that fit a graphical model to noisy marginals share: engines, costs, what is refused beforehand."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module

from dpbench.data.domain import Clique
from dpbench.errors import UserError, unknown
from dpbench.inference import MOST_SIGMA, MarkovModel, model_mb
from dpbench.privacy.accounting import check_calibration, gaussian_mu, zcdp_rho
from dpbench.privacy.budget import Budget, Ledger
from dpbench.privacy.pure import bounded_range_epsilon, bounded_range_mu
from dpbench.privacy.sensitivity import of_marginal
from dpbench.resources import memory_mb

LEAST_SIGMA = 1e-9  # the spacing of float64 near a count of some millions: less noise than that is none
LARGEST_EPSILON = 1e100  # its square stays within float64
COPIES = 5  # of a marginal in memory while it is answered, stored and scored: 4.3 measured for one of 374 MB
ENGINES = {  # modules with an `estimate`, and with a `model_mb` where the model is not a junction tree
    "native": "dpbench.inference",
    "mbi": "dpbench.inference.mbi_engine",
    "mixture": "dpbench.inference.mixture",
}


def estimator(
    engine: str, *, iterations: int, tolerance: float | None, components: int | None = None
) -> Callable[..., MarkovModel]:
    """`estimate(sizes, measurements, warm_start=None)` of the engine, with `components` where it has them.

    Raises `UserError` for an unknown name, or for components of an engine that has none.
    """
    if engine not in ENGINES:
        raise unknown("engine", engine, ENGINES)
    estimate = import_module(ENGINES[engine]).estimate
    own = {} if components is None else {"components": components}
    if own and "components" not in inspect.signature(estimate).parameters:
        raise UserError(f"engine {engine!r} has no components; leave them out (null), or choose engine=mixture")
    return partial(estimate, iterations=iterations, tolerance=tolerance, **own)


def smallest_mb(engine: str, sizes: Mapping[str, int], components: int | None) -> float:
    """Size in MB of the engine's model of the one-way marginals alone: of a junction tree, or of all components."""
    singles = [(name,) for name in sizes]
    size: Callable[..., float] = getattr(import_module(ENGINES[engine]), "model_mb", model_mb)
    return size(sizes, singles) if components is None else size(sizes, singles, components=components)


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


def check_answers(mechanism: str, sizes: Mapping[str, int], cliques: Sequence[Clique]) -> None:
    """Raises `UserError` for a workload whose marginals, worked on `COPIES` times, exceed this process's memory."""
    mb, limit = sum(table_mb(sizes, clique) for clique in cliques), memory_mb()
    if COPIES * mb > limit:
        raise UserError(
            f"{mechanism}: the workload's marginals have {mb:.3g} MB, and {COPIES} times that while they are made; the "
            f"limit is {limit:.4g} MB; raise limits.memory_mb, name fewer cliques in workload or declare fewer bins"
        )
