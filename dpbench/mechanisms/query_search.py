"""Methods of private query release with a search for their hyperparameters, unpaid or paid (iterative methods, F.1)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from inspect import signature
from itertools import product
from typing import Any

import numpy as np

from dpbench.data.domain import Clique, Floats
from dpbench.data.table import Table
from dpbench.errors import NoEstimateError, UserError, check_known
from dpbench.inference.query_workload import QueryWorkload
from dpbench.mechanisms.adaptive import rho_of
from dpbench.mechanisms.dualquery import dualquery
from dpbench.mechanisms.fem import fem
from dpbench.mechanisms.gem import gem
from dpbench.mechanisms.gem_pub import gem_pub
from dpbench.mechanisms.mwem import mwem
from dpbench.mechanisms.pep import pep
from dpbench.mechanisms.pep_pub import pep_pub
from dpbench.mechanisms.pmw_pub import pmw_pub
from dpbench.mechanisms.rap import rap
from dpbench.mechanisms.rap_softmax import rap_softmax
from dpbench.mechanisms.workload import Workload, cliques_of
from dpbench.privacy.accounting import spent_rho, zcdp_epsilon
from dpbench.privacy.budget import Budget
from dpbench.privacy.calibration import search_multipliers
from dpbench.privacy.events import ZCDP, Gaussian
from dpbench.privacy.ledger import ROUNDING, Ledger
from dpbench.privacy.noise import gaussian, number_of_runs, unpaid
from dpbench.privacy.renyi import RandomSearch
from dpbench.releases import Release
from dpbench.releases.release_type import answers_of

METHODS: dict[str, Callable[..., Release]] = {
    method.__name__: method for method in (mwem, pep, gem, rap, rap_softmax, dualquery, fem, pmw_pub, pep_pub, gem_pub)
}
Setting = Mapping[str, Any]  # parameters of a method, as a config gives them
Grid = Mapping[str, Sequence[Any]]  # parameter -> the values that are tried
TUNINGS = ("optimistic", "random_search")


def query_search(
    train: Table,
    budget: Budget,
    rng: np.random.Generator,
    *,
    method: str,
    tuning: str,
    grid: Grid,
    shared: Setting,
    public: Table | None = None,
    workload: Workload = 3,
    eta: float = 1.0,
    gamma: float = 0.1,
    score_share: float = 0.1,
) -> Release:
    """The run with the least of the largest errors, among several settings of one method.

    **Source** Liu, Vietri and Wu 2021, Appendix F.1 and Tables 1 to 3; Papernot and Steinke 2021, Theorem 2.
    **Privacy** Replace one record, n public. `optimistic`: each setting runs at the whole budget, the one with the
    least max error on the private rows is released, and the ledger holds it alone; `nonprivate_inputs` says so.
    `random_search`: a random number K of independent runs (`RandomSearch`), each with a setting drawn uniformly, at the
    same rho-zCDP whatever it is, and with a private score: its max error over the workload, which one record changes by
    1/n at most, with Gaussian noise. Only the run with the least score is released, and the ledger holds the
    distribution of K. What `dpsgd_search` says of those who learn K holds here, too.
    **Shapes** Those of the method.
    **Departures** The paper takes the best of the settings' means over 5 runs, for each epsilon; `optimistic` the best
    setting in each run, which is no worse.

    `method`: one of `METHODS`, with the parameters `shared` in all runs and each combination of the values of `grid`.
    `public`: the rows of those that take them. `score_share` is the part of a run's rho that pays for its score.

    Raises `UserError` for what the method refuses, an unknown method or tuning, or an empty grid; `NoEstimateError` if
    no run gave a distribution.
    """
    check_known("method", method, METHODS)
    check_known("tuning", tuning, TUNINGS)
    settings = settings_of(grid)
    _check_parameters(method, grid, shared)
    rho_of("query_search", train, budget, "tight")  # refuses what no method can run on
    runs = Runs(train, public, method, shared, workload)
    if tuning == "optimistic":
        return _all_settings(runs, budget, rng, settings)
    return _random_search(runs, budget, rng, settings, eta=eta, gamma=gamma, score_share=score_share)


def settings_of(grid: Grid) -> list[Setting]:
    """All combinations of the values of a grid. Raises `UserError` unless each parameter has a list of values."""
    for name, values in grid.items():
        if isinstance(values, str) or not isinstance(values, Sequence) or not values:
            raise UserError(f"query_search: grid.{name} must list at least one value, not {values!r}")
    if not grid:
        raise UserError("query_search: grid must map parameters of the method to lists, such as {rounds: [25, 50]}")
    return [dict(zip(grid, values, strict=True)) for values in product(*grid.values())]


def _check_parameters(method: str, grid: Setting, shared: Setting) -> None:
    parameters = signature(METHODS[method]).parameters.values()
    known = [one.name for one in parameters if one.kind is one.KEYWORD_ONLY and one.name != "public"]
    for name in (*grid, *shared):
        check_known(f"parameter of {method}", name, known)
    for name in sorted({"workload", *grid} & {*shared}):
        where = "a parameter of the search" if name == "workload" else "in the grid"
        raise UserError(f"query_search: {name} is {where}: leave it out of shared")


@dataclass(frozen=True)
class Runs:
    """What all runs of a search share: the private and public rows, the method and its fixed parameters."""

    train: Table
    public: Table | None
    method: str
    shared: Setting
    workload: Workload

    def run(self, budget: Budget, rng: np.random.Generator, setting: Setting) -> Release | None:
        """A release with this setting; None if what was fitted diverged, which its noisy answers tell."""
        method = METHODS[self.method]
        public = {"public": self.public} if "public" in signature(method).parameters else {}
        try:
            return method(self.train, budget, rng, workload=self.workload, **public, **self.shared, **setting)
        except NoEstimateError:
            return None

    def max_error(self, release: Release) -> float:
        """The largest error over the workload of the release's answers: one record changes it by 1/n at most."""
        return float(np.abs(self._true - answers_of(release, self._cliques, len(self.train))).max())

    @cached_property
    def _cliques(self) -> tuple[Clique, ...]:
        return cliques_of(self.train.domain, self.workload)

    @cached_property
    def _true(self) -> Floats:
        return QueryWorkload(self.train.domain.sizes, self._cliques).of_rows(self.train.codes)


