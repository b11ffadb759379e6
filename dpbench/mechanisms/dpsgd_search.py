"""DP-SGD with a search for its hyperparameters, under five accounts of what the search costs (DD-SSP, 3.6)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from itertools import product

import numpy as np

from dpbench.data.domain import Floats
from dpbench.data.encode import Design
from dpbench.data.table import Table
from dpbench.errors import UserError, check_known
from dpbench.mechanisms.dpsgd import Setting, descend, loss_for, sparse_of
from dpbench.privacy.budget import Budget
from dpbench.privacy.calibration import (
    Plan,
    advanced_composition,
    grid_multipliers,
    sampled_multiplier,
    search_multipliers,
)
from dpbench.privacy.events import Gaussian
from dpbench.privacy.ledger import Ledger
from dpbench.privacy.noise import gaussian, number_of_runs, unpaid
from dpbench.privacy.renyi import RandomSearch
from dpbench.releases import Coefficients, Release

TUNINGS = ("optimistic", "test_error", "advanced_composition", "accountant", "random_search")


def dpsgd_search(
    train: Table,
    budget: Budget,
    rng: np.random.Generator,
    *,
    design: Design,
    tuning: str,
    batch_sizes: Sequence[int | None],
    clips: Sequence[float],
    epochs: Sequence[int],
    learning_rates: Sequence[float],
    expected_rows: int,
    loss: str | None = None,
    eta: float = 0.0,
    gamma: float = 0.03,
    score_share: float = 0.1,
    test: Table | None = None,
) -> Release:
    """The best of several runs of DP-SGD over a grid of k hyperparameter settings.

    **Source** DD-SSP, section 3.6 and G.2 (k = 108); Steinke (2022), Theorem 22; Papernot and Steinke (2021).
    **Privacy** Add/remove; a run is `dpsgd`'s. `optimistic`: each of the k runs spends (eps, delta) and the ledger
    holds the released one alone. `test_error`: the same, but that the runs are scored on the rows `test`, and the best
    setting is run anew, as in the code of DD-SSP's authors: the rows that the release is then tested on have chosen it,
    and nothing protects them. `advanced_composition`: each run is (eps0, delta0)-DP, such that k of them are (eps,
    delta)-DP by Theorem 22, and the ledger holds all k. `accountant`: the same, with the least noise at which the
    ledger of all k costs (eps, delta). These four choose by a score that is not paid for, mean squared error or, for
    the logistic loss, AUC: `nonprivate_inputs` says so. `random_search`: a random number K of independent runs
    (`RandomSearch`), each with a setting drawn uniformly and a private score, the sum over the training rows of a loss
    in [0, B] with Gaussian noise. B is (2 ||Y||)^2 for the squared error of the prediction clipped to [-||Y||, ||Y||],
    and 1 for that of the predicted probability (Brier score), which goes with the logistic loss. Only the run with the
    least score is released, and the ledger holds the distribution of K. This is a guarantee against those who do not
    learn K. It follows from the seed of the noise, which must stay secret, and shows in the seconds and memory of a
    release, which are not recorded; who watches the machine's clock is not covered. No run stops early.
    **Shapes** X (n, p), y (n,) as `design` encodes them; theta (p,).
    **Departures** 1. Runs that differ in clip or learning rate alone share their Poisson samples, but not in a random
    search. Each has the distribution of a run alone. Theorem 22, however, holds for independent runs: that all runs
    together cost no more than (eps, delta) is what the accountant says of the ledger, which counts shared samples as
    shared. 2. `random_search` is the accounting that the paper only names. Its score for the logistic loss is not the
    AUC, which is no sum over rows. 3. `test_error` searches anew in each release; the authors' code searches once for
    each epsilon, and uses the setting in all trials.

    `score_share` is the part of a run's mu^2 that pays for its score. Raises `UserError` for what `dpsgd` refuses, an
    unknown tuning, an empty list, or `test_error` without test rows.
    """
    lists = {"batch_sizes": batch_sizes, "clips": clips, "epochs": epochs, "learning_rates": learning_rates}
    for name, values in lists.items():
        if isinstance(values, str) or not isinstance(values, Sequence) or not values:
            raise UserError(f"dpsgd_search: {name} must list at least one value, not {values!r}")
    check_known("tuning", tuning, TUNINGS)
    loss = loss_for(design, loss)
    settings = [
        Setting(batch_size, clip, passes, learning_rate, expected_rows)
        for batch_size, clip, passes, learning_rate in product(batch_sizes, clips, epochs, learning_rates)
    ]
    if tuning == "random_search":
        return _random_search(train, budget, rng, design, loss, settings, eta=eta, gamma=gamma, score_share=score_share)
    scored = train
    if tuning == "test_error":
        if test is None or not len(test):
            raise UserError("dpsgd_search: tuning=test_error chooses on the test rows; set sample.test_rows")
        scored = test
    return _exhaustive_search(train, budget, rng, design, loss, settings, tuning=tuning, scored=scored)


def _exhaustive_search(
    train: Table,
    budget: Budget,
    rng: np.random.Generator,
    design: Design,
    loss: str,
    settings: Sequence[Setting],
    *,
    tuning: str,
    scored: Table,
) -> Release:
    """All settings; the best by its non-private score of the rows `scored`."""
    epsilon, delta = budget.epsilon, budget.delta
    runs = Counter(map(_plan, settings))
    if tuning == "advanced_composition":
        epsilon, delta = advanced_composition(epsilon, delta, len(settings))
    if tuning == "accountant":
        multipliers = dict(zip(runs, grid_multipliers(epsilon, delta, tuple(runs.items())), strict=True))
    else:
        multipliers = {plan: sampled_multiplier(epsilon, delta, *plan) for plan in runs}
    X, y = design.encode(train)
    sparse = sparse_of(X)
    X_scored, y_scored = design.encode(scored)
    all_runs = Ledger()
    best, best_score, theta = settings[0], -np.inf, np.zeros(X.shape[1])
    for plan, multiplier in multipliers.items():
        group = [setting for setting in settings if _plan(setting) == plan]
        thetas = descend(rng, all_runs, X, y, loss=loss, settings=group, multiplier=multiplier, sparse=sparse)
        exact = _score(loss, X_scored @ thetas, y_scored)
        scores = unpaid(exact, label="scores")
        if scores.max() > best_score:
            best, best_score, theta = group[scores.argmax()], scores.max(), thetas[:, scores.argmax()]
    taken = f"the hyperparameters: chosen by the non-private scores of {len(settings)} runs"
    ledger = all_runs
    if tuning == "optimistic":
        ledger = Ledger([_steps_event(_plan(best), multipliers[_plan(best)])])
        taken += ", of which all but the released one are unpaid"
    elif tuning == "test_error":
        ledger = Ledger()
        theta = descend(rng, ledger, X, y, loss=loss, settings=[best], multiplier=multipliers[_plan(best)])[:, 0]
        taken += " on the test rows; these runs are unpaid"
    found = {"setting": asdict(best)}
    return Release(train.domain, budget, ledger, (Coefficients(theta),), found, (taken,))


def _random_search(
    train: Table,
    budget: Budget,
    rng: np.random.Generator,
    design: Design,
    loss: str,
    settings: Sequence[Setting],
    *,
    eta: float,
    gamma: float,
    score_share: float,
) -> Release:
    """A secret number of runs; the best by its private score. Nothing of the others, nor their number, is released."""
    plans = tuple(dict.fromkeys(map(_plan, settings)))
    steps, score_multiplier = search_multipliers(
        budget.epsilon, budget.delta, plans, eta=eta, gamma=gamma, score_share=score_share
    )
    multipliers = dict(zip(plans, steps, strict=True))
    largest_loss = 1.0 if loss == "logistic" else (2 * design.y_bound) ** 2
    score_event = Gaussian("score", largest_loss, score_multiplier)
    alternatives = tuple((_steps_event(plan, multiplier), score_event) for plan, multiplier in multipliers.items())
    search, ledger = RandomSearch("runs of DP-SGD", eta, gamma, alternatives), Ledger()
    X, y = design.encode(train)
    sparse = sparse_of(X)
    best, best_score, theta = settings[0], np.inf, np.zeros(X.shape[1])
    for _ in range(number_of_runs(rng, ledger, search)):
        setting, run = settings[int(rng.integers(len(settings)))], Ledger()
        steps_multiplier = multipliers[_plan(setting)]
        found = descend(rng, run, X, y, loss=loss, settings=[setting], multiplier=steps_multiplier, sparse=sparse)[:, 0]
        total = _bounded_loss(loss, X @ found, y, design.y_bound).sum()
        score = gaussian(rng, run, total, sensitivity=largest_loss, multiplier=score_multiplier, label="score")
        assert run.events in search.alternatives
        if score < best_score:
            best, best_score, theta = setting, float(score), found
    diagnostics = {"setting": asdict(best), "score": best_score}
    return Release(train.domain, budget, ledger, (Coefficients(theta),), diagnostics)


def _plan(setting: Setting) -> Plan:
    return setting.rate, setting.steps


def _steps_event(plan: Plan, multiplier: float) -> Gaussian:
    """What `descend` records of one run alone."""
    rate, steps = plan
    return Gaussian("clipped gradients", 1.0, multiplier, steps, rate)


def _score(loss: str, fitted: Floats, y: Floats) -> Floats:
    """AUC, or minus the mean squared error, of each column of fitted values (n, k)."""
    if loss == "logistic":
        return _auc(fitted, y)
    squares: Floats = np.square(fitted - y[:, None]).sum(axis=0)
    return -squares / max(len(y), 1)


def _auc(scores: Floats, y: Floats) -> Floats:
    """Area under the ROC curve of each column of scores (n, k), by ranks; 0 if y has one class only."""
    from scipy.stats import rankdata

    positive = y > 0
    pairs = positive.sum() * (~positive).sum()
    sums = rankdata(scores, axis=0)[positive].sum(axis=0) - positive.sum() * (positive.sum() + 1) / 2
    areas: Floats = sums / max(pairs, 1)
    return areas


def _bounded_loss(loss: str, scores: Floats, y: Floats, y_bound: float) -> Floats:
    """The loss of each row (n,) behind a private score."""
    from scipy.special import expit

    if loss == "logistic":
        brier: Floats = (expit(scores) - (y > 0)) ** 2
        return brier
    return (np.clip(scores, -y_bound, y_bound) - y) ** 2
