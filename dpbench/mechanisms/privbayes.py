"""PrivBayes: a Bayesian network of noisy conditional distributions (Zhang et al. 2017); and the same with PGM."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from dpbench.data.domain import Clique, Codes, Floats
from dpbench.data.table import Table
from dpbench.errors import UserError, check_known, check_part, check_positive
from dpbench.inference import Measurement, candidate_mb
from dpbench.inference.sampling import rounded_column
from dpbench.mechanisms.dependence import SCORES, marginals_in_parts
from dpbench.mechanisms.fitting import (
    ENGINES,
    LARGEST_EPSILON,
    Costs,
    check_answers,
    check_model,
    check_settings,
    check_sigma,
    engine_of,
    rows_if_public,
)
from dpbench.mechanisms.reconstruction import EXACT_SIGMA
from dpbench.mechanisms.workload import Workload, cliques_of
from dpbench.privacy.accounting import check_calibration
from dpbench.privacy.budget import Budget
from dpbench.privacy.discrete import is_discrete, whole
from dpbench.privacy.ledger import Ledger
from dpbench.privacy.noise import exponential_mechanism, gaussian, laplace
from dpbench.privacy.sensitivity import of_marginal
from dpbench.releases import Distribution, Marginals, Part, Release, SyntheticRows

COUNT_SHARE = 0.01  # of the budget for n, where it is private
MOST_CANDIDATES = 2000  # of a selection

Pair = tuple[str, Clique]  # an attribute and its parents


def privbayes(
    train: Table,
    budget: Budget,
    rng: np.random.Generator,
    *,
    score: str = "R",
    theta: float = 4.0,
    beta: float = 0.3,
    max_cells: int = 1_000_000,
    workload: Workload = 2,
    engine: str = "network",
    max_model_mb: float = 80,
    iterations: int = 1000,
    tolerance: float | None = None,
    rows: int | None = None,
    calibration: str = "tight",
    noise: str = "continuous",
) -> Release:
    """Give each attribute parents among those before it, one after the other, and measure it together with them.

    **Source** Zhang, Cormode, Procopiuc, Srivastava and Xiao 2017, "PrivBayes: Private data release via Bayesian
    networks", TODS 42(4), DOI 10.1145/3134428: theta-usefulness, maximal parent sets and the scores I, F and R, without
    its hierarchies of levels. Written without the full text: its numbers of sections are to be checked, and what is
    claimed of privacy is proven here, but for the change of I, which is cited and was enumerated. With an `engine`,
    PrivBayes+PGM of McKenna, Sheldon and Miklau 2019 (arXiv 1901.09136).
    **Privacy** Add/remove, or replace one. Of d attributes, d - 1 selections have the part beta of the budget, d
    marginals the rest; where a record is added or removed, n has 1 % of it first. The number of draws is fixed, and so
    is the noise; which marginals are counted depends on earlier answers only. `paper`: pure DP. Exponential mechanisms
    at beta epsilon / (d - 1), and Laplace noise of scale Delta_1 d / ((1 - beta) epsilon); their sum is epsilon.
    `tight`: in mu^2/2 of Gaussian DP, with Gaussian noise (`Costs`). The sensitivities of the scores, times n, are
    proven in `mechanisms.dependence`; those of marginals are 1, or 2 in l1 and sqrt 2 in l2.
    **Shapes** Rows (m, d), m the public or the noisy number of rows, or `rows`.
    **Departures** 1. The paper replaces a record, so that n is public; adding or removing one is ours, with R or F
    alone. 2. A family has at most `max_cells` cells, and a round at most 2,000 candidates: where more sets are useful,
    half as many cells are allowed. 3. Rows are drawn by randomised rounding, not independently. 4. `tight`, whose mean
    |noise| takes the place of Laplace's in usefulness, and `engine`, which limits its model.

    `score`: R, I (replace alone) or F (attributes of two levels). `theta`: with m cells, a family is useful if n / m is
    at least theta times the mean |noise| of a cell. `engine`: `network`, or one of `engine_of`, which fits a
    distribution to the measured families: then the release has the marginals of the `workload` too.
    """
    domain, d = train.domain, len(train.domain.names)
    check_known("score", score, SCORES)
    check_known("engine", engine, ("network", *ENGINES))
    check_part("privbayes: beta", beta)
    check_positive("privbayes", theta=theta)
    check_settings("privbayes", tolerance=tolerance, iterations=iterations, rows=rows, max_cells=max_cells)
    fitting = None if engine == "network" else engine_of(engine, iterations=iterations, tolerance=tolerance)
    cliques = () if fitting is None else cliques_of(domain, workload)
    check_answers("privbayes", domain.sizes, cliques)
    n = rows_if_public("privbayes", train, budget, None)
    binary = max(domain.sizes.values()) <= 2
    sensitivity = SCORES[score].sensitivity(budget.relation, len(train) if n is None else n, binary)
    if sensitivity is None:
        where = "relation=replace" if score == "I" else "attributes of two levels"
        raise UserError(f"privbayes: score={score} is for {where}; choose score=R")
    if fitting is not None:
        check_model("privbayes", "the model without parents", fitting.smallest_mb(domain.sizes), max_model_mb)
    plan = _Plan.of(budget, calibration, d, beta, n is None, noise)
    ledger, (noise_rng, order_rng, rows_rng) = Ledger(), rng.spawn(3)

    size = float(n) if n is not None else plan.count(noise_rng, ledger, train)
    cells = min(max(size, 1.0) / (theta * plan.mean_noise), float(max_cells))  # of a useful family
    limit = None if fitting is None else max_model_mb
    scores: dict[Pair, float] = {}
    network: list[Pair] = [(domain.names[order_rng.integers(d)], ())]
    while len(network) < d:  # GreedyBayes
        candidates = _candidates(domain.sizes, network, cells, limit)
        _score(train, [pair for pair in candidates if pair not in scores], score, scores)
        pick = exponential_mechanism(
            noise_rng, ledger, [scores[pair] for pair in candidates],
            sensitivity=sensitivity, epsilon=plan.epsilon, label="selection", noise=noise,
        )  # fmt: skip
        network.append(candidates[pick])
    measured = [plan.measure(noise_rng, ledger, train, _family(domain.names, *pair)) for pair in network]

    choice = {"network": [[name, list(parents)] for name, parents in network], "cells": cells, "total": size}
    diagnostics = {**choice, "sigma": plan.sigma, "engine": engine}
    wanted = rows or max(round(size), 1)
    parts: tuple[Part, ...]
    if fitting is None:
        parts = (SyntheticRows(Table(domain, _sampled(domain.sizes, network, measured, wanted, rows_rng))),)
    else:
        public = [] if n is None else [Measurement((), np.asarray(float(max(n, 1))), EXACT_SIGMA)]
        model = fitting.estimate(domain.sizes, [*measured, *public])
        distribution = Distribution(model)
        sds = tuple((m.clique, m.sigma) for m in measured) if plan.costs else ()
        synthetic = SyntheticRows(distribution.sample(domain, rows or max(round(model.total), 1), rows_rng))
        parts = (Marginals(model.answer(cliques), sds), synthetic, distribution)
        diagnostics |= {"total": model.total, "model_mb": model.size_mb}
    return Release(domain, budget, ledger, parts, diagnostics)


@dataclass(frozen=True)
class _Plan:
    """The noise: `epsilon` of a selection, `scale` of the noise on a cell, `count_scale` of that on n.

    `costs`: of Gaussian noise; None for Laplace noise.
    """

    epsilon: float
    scale: float
    count_scale: float
    l1: float
    costs: Costs | None
    noise: str

    @classmethod
    def of(cls, budget: Budget, calibration: str, d: int, beta: float, counts: bool, noise: str) -> _Plan:
        """The plan for d attributes; `counts`: whether n is private."""
        check_calibration(calibration)
        first, beta = (COUNT_SHARE if counts else 0.0), (beta if d > 1 else 0.0)
        rest, times = 1 - first, max(d - 1, 1)
        if calibration == "tight":
            costs = Costs.of("privbayes", budget, calibration)
            scale = costs.sigma((1 - beta) * rest * costs.total, d)
            selection = costs.epsilon(beta * rest * costs.total, times) if d > 1 else 0.0
            plan = cls(selection, scale, costs.sigma(first * costs.total) if counts else 0.0, costs.l1, costs, noise)
        else:
            if is_discrete(noise):
                raise UserError("privbayes: calibration=paper has Laplace noise, and no discrete one; choose tight")
            if not budget.epsilon <= LARGEST_EPSILON:
                raise UserError("privbayes needs a finite epsilon; use a large one, such as 1e6, to see its limit")
            l1, _ = of_marginal(budget.relation)
            scale = l1 * d / ((1 - beta) * rest * budget.epsilon)
            count = l1 / (first * budget.epsilon) if counts else 0.0
            plan = cls(beta * rest * budget.epsilon / times, scale, count, l1, None, noise)
        check_sigma("privbayes", plan.scale)
        return plan

    @property
    def mean_noise(self) -> float:
        """The mean of |noise| of a cell."""
        return self.scale * (math.sqrt(2 / math.pi) if self.costs else 1.0)

    @property
    def sigma(self) -> float:
        """The standard deviation of the noise of a cell."""
        return self.scale * (1.0 if self.costs else math.sqrt(2))

    def count(self, rng: np.random.Generator, ledger: Ledger, train: Table) -> float:
        """The number of rows with noise."""
        return float(self._noisy(rng, ledger, np.asarray(len(train)), self.count_scale, "number of rows"))

    def measure(self, rng: np.random.Generator, ledger: Ledger, train: Table, clique: Clique) -> Measurement:
        """A marginal with noise."""
        noisy = self._noisy(rng, ledger, train.marginal(clique), self.scale, f"marginal {','.join(clique)}")
        return Measurement(clique, noisy, self.sigma)

    def _noisy(
        self, rng: np.random.Generator, ledger: Ledger, value: Floats | Codes, scale: float, label: str
    ) -> Floats:
        if self.costs is None:
            return laplace(rng, ledger, value, sensitivity=self.l1, multiplier=scale / self.l1, label=label)
        l2 = self.costs.l2
        return gaussian(rng, ledger, whole(value, self.noise), sensitivity=l2, multiplier=scale / l2, label=label)


# --- the network ---------------------------------------------------------------------------------------------------


def _family(names: Sequence[str], name: str, parents: Clique) -> Clique:
    """An attribute and its parents, in the order of the domain."""
    return tuple(other for other in names if other == name or other in parents)


def _candidates(sizes: Mapping[str, int], network: Sequence[Pair], cells: float, limit: float | None) -> list[Pair]:
    """Each attribute that has no place yet, with each maximal set of parents; with none where no set is useful.

    `limit`: of the junction tree of all families, in MB.
    """
    placed = [name for name in sizes if name in {before for before, _ in network}]
    left = [name for name in sizes if name not in placed]
    most = MOST_CANDIDATES
    while len(found := list(islice(_pairs(sizes, placed, left, cells), most + 1))) > most:
        cells /= 2
    if limit is not None:
        families, more = ([_family(list(sizes), *pair) for pair in pairs] for pairs in (network, found))
        mb = candidate_mb(sizes, families, more)
        found = [pair for pair, one in zip(found, mb, strict=True) if one <= limit]
    alone = set(left) - {name for name, _ in found}
    return [*found, *((name, ()) for name in left if name in alone)]


def _pairs(sizes: Mapping[str, int], placed: Sequence[str], left: Sequence[str], cells: float) -> Iterator[Pair]:
    for name in left:
        yield from ((name, parents) for parents in maximal_sets(sizes, placed, cells / sizes[name]))


def maximal_sets(sizes: Mapping[str, int], names: Sequence[str], cells: float) -> Iterator[Clique]:
    """The sets of names of so many cells at most to which no other name can be added (PrivBayes, Algorithm 5).

    None where not even the empty set, of one cell, has so few.

    >>> list(maximal_sets({"a": 2, "b": 3, "c": 4}, ["a", "b", "c"], 8))
    [('a', 'c'), ('a', 'b')]
    """
    ordered = sorted(names, key=lambda name: -sizes[name])  # few sets hold a large one: it is decided on first

    def below(place: int, left: float, chosen: Clique, least: float) -> Iterator[Clique]:
        """`least`: the size of the smallest name that was left out; it must not fit, whatever is chosen after it."""
        if place == len(ordered):
            yield tuple(name for name in names if name in chosen)
            return
        size = sizes[ordered[place]]
        if size <= left:
            yield from below(place + 1, left / size, (*chosen, ordered[place]), least)
        rest = math.prod(sizes[name] for name in ordered[place + 1 :])
        if left < rest * min(least, size):
            yield from below(place + 1, left, chosen, min(least, size))

    if cells >= 1:
        yield from below(0, cells, (), math.inf)


def _score(train: Table, pairs: Sequence[Pair], score: str, found: dict[Pair, float]) -> None:
    """Put the scores of these pairs into `found`; a marginal that several of them share is counted once."""
    names, of = train.domain.names, SCORES[score].of
    families: dict[Clique, list[Pair]] = {}
    for pair in pairs:
        families.setdefault(_family(names, *pair), []).append(pair)
    for clique, table in marginals_in_parts(train, list(families)):
        for name, parents in families[clique]:
            found[name, parents] = of(_conditional(table, clique, name))


def _conditional(table: Floats, family: Clique, name: str) -> Floats:
    """The family's table with a row for each cell of the parents and a column for each level of the attribute."""
    moved = np.moveaxis(table, family.index(name), -1)
    return moved.reshape(-1, moved.shape[-1])


def _sampled(
    sizes: Mapping[str, int],
    network: Sequence[Pair],
    measured: Sequence[Measurement],
    rows: int,
    rng: np.random.Generator,
) -> Codes:
    """Rows (rows, d), attribute by attribute from the noisy conditionals, whose negative cells are 0.

    For parents of which nothing was counted all levels are as likely.
    """
    names = list(sizes)
    codes = np.zeros((rows, len(names)), dtype=np.int64)
    for (name, parents), m in zip(network, measured, strict=True):
        groups = np.zeros(rows, dtype=np.int64)
        for parent in (other for other in m.clique if other in parents):
            groups = groups * sizes[parent] + codes[:, names.index(parent)]
        weights = np.maximum(_conditional(m.values, m.clique, name), 0.0)
        codes[:, names.index(name)] = rounded_column(weights, groups, rng)
    return codes