def _all_settings(runs: Runs, budget: Budget, rng: np.random.Generator, settings: Sequence[Setting]) -> Release:
    """Each setting once; the best by its non-private error."""
    best, least, chosen = None, math.inf, settings[0]
    for setting, own in zip(settings, rng.spawn(len(settings)), strict=True):
        release = runs.run(budget, own, setting)
        error = math.inf if release is None else float(unpaid(runs.max_error(release), label="max error"))
        if error < least:
            best, least, chosen = release, error, setting
    if best is None:
        raise NoEstimateError(f"query_search: no setting of {runs.method} gave a distribution")
    taken = (
        f"the hyperparameters: chosen by the non-private max errors of {len(settings)} runs, of which all but the "
        "released one are unpaid"
    )
    found = {**best.diagnostics, "setting": chosen}
    return replace(best, diagnostics=found, nonprivate_inputs=(*best.nonprivate_inputs, taken))


def _random_search(
    runs: Runs,
    budget: Budget,
    rng: np.random.Generator,
    settings: Sequence[Setting],
    *,
    eta: float,
    gamma: float,
    score_share: float,
) -> Release:
    """A secret number of runs; the best by its private score. Nothing of the others, nor their number, is released.

    `unfinished` counts programmes of the best run alone: what they were is post-processing of its noisy answers, and
    how long each took depends on the machine, so that it tells no more of the rows, or of the number of runs.
    """
    (run_multiplier,), score_multiplier = search_multipliers(
        budget.epsilon, budget.delta, ((1.0, 1),), eta=eta, gamma=gamma, score_share=score_share
    )
    rho, n = 0.5 / run_multiplier**2, len(runs.train)
    of_run = replace(budget, epsilon=zcdp_epsilon(rho, budget.delta))  # which the method turns into rho again
    score_event = Gaussian("score", 1 / n, score_multiplier)
    alternatives = ((ZCDP(f"a run of {runs.method}", rho), score_event),)
    search, ledger = RandomSearch(f"runs of {runs.method}", eta, gamma, alternatives), Ledger()
    best, least, chosen = None, math.inf, settings[0]
    for _ in range(number_of_runs(rng, ledger, search)):
        setting, (own,) = settings[int(rng.integers(len(settings)))], rng.spawn(1)
        release, of_score = runs.run(of_run, own, setting), Ledger()
        if release is None:
            continue
        assert spent_rho(release.ledger) <= rho * (1 + ROUNDING)
        error = runs.max_error(release)
        score = gaussian(rng, of_score, error, sensitivity=1 / n, multiplier=score_multiplier, label="score")
        assert of_score.events == (score_event,)
        if score < least:
            best, least, chosen = release, float(score), setting
    if best is None:
        raise NoEstimateError(f"query_search: no run of {runs.method} gave a distribution")
    found = {"setting": chosen, "score": least}
    found |= {name: count for name, count in best.diagnostics.items() if name == "unfinished"}
    return Release(best.domain, budget, ledger, best.parts, found, best.nonprivate_inputs)
