"""How much attributes depend on each other, by scores of a marginal, and how far one record changes these."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby

import numpy as np

from dpbench.data.domain import Clique, Floats
from dpbench.data.table import Table
from dpbench.privacy.discrete import OnGrid, is_discrete, nearest

AT_ONCE = 2**22  # cells of marginals that are counted together


def from_independence(h: Floats) -> float:
    """||h - a b' / n||_1 of a table h (p, m) of counts, a and b its sums by row and column, n its total; 0 if n is 0.

    It is n InDif of PrivSyn (Zhang et al. 2021, section 4.1) in their normalised counts, and 2 n R of PrivBayes (Zhang
    et al. 2017). `of_independence` bounds its change.
    """
    n = h.sum()
    return float(np.abs(h - np.outer(h.sum(axis=1), h.sum(axis=0)) / n).sum()) if n else 0.0


def of_independence(relation: str, n: int) -> float:
    """How far `from_independence` changes between neighbours of n rows: 4, or 6 + 4 / n where a record is replaced.

    Proof. A record (x, y) that is added to n > 0 others, of the shares p = a / n and q = b / n, changes h - a b' / n by

        (e_x - p) (e_y - q)' n / (n + 1),

    since the new product is (n p + e_x) (n q + e_y)' / (n + 1). Each factor has at most the l1 norm 2. Where a record
    is replaced, h changes by 2 in the l1 norm, and a by u, b by v, of norm 2 each: a b' / n changes by (u b' + a v' + u
    v') / n, at most 4 + 4 / n.
    """
    return 4.0 if relation == "add_remove" else 6.0 + 4.0 / max(n, 1)


def information(h: Floats) -> float:
    """n I(X; Y) in nats: sum of h log(h n / (a b)) over the cells that are not empty."""
    n, a, b = h.sum(), h.sum(axis=1), h.sum(axis=0)
    return _entropies(h) + (float(n * np.log(n)) if n else 0.0) - _entropies(a) - _entropies(b)


def _entropies(counts: Floats) -> float:
    full = counts[counts > 0]
    return float(full @ np.log(full))


def of_information(n: int, binary: bool) -> float:
    """How far n I(X; Y) changes where one of n records is replaced (PrivBayes, Lemma 4.1).

    log n + (n - 1) log(n / (n - 1)) if X or Y has two levels at most; else 2 log((n + 1) / 2) + (n - 1) log((n + 1) /
    (n - 1)). Where n is private there is none: the first record of a new pair of levels adds about log n.
    """
    n = max(n, 2)
    if binary:
        return math.log(n) + (n - 1) * math.log(n / (n - 1))
    return 2 * math.log((n + 1) / 2) + (n - 1) * math.log((n + 1) / (n - 1))


def closeness(h: Floats) -> float:
    """n F of PrivBayes for h (p, 2), or (p, 1): minus the rows to move until the parents determine X.

    F = -min ||Pr[X, Pi] - P||_1 / 2 over the P of most information: each level of X has probability 1/2, and each cell
    of the parents one level only. So it is -((n/2 - K_0)_+ + (n/2 - K_1)_+), where each parent cell is assigned to one
    level of X, K_0 and K_1 are the counts so kept, and the assignment is the best. Found as in section 4.4: for each
    K_0, up to n/2, the largest K_1.

    **Privacy** It changes by 1 at most, whether a record is added, removed or replaced: for a fixed P the distance ||h
    - n P||_1 changes by 2 at most, the added record and n each by 1.
    """
    n = h.sum()
    most = math.ceil(n / 2)
    best = np.full(most + 1, -math.inf)  # K_1 by K_0; what is above n/2 counts as n/2
    best[0] = 0.0
    for zero, one in np.pad(h, ((0, 0), (0, 2 - h.shape[1]))).astype(np.int64):
        moved = np.full(most + 1, -math.inf)
        moved[min(zero, most) :] = best[: most + 1 - min(zero, most)]
        moved[most] = best[most - min(zero, most) :].max()
        best = np.maximum(best + one, moved)
    missing = np.maximum(n / 2 - np.arange(most + 1), 0) + np.maximum(n / 2 - best, 0)
    return -float(missing.min())


@dataclass(frozen=True)
class Score:
    """How well parents explain an attribute: of a table of counts (cells of the parents, levels of the attribute).

    `sensitivity`: of the relation, n (where neighbours have the same) and whether all attributes have two levels at
    most; None where there is none.
    """

    of: Callable[[Floats], float]
    sensitivity: Callable[[str, int, bool], float | None]


SCORES: Mapping[str, Score] = {
    "R": Score(lambda h: from_independence(h) / 2, lambda relation, n, _: of_independence(relation, n) / 2),
    "I": Score(information, lambda relation, n, binary: of_information(n, binary) if relation == "replace" else None),
    "F": Score(closeness, lambda relation, n, binary: 1.0 if binary else None),
}


def marginals_in_parts(train: Table, cliques: Sequence[Clique]) -> Iterator[tuple[Clique, Floats]]:
    """Each marginal in the order given; about `AT_ONCE` cells of them are in memory at a time."""
    ends = accumulate(math.prod(train.domain.shape(clique)) for clique in cliques)
    for _, part in groupby(zip(ends, cliques, strict=True), lambda end: end[0] // AT_ONCE):
        yield from train.marginals([clique for _, clique in part]).items()


def real_numbers(values: Floats, noise: str) -> Floats | OnGrid:
    """Numbers (m,) that are no sums over the rows, in the form to which this kind of noise is added."""
    if not is_discrete(noise):
        return values
    return OnGrid(values.shape, lambda spacing: nearest(values / spacing), values.size)
