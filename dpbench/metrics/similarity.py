"""How near the marginals, the correlations and the levels of one table are to those of another.

All of it is of the codes: a number counts as the value of its bin. **Source** SDMetrics (docs.sdv.dev/sdmetrics), whose
TVComplement, ContingencySimilarity and CategoryCoverage are 1 minus, 1 minus, and as here; its CorrelationSimilarity is
1 minus half of ours.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import combinations

import numpy as np
import pandas as pd

from dpbench.data.domain import Attribute, Clique, Floats
from dpbench.data.encode import scalar
from dpbench.data.table import Table
from dpbench.metrics.marginals import marginal_distances

RARE = 0.01  # the largest share of the rows of a rare level
MOST_FOR_TRIPLES = 31  # attributes: they have 4,495 triples

Values = dict[tuple[str, Clique], float]  # by the score, and the attribute or pair that it is of: () for all


def similarity(real: Table, other: Table, measured: Collection[Clique], triples_of: Collection[str]) -> Values:
    """Each score of `other`, of m rows, against the `real` rows.

    `measured`: marginals that the mechanism measured; pairs within one of them are scored apart from the others.
    `triples_of`: the attributes whose triples are looked at.
    """
    one = dict(zip(real.domain.names, marginal_distances(real, other, 1) / 2, strict=True))
    found: Values = {("one_way", ()): float(np.mean(list(one.values())))}
    found |= {("one_way", (name,)): float(distance) for name, distance in one.items()}
    found |= _of_pairs(real, other, measured)
    if len(triples_of) >= 3:
        triples = marginal_distances(real.project(list(triples_of)), other.project(list(triples_of)), 3) / 2
        found["three_way", ()], found["three_way_max", ()] = float(triples.mean()), float(triples.max())
    found |= _of_correlations(real, other)
    found |= _of_levels(real, other)
    return found


def _of_pairs(real: Table, other: Table, measured: Collection[Clique]) -> Values:
    distance, association = {}, {}
    for pair, h, g in _pairs(real, other):
        distance[pair] = float(np.abs(h - g).sum()) / 2
        association[pair] = abs(cramers_v(h) - cramers_v(g))
    if not distance:
        return {}
    found: Values = {("two_way", ()): float(np.mean(list(distance.values())))}
    found["two_way_max", ()] = max(distance.values())
    for name, inside in (("two_way_measured", True), ("two_way_unmeasured", False)):
        some = [d for pair, d in distance.items() if any(set(pair) <= set(r) for r in measured) == inside]
        if measured and some:
            found[name, ()] = float(np.mean(some))
    found["association", ()] = float(np.mean(list(association.values())))
    return found | {("two_way", pair): value for pair, value in distance.items()}


def _pairs(real: Table, other: Table) -> Iterator[tuple[Clique, Floats, Floats]]:
    """Each pair with its shares of the rows of both tables; those of one attribute are counted together."""
    names = real.domain.names
    for place, name in enumerate(names[:-1]):
        cliques = [(name, second) for second in names[place + 1 :]]
        h, g = real.marginals(cliques), other.marginals(cliques)
        yield from ((r, h[r] / len(real), g[r] / len(other)) for r in cliques)


def cramers_v(shares: Floats) -> float:
    """Cramér's V of a pair's shares of the rows, in [0, 1]: sqrt(chi^2 / (n (k - 1))), k the fewer of the levels that
    occur; 0 where one of them does not vary.

    >>> cramers_v(np.array([[0.5, 0.0], [0.0, 0.5]])), cramers_v(np.array([[0.25, 0.25], [0.25, 0.25]]))
    (1.0, 0.0)
    """
    kept = shares[shares.sum(axis=1) > 0][:, shares.sum(axis=0) > 0]
    least = min(kept.shape) - 1
    if least < 1:
        return 0.0
    product = np.outer(kept.sum(axis=1), kept.sum(axis=0))
    return float(np.sqrt(max(float((kept**2 / product).sum()) - 1, 0.0) / least))


def _of_correlations(real: Table, other: Table) -> Values:
    """The mean of |r - r'| over the pairs of attributes that are numeric or have two levels."""
    ordered = [one for one in real.domain.attributes if one.numeric or one.size == 2]
    if len(ordered) < 2:
        return {}
    pairs = list(combinations(range(len(ordered)), 2))
    r, s = (_correlations(table, ordered) for table in (real, other))
    return {("correlation", ()): float(np.mean([abs(r[pair] - s[pair]) for pair in pairs]))}


def _correlations(table: Table, attributes: list[Attribute]) -> Floats:
    """Pearson's r over the rows that have both values, 0 for an attribute that does not vary there."""
    columns = {one.name: _values(one)[table.column(one.name)] for one in attributes}
    found: Floats = pd.DataFrame(columns).corr().fillna(0.0).to_numpy()
    return found


def _values(attribute: Attribute) -> Floats:
    """The number of each code, NaN for a missing value."""
    if not attribute.numeric:
        return np.arange(attribute.size, dtype=float)
    return np.append(scalar(attribute)[0], [np.nan] * attribute.missing)


def _of_levels(real: Table, other: Table) -> Values:
    """Which of the levels and bins that occur among the real rows occur among the others too."""
    shares, rare, kept = {}, 0, 0
    for name in real.domain.names:
        h, g = real.marginal((name,)) / len(real), other.marginal((name,)) > 0
        shares[name] = float(g[h > 0].mean())
        few = (h > 0) & (h <= RARE)
        rare, kept = rare + int(few.sum()), kept + int((few & g).sum())
    found: Values = {("levels_covered", ()): float(np.mean(list(shares.values())))}
    if rare:
        found["rare_levels_kept", ()] = kept / rare
    return found | {("levels_covered", (name,)): share for name, share in shares.items()}
