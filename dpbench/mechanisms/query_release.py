"""What the methods of private query release share around their loop: the limit of a histogram, and the releases."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import combinations

import numpy as np

from dpbench.data.domain import Clique, Domain
from dpbench.data.table import Table
from dpbench.errors import NoEstimateError, UserError
from dpbench.files import Json
from dpbench.inference import Model
from dpbench.inference.mixture import MixtureModel
from dpbench.inference.points import histogram_mb
from dpbench.inference.products import Distributions
from dpbench.privacy.budget import Budget
from dpbench.privacy.ledger import Ledger
from dpbench.releases import Distribution, Marginals, Release, SyntheticRows

HISTOGRAMS = ("mwem", "pep")  # the methods that keep a table over the whole domain
HISTOGRAM_MB = 80.0  # the largest, unless set otherwise


def check_histogram(method: str, domain: Domain, max_model_mb: float) -> None:
    """Raises `UserError` for a domain whose table exceeds the limit.

    The plan calls it with the declared domain, and each of `HISTOGRAMS` again.
    """
    mb = histogram_mb(domain.sizes)
    if mb > max_model_mb:
        raise UserError(
            f"{method} keeps a probability for each of the {math.prod(domain.sizes.values()):,} cells of the domain, "
            f"{mb:,.3g} MB, and the limit is {max_model_mb:g} MB; raise max_model_mb, declare fewer bins, leave "
            "attributes out (dataset.drop), or take a method that keeps none, such as aim, mst or gem (dpbench list "
            "mechanisms)"
        )


def mixture_of(sizes: Mapping[str, int], logits: Distributions, n: float, rounds: int) -> MixtureModel:
    """The mixture of product distributions of these logits (W, K), times n.

    Raises `NoEstimateError` for logits that are no numbers.
    """
    if not np.isfinite(logits).all():
        raise NoEstimateError(f"after {rounds} rounds the distribution has no probabilities: it diverged")
    return MixtureModel(sizes, float(n), rounds, 0.0, np.array(logits.T, dtype=float, order="C"))


def release_of_model(
    domain: Domain,
    budget: Budget,
    ledger: Ledger,
    model: Model,
    rng: np.random.Generator,
    rows: int | None,
    diagnostics: Json,
    nonprivate_inputs: tuple[str, ...] = (),
) -> Release:
    """The distribution, its marginals of pairs, and rows drawn from it: as many as its total by default."""
    distribution = Distribution(model)
    drawn = SyntheticRows(distribution.sample(domain, rows or round(model.total), rng))
    parts = (Marginals(model.answer(_pairs(domain))), drawn, distribution)
    return Release(domain, budget, ledger, parts, diagnostics, nonprivate_inputs)


def release_of_rows(budget: Budget, ledger: Ledger, rows: Table, n: int, diagnostics: Json) -> Release:
    """The rows, and their marginals of pairs as counts of n rows."""
    tables = rows.marginals(_pairs(rows.domain))
    marginals = Marginals({r: table * (n / len(rows)) for r, table in tables.items()})
    return Release(rows.domain, budget, ledger, (marginals, SyntheticRows(rows)), diagnostics)


def _pairs(domain: Domain) -> list[Clique]:
    """What regressions need; the attribute itself if there is one only."""
    return list(combinations(domain.names, min(2, len(domain.names))))
