"""GEM-Pub, GEM whose generator was trained on public data before (Liu, Vietri and Wu 2021, Appendix E)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from dpbench.data.domain import Floats
from dpbench.data.table import Table
from dpbench.errors import UserError
from dpbench.inference.product_queries import ProductQueries
from dpbench.inference.products import Distributions
from dpbench.inference.query_workload import QueryWorkload
from dpbench.mechanisms.fitting import check_settings
from dpbench.mechanisms.gem import Gem, check_training, generator_of, trained_release
from dpbench.mechanisms.workload import Workload, cliques_of
from dpbench.privacy.budget import Budget
from dpbench.releases import Release


def gem_pub(
    train: Table,
    budget: Budget,
    rng: np.random.Generator,
    *,
    public: Table | None,
    workload: Workload = 3,
    rounds: int = 50,
    per_round: int = 1,
    pretraining: int = 10,
    patience: int | None = None,
    components: int = 1000,
    latent: int = 512,
    hidden: Sequence[int] = (1024, 1024),
    resample: bool = False,
    rate: float = 1e-4,
    cosine: bool = True,
    iterations: int = 100,
    most: int | None = 100,
    ema: float = 0.5,
    alpha: float = 0.67,
    device: str = "cpu",
    rows: int | None = None,
    calibration: str = "tight",
) -> Release:
    """Train the generator of GEM on public rows, without noise, and go on from there.

    **Source** Liu, Vietri and Wu 2021, Appendix E, with Algorithms 3 and 4. E asks for the least absolute error over
    the queries of the workload that the public attributes can answer, and not how it is to be reached.
    **Privacy** That of `gem`. The public rows are not protected.
    **Shapes** Those of `gem`. The public rows may lack attributes: marginals without them are pretrained on.
    **Departures** Those of `gem`. Pretraining is a number of times Algorithm 4 on all these queries, gamma half of the
    largest error at its start.

    `pretraining`: how often, of `iterations` steps at most each. `patience`: None, or as the authors' code, which has
    10,000 and 500: the queries that were the worst at the start of a time, until so many times in a row have not
    lowered the largest error; see `pretrain_on_worst`. The other parameters are those of `gem`.
    """
    check_settings("gem_pub", tolerance=None, pretraining=pretraining, patience=patience)
    generator_rng, rng = rng.spawn(2)
    queries = QueryWorkload(train.domain.sizes, cliques_of(train.domain, workload))
    shared, answers = public_answers(queries, public)
    generator = generator_of("gem_pub", queries, components, latent, hidden, device, generator_rng)
    family = Gem(queries, generator, rounds, rate, cosine, iterations, most, resample, ema)
    check_training("gem_pub", family)
    if patience is None:
        pretrain(family, shared, answers, pretraining)
    else:
        pretrain_on_worst(family, shared, answers, pretraining, patience)
    return trained_release(
        "gem_pub",
        train,
        budget,
        rng,
        family,
        per_round=per_round,
        alpha=alpha,
        rows=rows,
        calibration=calibration,
        unpaid=("a generator trained on public rows, which no budget protects",),
    )


def public_answers(queries: QueryWorkload, public: Table | None) -> tuple[QueryWorkload, Floats]:
    """The marginals of the workload that public rows have all attributes of, and the rows' answers to them.

    Raises `UserError` for no rows, or if there is no such marginal.
    """
    if public is None or not len(public):
        raise UserError("gem_pub needs public rows: set dataset.public_data, or sample.public_rows such as 1000")
    sizes = {name: size for name, size in queries.sizes.items() if name in public.domain.sizes}
    cliques = tuple(clique for clique in queries.cliques if set(clique) <= set(sizes))
    if not cliques:
        raise UserError(
            f"gem_pub: no marginal of the workload is over attributes of the public rows alone, {', '.join(sizes)}; "
            "ask for smaller marginals (workload), or name public data that have more attributes"
        )
    columns = [public.domain.index(name) for name in sizes]
    return QueryWorkload(queries.sizes, cliques), QueryWorkload(sizes, cliques).of_rows(public.codes[:, columns])


def pretrain(family: Gem, queries: QueryWorkload, answers: Floats, times: int) -> None:
    """Lower the errors of the generator's answers to these queries (m,), without privacy."""
    columns, logits = queries.columns(np.arange(len(queries))), family.initial().logits

    def found(distributions: Distributions) -> Floats:
        return queries.of_products(distributions.T)

    for _ in range(times):
        largest = float(np.abs(answers - found(family.distributions(logits))).max())
        logits, _ = family.lowered(logits, columns, answers, largest / 2, found)


def pretrain_on_worst(family: Gem, queries: QueryWorkload, answers: Floats, times: int, patience: int) -> None:
    """Lower the errors of the queries (m,) that were the worst at the start of a time, as the authors' code does.

    It ends after `times`, or `patience` and one in a row that lower no largest error, with the weights of the least
    one. Unlike theirs it keeps its `rate`, and does not end where the largest error is below 0.001.
    """
    logits, asked, best, since = family.initial().logits, np.empty(0, dtype=np.int64), np.inf, 0
    gaps = _gaps(family, queries, answers, logits)
    for _ in range(times):
        asked = np.union1d(asked, gaps.argmax())
        columns = queries.columns(asked)
        found = _answers(family.asked(columns))
        logits, _ = family.lowered(logits, columns, answers[asked], float(gaps.max()) / 2, found)
        gaps = _gaps(family, queries, answers, logits)
        since = 0 if gaps.max() < best else since + 1
        if not since:
            best, weights = gaps.max(), family.generator.averaged(None, 0.0)
        if since > patience:
            break
    family.generator.load(weights)


def _gaps(family: Gem, queries: QueryWorkload, answers: Floats, logits: Distributions) -> Floats:
    """The absolute errors of all answers (m,), by products of pairs: a query at a time they take gigabytes."""
    found: Floats = np.abs(answers - queries.of_products(family.distributions(logits).T))
    return found


def _answers(measured: ProductQueries) -> Callable[[Distributions], Floats]:
    """The distributions' answers to these queries."""
    return lambda distributions: measured.answers(measured.entries(distributions))
