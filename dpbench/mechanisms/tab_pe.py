"""Tab-PE: rows that walk at random, kept where many records are nearest to them (Tran et al. 2026)."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dpbench.data.domain import Attribute, Codes, Domain, Floats
from dpbench.data.table import Table
from dpbench.inference.sampling import rounded_column
from dpbench.mechanisms.fitting import Costs, check_settings, check_sigma, noisy_marginal, rows_if_public
from dpbench.privacy.budget import Budget
from dpbench.privacy.discrete import whole
from dpbench.privacy.ledger import Ledger
from dpbench.privacy.noise import gaussian
from dpbench.releases import Release, SyntheticRows

RATES, POWER = (0.5, 0.01), 0.2  # of variation: the first and the last, and how fast it falls (authors' code)
DRAWN = 4  # iterations that draw rows by their votes, before others keep those with most (authors' code)
VARIATIONS = 3  # of each row that is kept (authors' code)
DEVIATIONS = 1.5  # of the noise, in the mean votes of a row: about those of the authors' two largest examples
FEWEST, MOST = 150, 5000  # rows of the authors' smallest and largest examples
EXACT = 2**24  # whole numbers up to here are exact in single precision
AT_ONCE = 2**20  # distances in memory: they fit a processor's cache


def tab_pe(
    train: Table,
    budget: Budget,
    rng: np.random.Generator,
    *,
    iterations: int = 30,
    rows: int | None = None,
    label: str | None = None,
    noise: str = "continuous",
) -> Release:
    """Let each record vote for the nearest of some rows, keep those with most votes, and vary them, many times.

    The first m rows are uniform over the domain. A variation draws each level anew with a probability, and moves each
    number by at most that part of its range; this rate falls from 0.5 to 0.01. In the first iterations m rows are drawn
    in proportion to their votes, and a variation of each takes its place. After them the m rows with most votes are
    kept, as well as three variations of each.

    **Source** Tran, Backurs, Lin, Reis, Xiong and Yekhanin 2026, "Differentially Private Synthetic Data via APIs 4:
    Tabular Data", ICML (arXiv 2606.08259); of the text the abstract was read, and for facts the authors' public code
    (microsoft/DPSDA, MIT), of which nothing is copied: its tabular API and embedding, votes, populations, noise, and
    examples. Private Evolution is by Lin et al. 2024 (arXiv 2305.15560).
    **Privacy** Add/remove, or replace one. The candidates of an iteration are a function of noisy answers alone, and a
    record votes for one of them, whatever the other records are: votes have l2 sensitivity 1, or sqrt 2. So have the
    counts of the levels of `label`, or n where it is not public, which are measured first. These k answers have the
    same noise, and together cost mu^2 = k Delta^2 / sigma^2 of Gaussian DP, also though each depends on those before
    it. That is exact, and is the accounting of the authors' code. The rest is post-processing.
    **Shapes** Rows (m, d); the distances of blocks of records from all candidates, of which there are up to 4 m.
    **Departures** 1. Numbers are binned before a mechanism sees them: a number walks from a uniform point of its bin,
    and has the distance of its bin's number. 2. In bins many candidates are the same. The k-th of them counts as much
    as their votes / k, so that copies are kept in proportion to votes; the authors' code has one take them all. 3. The
    distance is the authors', squares of numbers scaled to [0, 1] and 2/9 for another level, but in whole numbers, which
    are exact (`EXACT`). Rounding may depend on the other records, and would let a record change their votes. 4. The
    authors' code reads sizes of classes, levels and bounds off the private rows. Here sizes are noisy, and the others
    declared. 5. m follows from the budget; the authors' examples set it. 6. `replace` is ours.

    `iterations`: the authors take 30 for Adult, and one vote less. `rows`: m; None: so many that the mean votes of a
    row are 1.5 standard deviations of their noise, from 150 to 5000. `label`: an attribute of which each level has rows
    of its own, for which its records alone vote, as the authors do for classification; None: it is like the others.

    Raises `UserError` for a count below 1, an unknown attribute, and an epsilon that is not finite.
    """
    domain = train.domain
    check_settings("tab_pe", tolerance=None, rows=rows, iterations=iterations)
    classes, place = ((), None) if label is None else ((label,), domain.index(label))
    n = rows_if_public("tab_pe", train, budget, None)
    costs, ledger, (noise_rng, rows_rng) = Costs.of("tab_pe", budget, "tight"), Ledger(), rng.spawn(2)
    counted = n is None or math.prod(domain.shape(classes)) > 1
    sigma = costs.sigma(costs.total, iterations + counted)
    check_sigma("tab_pe", sigma)

    counts = np.array([float(n or 0)])
    if counted:
        table = train.marginal(classes)
        counts = noisy_marginal(noise_rng, ledger, classes, table, sigma, l2=costs.l2, noise=noise).values.ravel()
    counts = np.maximum(counts, 0.0)
    m = rows or round(np.clip(counts.sum() / (DEVIATIONS * sigma), FEWEST, MOST))
    population = np.stack([random_column(attribute, m, rows_rng) for attribute in domain.attributes], axis=1)
    if place is not None:
        population[:, place] = rounded_column(counts[None], np.zeros(m, dtype=np.int64), rows_rng)
    sizes, kept = [len(own) for own in of_levels(population, place)], population
    records = np.unique(train.codes, axis=0, return_counts=True)
    for t, rate in enumerate(RATES[0] - (RATES[0] - RATES[1]) * (np.arange(iterations) / iterations) ** POWER):
        candidates, copies = distinct(population, rows_rng)
        exact = whole(votes(domain, *records, candidates, place), noise)
        noisy = gaussian(
            noise_rng, ledger, exact, sensitivity=costs.l2, multiplier=sigma / costs.l2, label=f"votes {t + 1}"
        )
        select = drawn if t < DRAWN else highest
        parts = zip(of_levels(candidates, place), sizes, strict=True)
        kept = candidates[np.concatenate([own[select(noisy[own], copies[own], m, rows_rng)] for own, m in parts])]
        more = [varied(domain, kept, rate, rows_rng, place) for _ in range(1 if t < DRAWN else VARIATIONS)]
        population = np.concatenate(more if t < DRAWN else [kept, *more])
    diagnostics = {"sigma": sigma, "total": float(counts.sum())}
    return Release(domain, budget, ledger, (SyntheticRows(Table(domain, kept)),), diagnostics)


def distinct(rows: Codes, rng: np.random.Generator) -> tuple[Codes, Codes]:
    """The different rows in random order, so that no level comes first where distances are equal, and their copies."""
    found, copies = np.unique(rows, axis=0, return_counts=True)
    order = rng.permutation(len(found))
    return found[order], copies[order]


def of_levels(rows: Codes, place: int | None) -> list[Codes]:
    """Which rows have each level of the attribute at this place; all, for none."""
    if place is None:
        return [np.arange(len(rows))]
    return [np.flatnonzero(rows[:, place] == level) for level in np.unique(rows[:, place])]


def votes(domain: Domain, records: Codes, weights: Codes, candidates: Codes, place: int | None) -> Codes:
    """How many records are nearer to each candidate (m,) than to all others, or as near and it comes first.

    Each of the `records` (n, d) is there `weights` (n,) times. With a `place`, it votes among candidates of its level.
    """
    found = np.zeros(len(candidates), dtype=np.int64)
    for own in of_levels(candidates, place):
        voters = slice(None) if place is None else records[:, place] == candidates[own[0], place]
        part, many = records[voters], weights[voters]
        points = coordinates(domain, candidates[own])
        products, squares = -2 * points.T, (points**2).sum(axis=1)
        step = max(AT_ONCE // len(own), 1)
        for start in range(0, len(part), step):
            distances = coordinates(domain, part[start : start + step]) @ products
            distances += squares
            np.add.at(found, own[distances.argmin(axis=1)], many[start : start + step])
    return found


def coordinates(domain: Domain, rows: Codes) -> NDArray[np.float32]:
    """Points whose squared distances are those of the rows, in units in which they are whole numbers up to `EXACT`.

    A number is in [-3 u / 2, 3 u / 2], and a level is one-hot: u in its place. A missing number is 0, the middle, and
    has a u in a place of its own. So an attribute adds 4.5 u^2 at most to 2 x'z, and 2.25 u^2 to z'z.
    """
    unit = max(math.isqrt(EXACT // (7 * len(domain.names))), 1)
    columns = []
    for attribute, codes in zip(domain.attributes, rows.T, strict=True):
        if attribute.bounds is not None:
            lower, upper = attribute.bounds
            numbers = np.rint(3 * unit * ((np.array(attribute.values) - lower) / (upper - lower) - 0.5))
            columns.append(np.append(numbers, 0.0)[codes][:, None])
        columns.append(unit * (codes[:, None] == np.arange(len(attribute.values), attribute.size)))
    return np.concatenate(columns, axis=1, dtype=np.float32)


def drawn(votes: Floats, copies: Codes, rows: int, rng: np.random.Generator) -> Codes:
    """The places of so many rows, drawn in proportion to their noisy votes."""
    weights = np.maximum(votes, 0.0)
    total = weights.sum()
    return rng.choice(len(votes), rows, p=weights / total if total > 0 else None)


def highest(votes: Floats, copies: Codes, rows: int, rng: np.random.Generator) -> Codes:
    """The places of the rows with most votes, of which the k-th copy has a k-th.

    >>> highest(np.array([5.0, 12.0, 3.0]), np.array([1, 3, 2]), 4, np.random.default_rng(0)).tolist()
    [1, 1, 0, 1]
    """
    owner = np.repeat(np.arange(len(votes)), copies)
    k = np.arange(len(owner)) - np.repeat(np.cumsum(copies) - copies, copies) + 1
    worth = np.where(votes[owner] > 0, votes[owner] / k, votes[owner] * k)
    found: Codes = owner[np.argsort(-worth, kind="stable")[:rows]]
    return found


def random_column(attribute: Attribute, rows: int, rng: np.random.Generator) -> Codes:
    """Uniform levels, or numbers; one of the codes is a missing one."""
    codes = rng.integers(0, attribute.size, rows)
    if attribute.bounds is None:
        return codes
    missing = attribute.missing & (codes == len(attribute.values))
    return np.where(missing, codes, attribute.code(rng.uniform(*attribute.bounds, rows)))


def varied(domain: Domain, rows: Codes, rate: float, rng: np.random.Generator, place: int | None) -> Codes:
    """Each level drawn anew with probability `rate`, and each number moved by at most `rate` of its range.

    That a number is missing, or not, is a level. What is at `place` stays.
    """
    found = rows.copy()
    for j, attribute in enumerate(domain.attributes):
        if j == place:
            continue
        codes, anew = rows[:, j], random_column(attribute, len(rows), rng)
        change = rng.random(len(rows)) < rate
        if attribute.bounds is not None:
            lower, upper = attribute.bounds
            missing, last = codes == len(attribute.values), len(attribute.values) - 1
            change &= missing | (anew > last)
            edges, bins = np.array(attribute.edges), np.minimum(codes, last)
            moved = rng.uniform(edges[bins], edges[bins + 1]) + rate * (upper - lower) * rng.uniform(-1, 1, len(rows))
            codes = np.where(missing, codes, attribute.code(np.clip(moved, lower, upper)))
        found[:, j] = np.where(change, anew, codes)
    return found
