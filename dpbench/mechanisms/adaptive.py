"""Adaptive measurements: the one loop of private query release (Liu, Vietri and Wu 2021, Algorithm 1).

A method is a distributional family with its loss: where it starts, what it answers, and how it is updated.

| paper | here |
| --- | --- |
| P, n | the training rows, their number |
| Q | `QueryWorkload` |
| D_t | whatever the family keeps, of type D |
| k | `Round.picks`; `per_round` among the parameters of a method |
| q_1:t, a_1:t | `Asked` |
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpbench.data.domain import Floats
from dpbench.data.table import Table
from dpbench.errors import NoEstimateError, UserError, check_part
from dpbench.inference.query_workload import QueryWorkload
from dpbench.mechanisms.fitting import LARGEST_EPSILON, check_settings
from dpbench.privacy.accounting import check_calibration, zcdp_rho
from dpbench.privacy.budget import Budget
from dpbench.privacy.ledger import Ledger
from dpbench.privacy.noise import exponential_mechanisms, gaussian

D = TypeVar("D")
Places = NDArray[np.intp]


@dataclass(frozen=True)
class Round:
    """What one round asks: `picks` selections at `epsilon` each, and their measurements with noise of `sigma`.

    At epsilon 0 queries are drawn uniformly, and no row is looked at. sigma is in the unit of an answer; None: nothing
    is measured. `replacement`: whether a round may select a query twice.
    """

    picks: int
    epsilon: float
    sigma: float | None = None
    replacement: bool = False


@dataclass(frozen=True)
class Asked:
    """What was selected so far, the newest last, and measured: q_1:t and a_1:t.

    **Shapes**: `queries` (t,), places in the workload; `signs` (t,), -1 for the negation of a query (`Family.signed`),
    else 1; `answers` (t,) with noise of `sigma`, nan where nothing is measured. `newest`: how many are of this round.
    """

    queries: Places
    signs: Floats
    answers: Floats
    newest: int
    sigma: float | None

    def distinct(self, repeated: str = "mean") -> tuple[Places, Floats]:
        """Each query once, in the order in which they were first measured, with the mean of its answers or the newest.

        >>> asked = Asked(np.array([4, 2, 4]), np.ones(3), np.array([0.1, 0.5, 0.3]), 1, 0.1)
        >>> asked.distinct()
        (array([4, 2]), array([0.2, 0.5]))
        >>> asked.distinct("newest")
        (array([4, 2]), array([0.3, 0.5]))
        """
        queries, first, place = np.unique(self.queries, return_index=True, return_inverse=True)
        answers = np.bincount(place, weights=self.answers) / np.bincount(place)
        if repeated == "newest":
            answers[place] = self.answers  # the last of them stays
        order = np.argsort(first)
        return queries[order], answers[order]


class Family(Protocol[D]):
    """A distributional family and its loss.

    `signed`: whether the queries are Q and their negations, selected by q(P) - q(D) and not by its absolute value.
    """

    signed: ClassVar[bool]

    def initial(self) -> D:
        """D_0."""

    def answers(self, D: D) -> Floats:
        """q(D) of all queries of the workload: (m,)."""

    def update(self, D: D, asked: Asked) -> D:
        """D_t, the minimiser of the loss, or what the method takes for it, from D_t-1. It sees no row."""


def adaptive_measurements(
    train: Table,
    queries: QueryWorkload,
    family: Family[D],
    rounds: Sequence[Round],
    rng: np.random.Generator,
    ledger: Ledger,
    *,
    repeats: bool = True,
) -> D:
    """D_T: in each round select queries that D answers badly, measure them, and update D.

    **Source** Liu, Vietri and Wu 2021, Algorithm 1 and Appendix B.1. The weight of a query is exp(epsilon n
    |q(P) - q(D)| / 2), where B.1 has alpha epsilon_0 for epsilon / 2; Algorithm 3's alpha epsilon_0 / 2 is a slip.
    **Privacy** Neighbours replace one record, and n is public: an answer changes by 1/n at most. A round of K picks
    costs the zCDP K epsilon^2 / 8, and K / (2 n^2 sigma^2) if it measures. The noise is fixed beforehand.
    **Shapes** See `QueryWorkload`.
    `repeats`: whether a query may be selected again in a later round.

    Raises `NoEstimateError` for a family that no longer answers by numbers.
    """
    n, m = len(train), len(queries)
    true = queries.of_rows(train.codes)
    D, asked = family.initial(), Asked(np.zeros(0, np.intp), np.zeros(0), np.zeros(0), 0, None)
    for t, one in enumerate(rounds, start=1):
        answers = family.answers(D)
        if not np.isfinite(answers).all():
            raise NoEstimateError(f"after {t - 1} rounds the answers of the distribution are no numbers: it diverged")
        gap = true - answers
        scores = np.concatenate([gap, -gap]) if family.signed else np.abs(gap)
        if repeats:  # Sample
            chosen = _select(rng, ledger, scores, one, n)
        else:
            left = np.delete(np.arange(len(scores)), asked.queries)
            chosen = left[_select(rng, ledger, scores[left], one, n)]
        picked, signs = chosen % m, np.where(chosen < m, 1.0, -1.0)
        measured = np.full(one.picks, np.nan)
        if one.sigma is not None:  # Measure
            sensitivity = math.sqrt(one.picks) / n
            multiplier = one.sigma / sensitivity
            measured = gaussian(
                rng, ledger, true[picked], sensitivity=sensitivity, multiplier=multiplier, label="answers"
            )
        asked = Asked(
            np.concatenate([asked.queries, picked]),
            np.concatenate([asked.signs, signs]),
            np.concatenate([asked.answers, measured]),
            one.picks,
            one.sigma,
        )
        D = family.update(D, asked)  # Update
    return D


def _select(rng: np.random.Generator, ledger: Ledger, scores: Floats, one: Round, n: int) -> Places:
    """The places of the round's picks among the scores."""
    if one.epsilon == 0:
        return rng.choice(len(scores), one.picks, replace=one.replacement)
    return exponential_mechanisms(
        rng,
        ledger,
        scores,
        count=one.picks,
        replacement=one.replacement,
        sensitivity=1 / n,
        epsilon=one.epsilon,
        label="selection",
    )


