"""RAP++: relaxed rows with numbers, fitted to marginals and to counts on one side of hyperplanes (Vietri et al. 2022).

| here | |
| --- | --- |
| P | distributions over the W levels of all attributes without numbers, of each of K relaxed rows: (W, K) |
| x | their numbers, scaled to [0, 1]: (m, K) |
| H, b | where H x > b, levels are counted: a halfspace, where H has one row, or a prefix, where x is above thresholds |
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from dpbench.data.domain import Attribute, Clique, Domain, Floats
from dpbench.data.table import Table
from dpbench.errors import UserError, check_known, check_positive
from dpbench.inference.relaxed import Query, Relaxed, random_halfspaces, random_prefixes
from dpbench.inference.sampling import rounded_column
from dpbench.mechanisms.fitting import Costs, check_answers, check_settings, check_sigma, rows_if_public
from dpbench.mechanisms.intervals import scaled, with_numbers
from dpbench.privacy.budget import Budget
from dpbench.privacy.discrete import whole
from dpbench.privacy.ledger import Ledger
from dpbench.privacy.noise import exponential_mechanism, gaussian
from dpbench.releases import Release, SyntheticRows


def rap_pp(
    train: Table,
    budget: Budget,
    rng: np.random.Generator,
    *,
    degree: int = 2,
    targets: Sequence[str] | None = None,
    halfspaces: int = 2000,
    prefixes: int = 0,
    rounds: int | None = None,
    components: int = 1000,
    doublings: int = 6,
    iterations: int = 30,
    rate: float = 0.03,
    rows: int | None = None,
    calibration: str = "tight",
    noise: str = "continuous",
) -> Release:
    """Keep rows whose levels are distributions and whose numbers are free, and fit them to what they answer worst.

    A round selects a marginal, a halfspace or a prefix, measures it, and moves the relaxed rows to all measured
    answers. Numbers are not binned: a row counts to a halfspace by a sigmoid of its distance, which becomes steeper
    while they move. A prefix is where two numbers are above thresholds.

    **Source** Vietri, Archambeau, Aydore, Brown, Kearns, Roth, Siva, Tang and Wu 2022, "Private Synthetic Data for
    Multitask Learning and Marginal Queries", NeurIPS (arXiv 2209.07400); of the text the abstract was read, and for
    facts the authors' public code (amazon-science/relaxed-adaptive-projection, CC BY-NC 4.0), of which nothing is
    copied.
    **Privacy** Add/remove, or replace one. The relaxed rows are a function of noisy answers alone. A record is in one
    cell of a marginal, and in one or none of a halfspace or a prefix, whose levels are counted: all have l2 sensitivity
    1, or sqrt 2, and the l1 distance of counts from answers changes by 1, or 2. Halves of a round's equal part of the
    budget pay the selection and the measurement; n, where it is not public, is measured first, for another such part.
    Currencies are those of `Costs`; each choice depends on what was released before alone, and costs are fixed.
    **Shapes** Relaxed rows (W + m, K), float32.
    **Departures** 1. The authors' code measures all queries that were selected so far anew in each round, with
    noise for the newest, and takes sqrt 2 for the change of an l1 distance. Here each is measured once, and a
    replaced record changes a distance by 2. 2. A round fits all measured queries; in the code those of its kind. 3.
    Levels are a softmax of logits; the code projects on the simplex. It doubles ten times, and repeats that at
    smaller rates; here that did not help on Adult. 4. Relaxed rows are as often in the release, up to one, their
    levels drawn. 5. Add/remove, where n is private, and `tight` are ours.

    `degree`: how many attributes a marginal has besides a target. `targets`: attributes of whose levels each query has
    one (None: those of two levels, or else a marginal has `degree` attributes, and the others have no levels). An
    attribute is a number where it has bounds and no missing values, and is no target. `halfspaces`, `prefixes`: how
    many there are to select from; h has independent N(0, 1/m) entries, b is N(0, 1), and thresholds are uniform.
    `rounds`: of each kind (None: the number of attributes less 1, as in the code). `components`: K. `doublings`,
    `iterations`, `rate`: of the sigmoids' slope, and Adam's steps for each. `rows`: the number of synthetic rows
    (None: n).

    Raises `UserError` for an unknown target, a count below 1, or marginals that memory does not hold.
    """
    domain = train.domain
    check_settings("rap_pp", tolerance=None, degree=degree, rounds=rounds, rows=rows)
    check_settings("rap_pp", tolerance=None, components=components, iterations=iterations)
    check_positive("rap_pp", rate=rate)
    for name, count in (("doublings", doublings), ("halfspaces", halfspaces), ("prefixes", prefixes)):
        if count < 0:
            raise UserError(f"rap_pp: {name} must be at least 0, not {count}")
    noise_rng, query_rng, rows_rng = rng.spawn(3)
    levels, numbers = kinds_of(domain, targets)
    split = [name for name in levels if (domain.sizes[name] == 2 if targets is None else name in targets)]
    kinds = [
        marginals(levels, split, degree),
        random_halfspaces(halfspaces, len(numbers), split, query_rng),
        random_prefixes(prefixes, len(numbers), split, query_rng),
    ]
    check_answers("rap_pp", domain.sizes, [query.clique for query in kinds[0]])
    X = scaled(train, numbers)
    counts = {query: counted(query, train, X) for kind in kinds for query in kind}
    T = rounds or max(len(domain.names) - 1, 1)
    order = query_rng.permutation(np.repeat(range(len(kinds)), [min(T, len(kind)) for kind in kinds])).tolist()
    if not order:
        raise UserError("rap_pp: there is nothing to measure; raise halfspaces, or give targets")

    costs, ledger = Costs.of("rap_pp", budget, calibration), Ledger()
    n = rows_if_public("rap_pp", train, budget, None)
    part = costs.total / (len(order) + (n is None))
    epsilon, sigma = costs.epsilon(part / 2), costs.sigma(part / 2)
    check_sigma("rap_pp", sigma)

    def measure(exact: Floats, sigma: float, label: str) -> Floats:
        multiplier = sigma / costs.l2
        return gaussian(
            noise_rng, ledger, whole(exact, noise), sensitivity=costs.l2, multiplier=multiplier, label=label
        )

    total = float(n) if n is not None else max(float(measure(train.marginal(()), costs.sigma(part), "rows")), 1.0)
    relaxed = Relaxed.at_random({name: domain.sizes[name] for name in levels}, len(numbers), components, rows_rng)
    measured: dict[Query, Floats] = {}
    for kind in order:
        left = [query for query in kinds[kind] if query not in measured]
        scores = [
            float(np.abs(counts[query] - total * relaxed.answer(query)).sum()) - query.penalty * counts[query].size
            for query in left
        ]
        pick = exponential_mechanism(
            noise_rng, ledger, scores, sensitivity=costs.l1, epsilon=epsilon, label="selection", noise=noise
        )
        query = left[pick]
        measured[query] = np.clip(measure(counts[query], sigma, query.label) / total, 0.0, 1.0)
        relaxed = relaxed.fitted(measured, doublings, iterations, rate)
    synthetic = drawn(relaxed, domain, numbers, rows or max(round(total), 1), rows_rng)
    labels = [query.label for query in measured]
    diagnostics = {"rho": costs.total, "sigma": sigma, "total": total, "queries": labels}
    return Release(domain, budget, ledger, (SyntheticRows(synthetic),), diagnostics)


def kinds_of(domain: Domain, targets: Sequence[str] | None) -> tuple[list[str], list[str]]:
    """The attributes that have levels, and those that are numbers. Raises `UserError` for an unknown target."""
    for name in targets or ():
        check_known("rap_pp: target", name, domain.names)

    def is_number(attribute: Attribute) -> bool:
        named = attribute.size == 2 if targets is None else attribute.name in targets
        return attribute.bounds is not None and not attribute.missing and not named

    numbers = [attribute.name for attribute in domain.attributes if is_number(attribute)]
    return [name for name in domain.names if name not in numbers], numbers


def marginals(levels: Sequence[str], targets: Sequence[str], degree: int) -> list[Query]:
    """All of `degree` attributes and one target; of fewer where there are fewer, and without a target if none is."""
    found = dict[Clique, None]()
    either: list[Clique] = [(target,) for target in targets]
    for given in either or [()]:
        others = [name for name in levels if name not in given]
        for clique in combinations(others, min(degree, len(others))):
            found[tuple(name for name in levels if name in (*given, *clique))] = None
    return [Query(clique) for clique in found if clique]


def counted(query: Query, train: Table, X: Floats) -> Floats:
    """The counts of a table, whose numbers are X (m, n)."""
    if query.H is None:
        return train.marginal(query.clique)
    inside = (query.distances(X) > 0).all(axis=0)
    if not query.clique:
        return np.array(float(inside.sum()))
    (name,) = query.clique
    return np.bincount(train.column(name)[inside], minlength=train.domain.sizes[name]).astype(float)


def drawn(relaxed: Relaxed, domain: Domain, numbers: Sequence[str], rows: int, rng: np.random.Generator) -> Table:
    """Each relaxed row as often as the others, up to one, with levels that are drawn from its distributions."""
    K = relaxed.z.shape[1]
    component = rounded_column(np.ones((1, K)), np.zeros(rows, dtype=np.int64), rng)
    codes = np.zeros((rows, len(domain.names)), dtype=np.int64)
    for name, places in relaxed.levels.items():
        codes[:, domain.index(name)] = rounded_column(relaxed.P[places].T.astype(float), component, rng)
    return with_numbers(domain, codes, numbers, relaxed.x[:, component].astype(float))
