"""Methods of private query release with a search for their hyperparameters, unpaid or paid (iterative methods, F.1)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from inspect import signature
from itertools import product
from typing import Any

import numpy as np

from dpbench.data.table import Table
from dpbench.errors import NoEstimateError, UserError, check_known
from dpbench.inference.queries import QueryWorkload
from dpbench.mechanisms.adaptive import rho_of
from dpbench.mechanisms.dualquery import dualquery
from dpbench.mechanisms.fem import fem
from dpbench.mechanisms.gem import gem
from dpbench.mechanisms.mwem import mwem
from dpbench.mechanisms.pep import pep
from dpbench.mechanisms.rap import rap
from dpbench.mechanisms.rap_softmax import rap_softmax
from dpbench.mechanisms.workload import Workload, cliques_of
from dpbench.privacy.accounting import spent, zcdp_epsilon
from dpbench.privacy.budget import Budget
from dpbench.privacy.calibration import search_multipliers
from dpbench.privacy.events import ZCDP, Gaussian
from dpbench.privacy.ledger import ROUNDING, Ledger
from dpbench.privacy.noise import gaussian, number_of_runs, unpaid
from dpbench.privacy.renyi import RandomSearch
from dpbench.releases import Release
from dpbench.releases.answers import answers_of

METHODS: dict[str, Callable[..., Release]] = {
    method.__name__: method for method in (mwem, pep, gem, rap, rap_softmax, dualquery, fem)
}
TUNINGS = ("optimistic", "random_search")


def query_search(
    train: Table,
    budget: Budget,
    rng: np.random.Generator,
    *,
    method: str,
    tuning: str,
    grid: Mapping[str, Sequence[Any]],
    shared: Mapping[str, Any],
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
    1/n at most, with Gaussian noise. Only the run with the least score is released, and the ledger holds the law of K.
    What `dpsgd_search` says of those who learn K holds here, too.
    **Shapes** Those of the method.
    **Departures** The paper takes the best of the settings' means over 5 runs, for each epsilon; `optimistic` the best
    setting in each run, which is no worse.

    `method`: one of `METHODS`, with the parameters `shared` in all runs and each combination of the values of `grid`.
    `score_share` is the part of a run's rho that pays for its score.

    Raises `UserError` for what the method refuses, an unknown method or tuning, or an empty grid; `NoEstimateError` if
    no run gave a distribution.
    """
    check_known("method", method, METHODS)
    check_known("tuning", tuning, TUNINGS)
    settings = settings_of(grid)
    _check_parameters(method, grid, shared)
    rho_of("query_search", train, budget, "tight")  # refuses what no method can run on
    if tuning == "optimistic":
        return _all_settings(train, budget, rng, method, settings, shared, workload)
    return _random_search(
        train, budget, rng, method, settings, shared, workload, eta=eta, gamma=gamma, score_share=score_share
    )


def settings_of(grid: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """All combinations of the values of a grid. Raises `UserError` unless each parameter has a list of values."""
    for name, values in grid.items():
        if isinstance(values, str) or not isinstance(values, Sequence) or not values:
            raise UserError(f"query_search: grid.{name} must list at least one value, not {values!r}")
    if not grid:
        raise UserError("query_search: grid must map parameters of the method to lists, such as {rounds: [25, 50]}")
    return [dict(zip(grid, values, strict=True)) for values in product(*grid.values())]


def _check_parameters(method: str, grid: Mapping[str, Any], shared: Mapping[str, Any]) -> None:
    known = [name for name, one in signature(METHODS[method]).parameters.items() if one.kind is one.KEYWORD_ONLY]
    for name in (*grid, *shared):
        check_known(f"parameter of {method}", name, known)
    for name in sorted({"workload", *grid} & {*shared}):
        where = "a parameter of the search" if name == "workload" else "in the grid"
        raise UserError(f"query_search: {name} is {where}: leave it out of shared")


def _all_settings(
    train: Table,
    budget: Budget,
    rng: np.random.Generator,
    method: str,
    settings: Sequence[dict[str, Any]],
    shared: Mapping[str, Any],
    workload: Workload,
) -> Release:
    best, least, chosen = None, math.inf, settings[0]
    for setting, own in zip(settings, rng.spawn(len(settings)), strict=True):
        release = _run(train, budget, own, method, setting, shared, workload)
        error = math.inf if release is None else float(unpaid(_max_error(release, train, workload), label="max error"))
        if error < least:
            best, least, chosen = release, error, setting
    if best is None:
        raise NoEstimateError(f"query_search: none of the {len(settings)} settings of {method} gave a distribution")
    taken = (
        f"the hyperparameters: chosen by the non-private max errors of {len(settings)} runs, of which all but the "
        "released one are unpaid"
    )
    found = {**best.diagnostics, "setting": chosen}
    return replace(best, diagnostics=found, nonprivate_inputs=(*best.nonprivate_inputs, taken))


def _random_search(
    train: Table,
    budget: Budget,
    rng: np.random.Generator,
    method: str,
    settings: Sequence[dict[str, Any]],
    shared: Mapping[str, Any],
    workload: Workload,
    *,
    eta: float,
    gamma: float,
    score_share: float,
) -> Release:
    """A secret number of runs; the best by its private score. Nothing of the others, nor their number, is released."""
    (run_multiplier,), score_multiplier = search_multipliers(
        budget.epsilon, budget.delta, ((1.0, 1),), eta=eta, gamma=gamma, score_share=score_share
    )
    rho = 0.5 / run_multiplier**2
    of_run = replace(budget, epsilon=zcdp_epsilon(rho, budget.delta))
    score_event = Gaussian("score", 1 / len(train), score_multiplier)
    alternatives = ((ZCDP(f"a run of {method}", rho), score_event),)
    search, ledger = RandomSearch(f"runs of {method}", eta, gamma, alternatives), Ledger()
    best, least, chosen = None, math.inf, settings[0]
    for _ in range(number_of_runs(rng, ledger, search)):
        setting, (own,) = settings[int(rng.integers(len(settings)))], rng.spawn(1)
        release, of_score = _run(train, of_run, own, method, setting, shared, workload), Ledger()
        if release is None:
            continue
        assert spent(release.ledger, budget.delta).rho <= rho * (1 + ROUNDING)
        error = _max_error(release, train, workload)
        score = gaussian(
            rng, of_score, error, sensitivity=1 / len(train), multiplier=score_multiplier, label=score_event.label
        )
        assert of_score.events == (score_event,)
        if score < least:
            best, least, chosen = release, float(score), setting
    if best is None:
        raise NoEstimateError(f"query_search: no run of {method} gave a distribution")
    found = {"setting": chosen, "score": least}
    return Release(train.domain, budget, ledger, best.parts, found, best.nonprivate_inputs)


def _run(
    train: Table,
    budget: Budget,
    rng: np.random.Generator,
    method: str,
    setting: Mapping[str, Any],
    shared: Mapping[str, Any],
    workload: Workload,
) -> Release | None:
    """A release of the method with this setting; None if what it fitted diverged, which its noisy answers tell."""
    try:
        return METHODS[method](train, budget, rng, workload=workload, **shared, **setting)
    except NoEstimateError:
        return None


def _max_error(release: Release, train: Table, workload: Workload) -> float:
    """The largest error over the workload of the release's answers."""
    cliques = cliques_of(train.domain, workload)
    true = QueryWorkload(train.domain.sizes, cliques).of_rows(train.codes)
    return float(np.abs(true - answers_of(release, cliques, len(train))).max())
