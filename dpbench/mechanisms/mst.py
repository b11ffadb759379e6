"""MST, a maximum spanning tree of noisy pairs (McKenna, Miklau and Sheldon 2021; DD-SSP, Appendix H)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from dpbench.data.domain import Attribute, Clique, Domain, Floats
from dpbench.data.table import Table
from dpbench.inference import Measurement, Model, model_mb
from dpbench.mechanisms.fitting import Costs, check_model, check_settings, check_sigma, engine_of, noisy_marginal
from dpbench.mechanisms.workload import cliques_of
from dpbench.privacy.budget import Budget
from dpbench.privacy.ledger import Ledger
from dpbench.privacy.noise import exponential_mechanism
from dpbench.releases import Distribution, Marginals, Merge, Release, SyntheticRows

AT_ONCE = 2**15  # pairs, so that few tables are in memory
THRESHOLD = 3.0  # standard deviations of a noisy count below which a level is merged (authors' code)


def mst(
    train: Table,
    budget: Budget,
    rng: np.random.Generator,
    *,
    workload: int | Sequence[Sequence[str]] = 2,
    max_model_mb: float = 80,
    iterations: int = 1000,
    tolerance: float | None = None,
    rows: int | None = None,
    engine: str = "native",
    calibration: str = "tight",
    noise: str = "continuous",
) -> Release:
    """Measure every attribute, then the pairs of a spanning tree of strong dependences, and fit a model to them.

    Levels that the first measurement cannot tell from empty are merged into one before the pairs are looked at.

    **Source** McKenna, Miklau and Sheldon 2021, "Winning the NIST contest", and the authors' `mst.py` in
    private-pgm, whose three steps are marked below; within DD-SSP, Appendix H, Figure 5.
    **Privacy** Add/remove, or replace one. A marginal has l2 sensitivity 1, or sqrt 2; the score of a pair changes by
    at most its l1 sensitivity, which is 1, or 2. d one-way marginals, d - 1 selections and d - 1 pairs spend a third
    each of what (eps, delta) allows, all fixed beforehand. `paper`: of rho (zCDP, tight conversion); a measurement
    costs 1/(2 multiplier^2), a selection eps^2/8. `tight`: of mu^2/2 (Gaussian DP), see `Costs`. n is not used: the
    total is estimated.
    **Shapes** A marginal on r has the shape `domain.shape(r)`, also where levels were merged.
    **Departures** 1. The engine knows one sigma a table. So the one-way tables are first brought to one total by
    least squares, with the right variance k sigma^2 of a level merged from k; the fit then weighs that level as the
    others. The authors weigh it by its own variance. Post-processing. 2. A single attribute has no pairs: its
    marginal takes the whole of rho. 3. A merged level's mass goes in equal parts to its levels, in the marginals as
    well as in the rows; the authors release rows only. 4. The split is of the tight rho, or of mu^2/2, as in `aim`.

    `workload`: k for all k-way marginals, or a list of cliques: what is released, not what is measured.
    `max_model_mb`: the limit on the largest tree that could be selected. The other parameters are those of `aim`, and
    so is what the release holds.
    """
    domain, d = train.domain, len(train.domain.names)
    cliques = cliques_of(domain, workload)
    check_settings("mst", tolerance=tolerance, iterations=iterations, rows=rows)
    fitting = engine_of(engine, iterations=iterations, tolerance=tolerance)
    check_model("mst", "the largest tree of pairs", _largest_tree(domain), max_model_mb)
    costs, ledger = Costs.of("mst", budget, calibration), Ledger()
    noise_rng, rows_rng = rng.spawn(2)

    third = costs.total / 3 if d > 1 else costs.total
    sigma, sigma_pair = costs.sigma(third, d), costs.sigma(third, max(d - 1, 1))
    check_sigma("mst", sigma, sigma_pair)

    def measure(table: Table, r: Clique, scale: float) -> Measurement:
        return noisy_marginal(noise_rng, ledger, r, table.marginal(r), scale, l2=costs.l2, noise=noise)

    # Step 1: the one-way marginals, and the domain compressed by them
    singles = [measure(train, (name,), sigma) for name in domain.names]
    merges = {m.clique[0]: _merged(m) for m in singles}
    compressed = _compress(train, merges)
    sizes = compressed.domain.sizes
    log1 = _reconciled(singles, merges)

    # Step 2: the pairs, by the exponential mechanism in place of Kruskal's maximum
    ends = np.stack(np.triu_indices(d, 1), axis=1)  # of each pair that would join two components of the forest
    scores = _distances(compressed, fitting.estimate(sizes, log1), ends)
    part = np.arange(d)  # the component that holds the attribute
    tree: list[Clique] = []
    epsilon = costs.epsilon(third, max(d - 1, 1))
    for _ in range(d - 1):
        pick = exponential_mechanism(
            noise_rng, ledger, scores, sensitivity=costs.l1, epsilon=epsilon, label="selection", noise=noise
        )
        one, two = ends[pick]
        tree.append((domain.names[one], domain.names[two]))
        part[part == part[two]] = part[one]
        allowed = part[ends[:, 0]] != part[ends[:, 1]]
        ends, scores = ends[allowed], scores[allowed]

    # Step 3: the pairs of the tree, and the model of all that was measured
    chosen = [measure(compressed, r, sigma_pair) for r in tree]
    model = fitting.estimate(sizes, [*log1, *chosen])

    distribution = Distribution(model, merges)
    marginals = Marginals(distribution.answer(cliques), tuple((m.clique, m.sigma) for m in (*singles, *chosen)))
    synthetic = SyntheticRows(distribution.sample(domain, rows or max(round(model.total), 1), rows_rng))
    sigmas = [sigma, sigma_pair] if tree else [sigma]
    choice = {"rho": costs.total, "sigma": sigmas, "tree": [list(r) for r in tree], "compressed_sizes": sizes}
    diagnostics = {**choice, "total": model.total, "model_mb": model.size_mb, "engine": engine}
    return Release(domain, budget, ledger, (marginals, synthetic, distribution), diagnostics)


def _merged(measured: Measurement) -> Merge:
    """Keep the levels whose noisy count is at least `THRESHOLD` sigma, in their order."""
    kept = measured.values >= THRESHOLD * measured.sigma
    return Merge(np.where(kept, np.cumsum(kept) - 1, kept.sum()).astype(np.int64))


def _compress(train: Table, merges: Mapping[str, Merge]) -> Table:
    """The rows over the compressed domain, whose levels have no names."""
    domain = Domain(tuple(Attribute.categorical(name, range(len(m.count))) for name, m in merges.items()))
    columns = [merge.code[train.column(name)] for name, merge in merges.items()]
    return Table(domain, np.stack(columns, axis=1))


def _distances(table: Table, model: Model, ends: NDArray[np.int64]) -> Floats:
    """The l1 distance (k,) of the model from the rows in each pair of attributes, by their places (k, 2)."""
    names, found = table.domain.names, []
    for some in np.array_split(ends, -(-len(ends) // AT_ONCE) or 1):
        pairs = [(names[i], names[j]) for i, j in some]
        answers = model.answer(pairs)
        found += [float(np.abs(h - answers[r]).sum()) for r, h in table.marginals(pairs).items()]
    return np.array(found)


def _reconciled(singles: Sequence[Measurement], merges: Mapping[str, Merge]) -> list[Measurement]:
    """The one-way tables over the compressed domain, all of the total that fits them best.

    Least squares: the sum of m cells has variance m sigma^2, so the total is the mean of the tables' sums weighted by
    1/m, and each cell takes the share of its table's gap that is its share of the variance, count/m.
    """
    total = sum(float(m.values.mean()) for m in singles) / sum(1 / m.values.size for m in singles)
    tables = []
    for measured, merge in zip(singles, merges.values(), strict=True):
        table = np.bincount(merge.code, weights=measured.values)
        gap = total - float(measured.values.sum())
        tables.append(Measurement(measured.clique, table + gap * merge.count / merge.code.size, measured.sigma))
    return tables


def _largest_tree(domain: Domain) -> float:
    """MB of the star around the largest attribute: no tree has more, and merged levels only make it smaller."""
    largest = max(domain.names, key=domain.sizes.__getitem__)
    star = [tuple(sorted((largest, name), key=domain.index)) for name in domain.names if name != largest]
    return model_mb(domain.sizes, star)
