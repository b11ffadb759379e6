"""PrivMRF: a Markov random field on marginals within a graph of noisy dependences (Cai et al. 2021)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, islice

import numpy as np

from dpbench.data.domain import Clique, Floats
from dpbench.data.table import Table
from dpbench.errors import check_positive
from dpbench.inference import Measurement, Model, candidate_mb, model_mb
from dpbench.inference.trees import bits, junction_tree, mask_of
from dpbench.mechanisms.dependence import from_independence, marginals_in_parts, of_independence, real_numbers
from dpbench.mechanisms.fitting import (
    Costs,
    check_answers,
    check_model,
    check_settings,
    check_sigma,
    engine_of,
    noisy_marginal,
    rows_if_public,
)
from dpbench.mechanisms.privbayes import COUNT_SHARE, maximal_sets
from dpbench.mechanisms.reconstruction import EXACT_SIGMA
from dpbench.mechanisms.workload import Workload, cliques_of
from dpbench.privacy.budget import Budget
from dpbench.privacy.ledger import Ledger
from dpbench.privacy.noise import gaussian
from dpbench.releases import Distribution, Marginals, Release, SyntheticRows

GRAPH, NORMS = 0.1, 0.1  # of the budget: for the scores of pairs, and for distances in the rounds (authors' code)
PENALTY = 1e-8  # of the score of a graph for a cell of its junction tree (authors' code)
EDGES = 50  # of the highest scores that are tried in a step of the search for a graph
MOST_SETS = 2000  # of parents, or of candidates in a clique


def privmrf(
    train: Table,
    budget: Budget,
    rng: np.random.Generator,
    *,
    theta: float = 6.0,
    extra: float = 0.8,
    rounds: int = 8,
    candidates: int = 400,
    max_attributes: int = 6,
    workload: Workload = 2,
    max_model_mb: float = 80,
    iterations: int = 1000,
    tolerance: float | None = None,
    rows: int | None = None,
    engine: str = "native",
    noise: str = "continuous",
) -> Release:
    """Find a graph of strong dependences, measure marginals within its cliques, and in rounds those answered worst.

    **Source** Cai, Lei, Wei and Xiao 2021, "Data synthesis via differentially private Markov random fields", VLDB
    14(11), DOI 10.14778/3476249.3476272, by the authors' code (caicre/PrivMRF), whose settings these are, without its
    hierarchies of levels.
    **Privacy** Add/remove, or replace one. All noise is Gaussian, and its mu^2 adds up (Gaussian DP, as in the code);
    which marginals, and so their noise, depends on earlier answers, so that a filter holds the total. A tenth is for
    the scores R of all m pairs, in counts, which change by 2 at most, or 3 + 2 / n (`dependence.of_independence`), so
    together by sqrt(m) times that in l2; a tenth for the l1 distances of up to `candidates` marginals from the model,
    in each round: a distance changes by at most the l1 sensitivity of a marginal, 1 or 2, so q of them by sqrt(q) times
    that; the rest for marginals, of l2 sensitivity 1 or sqrt 2, all with the same noise. Where a record is added or
    removed, n has 1 % of the budget first.
    **Shapes** A marginal on r has the shape `domain.shape(r)`.
    **Departures** 1. The code pays nothing for n. 2. A step of the search for the graph tries the 50 best edges, and
    ends where none raises the score. 3. The first marginals are filled up to d by their scores, not at random. 4. A
    candidate must keep the model of what is measured within `max_model_mb`, which also limits the graph. 5. The fit is
    that of the other mechanisms. 6. Replacing a record is ours.

    `theta`: a marginal of m cells is useful if n / m is at least theta times the mean |noise| of a cell. `extra`: t of
    the paper; int(t d) marginals are measured in the rounds, of which there are d / 2, at most `rounds`. `candidates`:
    drawn in a round. `max_attributes`: of a marginal. The other parameters are those of `aim`.
    """
    domain, sizes, d = train.domain, train.domain.sizes, len(train.domain.names)
    cliques, pairs = cliques_of(domain, workload), list(combinations(domain.names, 2))
    check_positive("privmrf", theta=theta, extra=extra)
    check_settings("privmrf", tolerance=tolerance, iterations=iterations, rows=rows, rounds=rounds)
    check_settings("privmrf", tolerance=None, candidates=candidates, max_attributes=max_attributes)
    fitting = engine_of(engine, iterations=iterations, tolerance=tolerance)
    check_model("privmrf", "the model of the one-way marginals", fitting.smallest_mb(sizes), max_model_mb)
    check_answers("privmrf", sizes, cliques)
    n = rows_if_public("privmrf", train, budget, None)
    costs, ledger = Costs.of("privmrf", budget, "tight"), Ledger()
    costs.open_filter(ledger)
    noise_rng, choice_rng, rows_rng = rng.spawn(3)
    noisy = _Noisy(train, costs, ledger, noise_rng, noise)

    size, share = float(len(train)), costs.total
    if n is None:
        share = (1 - COUNT_SHARE) * costs.total
        size = max(float(noisy.numbers(np.array([size]), 1.0, costs.total - share, "number of rows")[0]), 1.0)
    sensitivity = of_independence(budget.relation, len(train) if n is None else n) / 2
    dependence = noisy.dependence(pairs, sensitivity, size, GRAPH * share) if pairs else {}
    joint = (1 - GRAPH - NORMS) * share if pairs else share
    planned = d + int(extra * d)
    useful = size / (theta * math.sqrt(2 / math.pi) * costs.sigma(joint, planned))  # cells
    graph = dependence_graph(sizes, dependence, max_model_mb)
    first = first_marginals(sizes, graph, dependence, useful, choice_rng)
    weights = _within(sizes, graph, useful, max_attributes, first)
    more = min(planned - d, len(weights))
    sigma = costs.sigma(joint if more or not pairs else joint + NORMS * share, len(first) + more)
    check_sigma("privmrf", sigma)

    measured = [] if n is None else [Measurement((), np.asarray(float(max(n, 1))), EXACT_SIGMA)]
    measured += [noisy.marginal(r, sigma) for r in first]
    model = fitting.estimate(sizes, measured)
    steps = min(max(min(d // 2, rounds), 1), more)
    for step in range(steps):
        asked = _drawn(weights, candidates, choice_rng)
        distances = noisy.distances(model, asked, NORMS * share / steps)
        wanted = more // steps + (step < more % steps)
        for r in (asked[place] for place in np.argsort(-distances, kind="stable")):
            if wanted and model_mb(sizes, [*(m.clique for m in measured), r]) <= max_model_mb:
                measured.append(noisy.marginal(r, sigma))
                del weights[r]
                wanted -= 1
        model = fitting.estimate(sizes, measured, warm_start=model)

    distribution = Distribution(model)
    measurements = tuple((m.clique, m.sigma) for m in measured if m.clique)
    choice = {"rho": costs.total, "sigma": sigma, "graph": [list(r) for r in graph], "first": len(first)}
    choice |= {"marginals": [list(r) for r, _ in measurements], "cells": useful}
    diagnostics = {**choice, "total": model.total, "model_mb": model.size_mb, "engine": engine}
    synthetic = SyntheticRows(distribution.sample(domain, rows or max(round(model.total), 1), rows_rng))
    parts = (Marginals(model.answer(cliques), measurements), synthetic, distribution)
    return Release(domain, budget, ledger, parts, diagnostics)


@dataclass(frozen=True)
class _Noisy:
    """Answers about the rows with Gaussian noise, at what they may cost."""

    train: Table
    costs: Costs
    ledger: Ledger
    rng: np.random.Generator
    noise: str

    def numbers(self, exact: Floats, sensitivity: float, cost: float, label: str) -> Floats:
        """Numbers (m,) of this l2 sensitivity together."""
        multiplier, value = self.costs.sigma(cost) / self.costs.l2, real_numbers(exact, self.noise)
        return gaussian(self.rng, self.ledger, value, sensitivity=sensitivity, multiplier=multiplier, label=label)

    def dependence(self, pairs: Sequence[Clique], sensitivity: float, rows: float, cost: float) -> dict[Clique, float]:
        """R of each pair, as a share of the rows; its sensitivity is in counts."""
        exact = np.array([from_independence(table) / 2 for _, table in marginals_in_parts(self.train, pairs)])
        scores = self.numbers(exact, sensitivity * math.sqrt(len(pairs)), cost, "R of all pairs")
        return dict(zip(pairs, (scores / max(rows, 1.0)).tolist(), strict=True))

    def distances(self, model: Model, cliques: Sequence[Clique], cost: float) -> Floats:
        """||h - m||_1 of each marginal h of the rows and that of the model: (m,)."""
        answers = model.answer(cliques)
        exact = np.array([np.abs(h - answers[r]).sum() for r, h in marginals_in_parts(self.train, cliques)])
        return self.numbers(exact, self.costs.l1 * math.sqrt(len(cliques)), cost, "distances from the model")

    def marginal(self, r: Clique, sigma: float) -> Measurement:
        """A marginal with noise of this standard deviation."""
        counts = self.train.marginal(r)
        return noisy_marginal(self.rng, self.ledger, r, counts, sigma, l2=self.costs.l2, noise=self.noise)


def dependence_graph(sizes: Mapping[str, int], dependence: Mapping[Clique, float], max_mb: float) -> list[Clique]:
    """The cliques of a triangulated graph whose edges have large noisy scores, with a junction tree of `max_mb`.

    Greedy: the edge is added that raises the sum of the scores of all edges, those of the triangulation too, less the
    penalty for cells, the most.
    """
    names, shape = list(sizes), tuple(sizes.values())
    index = {name: place for place, name in enumerate(names)}

    def cliques_of_edges(edges: Sequence[Clique]) -> list[Clique]:
        found = junction_tree([mask_of(edge, index) for edge in edges] or [1], shape).cliques
        return [tuple(names[i] for i in bits(clique)) for clique in found]

    def score(edges: Sequence[Clique]) -> float:
        found = cliques_of_edges(edges)
        held = {pair for clique in found for pair in combinations(clique, 2)}
        cells = sum(math.prod(sizes[name] for name in clique) for clique in found)
        return math.fsum(dependence[pair] for pair in sorted(held)) - PENALTY * cells

    edges: list[Clique] = []
    best = score(edges)
    left = sorted(dependence, key=lambda pair: -dependence[pair])
    while left:
        left = [pair for pair, mb in zip(left, candidate_mb(sizes, edges, left), strict=True) if mb <= max_mb]
        tried = {pair: score([*edges, pair]) for pair in left[:EDGES]}
        chosen = max(tried, key=tried.__getitem__, default=None)
        if chosen is None or tried[chosen] <= best:
            break
        edges, best = [*edges, chosen], tried[chosen]
        left.remove(chosen)
    return cliques_of_edges(edges)


def first_marginals(
    sizes: Mapping[str, int],
    graph: Sequence[Clique],
    dependence: Mapping[Clique, float],
    cells: float,
    rng: np.random.Generator,
) -> list[Clique]:
    """For each attribute the family of the highest score that a Bayesian network within a clique gives it.

    The networks are greedy, as those of PrivBayes. Their score is that of correlation-based feature selection: of an
    attribute a with the parents p, sum_p R(a, p) / sqrt(k + sum_(p, q) R(p, q)), at least 1 under the root. Attributes
    in no family are measured alone; up to d marginals, further families follow by their score.
    """
    names = list(sizes)

    def of(a: str, b: str) -> float:
        return dependence[(a, b) if names.index(a) < names.index(b) else (b, a)]

    def score(name: str, parents: Clique) -> float:
        inner = sum(of(a, b) for a, b in combinations(parents, 2))
        return sum(of(name, parent) for parent in parents) / math.sqrt(max(len(parents) + inner, 1.0))

    found: list[tuple[float, str, Clique]] = []
    for clique in graph:
        placed = [clique[rng.integers(len(clique))]]
        while len(placed) < len(clique):
            left = [name for name in clique if name not in placed]
            options = [
                (score(name, parents), name, parents)
                for name in left
                for parents in islice(maximal_sets(sizes, placed, cells / sizes[name]), MOST_SETS)
                if parents
            ]
            if not options:
                break
            value, name, parents = max(options)
            placed.append(name)
            found.append((value, name, tuple(other for other in names if other == name or other in parents)))
    found.sort(key=lambda one: -one[0])
    best: dict[str, Clique] = {}
    for _, name, family in found:
        best.setdefault(name, family)
    chosen = list(dict.fromkeys(best.values()))
    chosen = [r for r in chosen if not any(set(r) < set(other) for other in chosen)]
    chosen += [(name,) for name in names if not any(name in r for r in chosen)]
    others = [r for _, _, r in found if not any(set(r) <= set(other) for other in chosen)]
    return [*chosen, *islice(dict.fromkeys(others), max(len(names) - len(chosen), 0))]


def _within(
    sizes: Mapping[str, int], graph: Sequence[Clique], cells: float, most: int, measured: Sequence[Clique]
) -> dict[Clique, float]:
    """The marginals within the cliques that are useful, or of one attribute, with their weights: the larger the clique
    and the fewer its marginals, the more each counts.
    """
    weights: dict[Clique, float] = {}
    for clique in graph:
        found = [r for r in islice(_subsets(sizes, clique, cells, most), MOST_SETS) if r not in measured]
        for r in found:
            weights[r] = weights.get(r, 0.0) + len(clique) ** 2 / len(found)
    return weights


def _subsets(sizes: Mapping[str, int], clique: Clique, cells: float, most: int) -> Iterator[Clique]:
    """The sets of up to `most` names of so many cells at most, the smaller ones first; single names always."""
    level: list[Clique] = [(name,) for name in clique]
    while level:
        yield from level
        level = [
            (*r, name)
            for r in level
            if len(r) < most
            for name in clique[clique.index(r[-1]) + 1 :]
            if math.prod(sizes[other] for other in (*r, name)) <= cells
        ]


def _drawn(weights: Mapping[Clique, float], count: int, rng: np.random.Generator) -> list[Clique]:
    """Up to so many of the marginals, drawn by their weights."""
    every = list(weights)
    if len(every) <= count:
        return every
    p = np.array(list(weights.values()))
    return [every[place] for place in sorted(rng.choice(len(every), count, replace=False, p=p / p.sum()))]
