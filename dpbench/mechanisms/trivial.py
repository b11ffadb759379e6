"""Trivial answers to queries, which a method must beat: none is private but `zero`, which looks at no row."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations

import numpy as np
from scipy.sparse.csgraph import minimum_spanning_tree
from scipy.special import rel_entr

from dpbench.data.domain import Clique, Domain, Floats
from dpbench.data.table import Table
from dpbench.errors import check_known
from dpbench.inference import MarkovModel, model_mb
from dpbench.inference.query_workload import QueryWorkload
from dpbench.mechanisms.fitting import check_answers, check_model, check_settings
from dpbench.mechanisms.query_release import release_of_model
from dpbench.mechanisms.supports import PublicRows
from dpbench.mechanisms.workload import Workload, cliques_of
from dpbench.privacy.budget import Budget
from dpbench.privacy.ledger import Ledger
from dpbench.privacy.noise import unperturbed
from dpbench.releases import Distribution, Marginals, Release, SyntheticRows

KNOWN = ("nothing", "attributes", "tree")  # what `max_entropy` may know of the rows
LEAST = 1e-300  # stands for a probability of 0 in a logarithm


def zero(train: Table, budget: Budget, rng: np.random.Generator, *, workload: Workload = 3) -> Release:
    """The answer 0 to every query: where most true answers are 0, its mean error is small.

    **Source** Liu, Vietri and Wu 2021, F.3, where the answers of RAP and GEM begin with 0.
    **Privacy** It reads no row and costs nothing; it is run once, at epsilon = inf, as the other trivial answers are.
    **Shapes** A marginal on r has the shape `domain.shape(r)`.

    Raises `UserError` for a workload that does not fit the domain, or for more tables than memory holds.
    """
    cliques = cliques_of(train.domain, workload)
    check_answers("zero", train.domain.sizes, cliques)
    tables = {r: np.zeros(train.domain.shape(r)) for r in cliques}
    return Release(train.domain, budget, Ledger(), (Marginals(tables),))


def max_entropy(
    train: Table,
    budget: Budget,
    rng: np.random.Generator,
    *,
    known: str = "attributes",
    workload: Workload = 2,
    max_model_mb: float = 80,
) -> Release:
    """The distribution of greatest entropy with some exact marginals, and as many rows from it as there are real ones.

    **Source** `nothing`: the uniform distribution, from which MWEM and PEP begin (Liu, Vietri and Wu 2021,
    Algorithm 2). `attributes`: the product of the one-way marginals. `tree`: the pairs of a spanning tree of greatest
    mutual information (Chow and Liu 1968), the best distribution that a tree can have.
    **Privacy** None: the ledger's cost is infinite, and so must the budget's epsilon be. All read the number of rows.
    **Shapes** Rows (n, d), n that of `train`; a marginal on r has the shape `domain.shape(r)`.

    `workload`: the marginals that are released besides the distribution. Raises `UserError` for another `known`, a
    workload that does not fit the domain or memory, or a pair over `max_model_mb`.
    """
    check_known("known", known, KNOWN)
    cliques = cliques_of(train.domain, workload)
    check_answers("max_entropy", train.domain.sizes, cliques)
    domain, ledger = train.domain, Ledger()
    singles: list[Clique] = [] if known == "nothing" else [(name,) for name in domain.names]
    pairs = list(combinations(domain.names, 2)) if known == "tree" else []
    largest = max((model_mb(domain.sizes, [pair]) for pair in pairs), default=0.0)
    check_model("max_entropy", "the model of the largest pair", largest, max_model_mb)
    n = float(unperturbed(ledger, len(train), label="number of rows"))
    tables = train.marginals([*singles, *pairs])
    parts = {r: unperturbed(ledger, h, label=f"marginal {','.join(r)}") / n for r, h in tables.items()}
    logs = {r: np.log(np.maximum(parts[r], LEAST)) for r in singles}
    for one, two in _tree(domain, parts) if pairs else ():
        ends = np.add.outer(logs[one,], logs[two,])
        logs[one, two] = np.log(np.maximum(parts[one, two], LEAST)) - np.maximum(ends, np.log(LEAST))
    model = MarkovModel.calibrated(domain.sizes, logs, n, iterations=0, loss=0.0)
    distribution = Distribution(model)
    rows = distribution.sample(domain, len(train), rng)
    return Release(domain, budget, ledger, (Marginals(model.answer(cliques)), SyntheticRows(rows), distribution))


def real_rows(train: Table, budget: Budget, rng: np.random.Generator, *, rows: int = 1000) -> Release:
    """So many of the real rows, each set of them as likely; all of them where there are fewer.

    **Source** the size is n', the number of rows of RAP and the batch of GEM (Liu, Vietri and Wu 2021, Tables 2, 3).
    **Privacy** None: the ledger's cost is infinite, and so must the budget's epsilon be. A stored release is a copy of
    training rows: it is for this machine only.
    **Shapes** Rows (rows, d), in random order, with the numbers that they have.

    Raises `UserError` for fewer than 1.
    """
    check_settings("real_rows", tolerance=None, rows=rows)
    ledger = Ledger()
    some = train.take(rng.choice(len(train), min(rows, len(train)), replace=False))
    codes = unperturbed(ledger, some.codes, label="rows").astype(np.int64)
    return Release(train.domain, budget, ledger, (SyntheticRows(Table(train.domain, codes, some.numbers)),))


def public_rows(
    train: Table,
    budget: Budget,
    rng: np.random.Generator,
    *,
    public: Table | None,
    workload: Workload = 3,
    rows: int | None = None,
) -> Release:
    """The rows of public data as they are: what PMW-Pub and PEP-Pub begin with, and should improve on.

    **Source** Liu, Vietri and Wu 2021, Appendix E.
    **Privacy** The ledger's cost is infinite, for the number of private rows; it reads nothing else of them. The public
    rows are not protected: the release holds them.
    **Shapes** A probability for each of the u different public rows, which have all attributes of the private ones.

    `rows`: the number of rows drawn from them (None: n).
    """
    check_settings("public_rows", tolerance=None, rows=rows)
    queries, ledger = QueryWorkload(train.domain.sizes, cliques_of(train.domain, workload)), Ledger()
    support = PublicRows.of("public_rows", queries, public, "public")
    n = float(unperturbed(ledger, len(train), label="number of rows"))
    model = support.model(support.start, n, 0)
    return release_of_model(train.domain, budget, ledger, model, rng, rows, {}, support.unpaid)


def _tree(domain: Domain, parts: Mapping[Clique, Floats]) -> list[tuple[str, str]]:
    """The pairs of a spanning tree of greatest mutual information, without those that have none.

    The mutual information of a pair is its relative entropy to the product of its attributes.
    """
    gain, names = np.zeros((len(domain.names),) * 2), domain.names
    for i, j in combinations(range(len(names)), 2):
        independent = np.multiply.outer(parts[names[i],], parts[names[j],])
        gain[i, j] = rel_entr(parts[names[i], names[j]], independent).sum()
    edges = np.argwhere(minimum_spanning_tree(-gain).toarray())
    return [(names[min(edge)], names[max(edge)]) for edge in edges]