def run_equal_rounds(
    mechanism: str,
    train: Table,
    budget: Budget,
    rng: np.random.Generator,
    queries: QueryWorkload,
    family: Family[D],
    *,
    rounds: int,
    per_round: int,
    alpha: float,
    calibration: str,
    repeats: bool = True,
) -> tuple[D, Ledger, float]:
    """D_T after `equal_rounds`, with the ledger, and the rho that they cost together.

    Raises `UserError` for a parameter out of range or a budget that `rho_of` refuses.
    """
    check_rounds(mechanism, queries, rounds=rounds, per_round=per_round, repeats=repeats)
    check_part(f"{mechanism}: alpha", alpha)
    rho, ledger = rho_of(mechanism, train, budget, calibration), Ledger()
    plan = equal_rounds(rho, len(train), rounds=rounds, per_round=per_round, alpha=alpha)
    return adaptive_measurements(train, queries, family, plan, rng, ledger, repeats=repeats), ledger, rho


def equal_rounds(rho: float, n: int, *, rounds: int, per_round: int, alpha: float) -> list[Round]:
    """T rounds of K queries that cost rho together, the part alpha^2 / (alpha^2 + (1 - alpha)^2) of it for selections.

    Appendix B.1, which has K = 1: epsilon_0 = sqrt(2 rho / (T K (alpha^2 + (1 - alpha)^2))), a selection at epsilon =
    2 alpha epsilon_0, a measurement with sigma = 1 / (n (1 - alpha) epsilon_0), none if alpha = 1.
    """
    epsilon_0 = math.sqrt(2 * rho / (rounds * per_round * (alpha**2 + (1 - alpha) ** 2)))
    sigma = 1 / (n * (1 - alpha) * epsilon_0) if alpha < 1 else None
    return [Round(per_round, 2 * alpha * epsilon_0, sigma)] * rounds


def rho_of(mechanism: str, train: Table, budget: Budget, calibration: str) -> float:
    """The zCDP that the budget allows: by Theorem 1 (`paper`), or by the tight conversion.

    Gaussian DP would allow less: for alpha of at least 1/2 its selections are dearer than its conversion gains.

    Raises `UserError` unless neighbours replace one record, there is a row and rho is positive and finite.
    """
    check_calibration(calibration)
    if budget.relation != "replace":
        raise UserError(f"{mechanism} takes n as public: its neighbours replace one record; set relation=replace")
    if not len(train):
        raise UserError(f"{mechanism} needs one training row or more")
    if not budget.epsilon <= LARGEST_EPSILON:
        raise UserError(f"{mechanism} needs a finite epsilon; use a large one, such as 1e6, to see its limit")
    rho = (published_rho if calibration == "paper" else zcdp_rho)(budget.epsilon, budget.delta)
    if not 0 < rho < math.inf:
        raise UserError(
            f"{mechanism}: epsilon = {budget.epsilon:g} and delta = {budget.delta:g} give rho = {rho:g}, outside the "
            "range of the arithmetic"
        )
    return rho


def published_rho(epsilon: float, delta: float) -> float:
    """The rho at which Theorem 1's bound, rho + 2 sqrt(rho log(1/delta)), is epsilon.

    >>> n, epsilons = 43944, (0.1, 0.5, 1.0)
    >>> [round(published_rho(epsilon, n**-2) / zcdp_rho(epsilon, n**-2), 2) for epsilon in epsilons]
    [0.69, 0.76, 0.79]
    """
    log = math.log(1 / delta)
    return (epsilon / (math.sqrt(log + epsilon) + math.sqrt(log))) ** 2


def check_rounds(mechanism: str, queries: QueryWorkload, *, rounds: int, per_round: int, repeats: bool = True) -> None:
    """Raises `UserError` for a number below 1, or for more different queries than the workload has."""
    check_settings(mechanism, tolerance=None, rounds=rounds, per_round=per_round)
    asked = per_round if repeats else rounds * per_round
    if asked > len(queries):
        lower = "per_round" if repeats else "rounds or per_round"
        raise UserError(
            f"{mechanism} would ask {asked:,} different queries, and the workload has {len(queries):,}; lower {lower}"
        )
