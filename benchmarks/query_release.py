"""Private query release: CPU seconds of its steps and methods on one core, and their ratio to a plain version.

    python -m benchmarks.query_release [--times 5]

On the private rows of ADULT and ADULT (reduced), all marginals of three attributes. A number is the best of this many
runs. The plain version of a step computes each marginal separately; that of MWEM and PEP is the method with a plain
step, where PEP's finds the violations of its projections among the answers to the full workload; those of RAP-softmax
and GEM step by PyTorch's own derivatives and Adam; that of DualQuery counts each marginal of its rows separately.
Nothing is asserted; each number is printed with its target. The effect of the methods' options is measured by
`experiment=queries_options_mwem` and the others of that name.
"""

from __future__ import annotations

import argparse
import math
import os
import resource
import time
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from dpbench.config import composed
from dpbench.data.dataset import Dataset
from dpbench.data.load import load_dataset
from dpbench.data.table import Table
from dpbench.inference.query_workload import QueryWorkload
from dpbench.mechanisms.dualquery import dualquery
from dpbench.mechanisms.fem import fem
from dpbench.mechanisms.gem import Gem, cosine_rate, gem
from dpbench.mechanisms.mwem import mwem
from dpbench.mechanisms.pep import Pep, pep
from dpbench.mechanisms.rap import rap
from dpbench.mechanisms.rap_softmax import RapSoftmax, rap_softmax
from dpbench.mechanisms.workload import cliques_of
from dpbench.privacy.budget import Budget

COMPONENTS = 1000
SMALL = {"latent": 128, "hidden": (256, 256), "rate": 5e-4}  # gem_small


def rows_of(dataset: str) -> tuple[Table, QueryWorkload]:
    table = load_dataset(Dataset.of({**composed([f"dataset={dataset}"])["dataset"], "offline": True}))
    return table, QueryWorkload(table.domain.sizes, cliques_of(table.domain, 3))


def seconds(call: Callable[[], Any], times: int) -> float:
    """Least CPU seconds of some runs."""
    found = []
    for _ in range(times):
        start = time.process_time()
        call()
        found.append(time.process_time() - start)
    return min(found)


def say(what: str, ours: float, bar: str, plain: float | None = None) -> None:
    ratio = "" if plain is None else f"plain {plain:>8.3f} s, {plain / ours:>6.1f} times as long"
    print(f"{what:<62}{ours:>8.4f} s  (target {bar:>6})  {ratio}", flush=True)


def plain_histogram(queries: QueryWorkload, table: np.ndarray) -> np.ndarray:
    """Each marginal as a sum of the full table."""
    away = [tuple(j for j, name in enumerate(queries.sizes) if name not in r) for r in queries.cliques]
    return np.concatenate([table.sum(axis=axes).ravel() for axes in away])


def plain_update(family: Pep, D: np.ndarray, asked: Any) -> np.ndarray:
    """Algorithm 2 with all answers of the workload in each step."""
    queries, noisy = asked.distinct()
    a, D = np.clip(noisy, 1e-6, 1 - 1e-6), D.copy()
    for _ in range(family.projections):
        answers = plain_histogram(family.support.queries, D)[queries]
        i = int(np.abs(a - answers).argmax())
        D[family.support.overlap(int(queries[i]), int(queries[i]))] *= (
            a[i] * (1 - answers[i]) / ((1 - a[i]) * answers[i])
        )
        D /= D.sum()
    return D


def plain_descent(family: RapSoftmax, D: np.ndarray, asked: Any) -> np.ndarray:
    """A round of RAP-softmax by PyTorch."""
    import torch

    logits = torch.tensor(D, requires_grad=True)
    columns, a = family.queries.columns(asked.queries), torch.tensor(np.clip(asked.answers, 0, 1))
    adam = torch.optim.Adam([logits], lr=family.rate)
    for _ in range(family.iterations):
        distributions = torch.cat([part.softmax(0) for part in logits.split(list(family.queries.sizes.values()))])
        adam.zero_grad()
        ((distributions[columns].prod(1).mean(1) - a) ** 2).sum().backward()
        adam.step()
    return logits.detach().numpy()


def plain_training(family: Gem, logits: np.ndarray, columns: Any, errors: Any, gamma: float) -> tuple[np.ndarray, int]:
    """A round of GEM by PyTorch."""
    import torch

    network, sizes = family.generator.network, list(family.queries.sizes.values())
    a, adam = torch.tensor(errors(np.zeros_like(logits))), torch.optim.Adam(network.parameters(), lr=family.rate)
    for i in range(family.iterations):
        distributions = torch.cat([part.softmax(1) for part in family.generator.output.split(sizes, 1)], 1)
        c = (a - distributions[:, columns].prod(2).mean(0)).abs()
        if not (c >= gamma).any():
            return logits, i
        adam.param_groups[0]["lr"] = cosine_rate(family.rate, i / family.iterations)
        adam.zero_grad()
        c[c >= gamma].sort(descending=True).values[: family.most].mean().backward()
        adam.step()
        logits = family.generator.logits()
    return logits, family.iterations


def plain_rows(queries: QueryWorkload, codes: np.ndarray) -> np.ndarray:
    """Each marginal by a count of its cells."""
    names, found = list(queries.sizes), []
    for r in queries.cliques:
        sizes = tuple(queries.sizes[name] for name in r)
        places = np.ravel_multi_index(tuple(codes[:, names.index(name)] for name in r), sizes)
        found.append(np.bincount(places, minlength=math.prod(sizes)) / len(codes))
    return np.concatenate(found)


def steps(times: int) -> None:
    """The answers to all queries."""
    table, queries = rows_of("adult_queries")
    plain = seconds(lambda: [table.marginal(r) for r in queries.cliques], times)
    what = f"{len(queries.cliques)} marginals of {len(table):,} rows"
    say(what, seconds(lambda: queries.of_rows(table.codes), times), "0.03", plain)
    distributions = np.random.default_rng(0).dirichlet(np.ones(sum(queries.sizes.values())), COMPONENTS)
    parts = dict(
        zip(queries.sizes, np.split(distributions, np.cumsum(list(queries.sizes.values()))[:-1], axis=1), strict=True)
    )

    def by_einsum() -> None:
        for r in queries.cliques:
            np.einsum("ka,kb,kc->abc", *(parts[name] for name in r))

    what = f"{len(queries):,} answers of {COMPONENTS:,} product distributions"
    say(what, seconds(lambda: queries.of_products(distributions), times), "0.03", seconds(by_einsum, 1))
    table, queries = rows_of("adult_queries_reduced")
    histogram = np.random.default_rng(0).random(tuple(queries.sizes.values()))
    what = f"{len(queries.cliques)} marginals of a table of {histogram.size:,} cells"
    plain = seconds(lambda: plain_histogram(queries, histogram), times)
    say(what, seconds(lambda: queries.of_histogram(histogram), times), "-", plain)


def methods(times: int) -> None:
    """Full releases at epsilon = 1; the plain ones with fewer rounds, compared with ours with the same number."""
    table, _ = rows_of("adult_queries_reduced")

    def run(method: Callable[..., Any], rows: Table = table, **settings: Any) -> Any:
        return method(rows, Budget(1.0, len(rows) ** -2, "replace"), np.random.default_rng(0), **settings)

    plain = patch.object(QueryWorkload, "of_histogram", plain_histogram)
    with plain:
        slow = seconds(lambda: run(mwem), 1)
    say("MWEM, T = 50, ADULT (reduced)", seconds(lambda: run(mwem), times), "0.3", slow)
    say("MWEM with past queries, T = 50", seconds(lambda: run(mwem, past=True), times), "-")
    say("PEP, T = 50", seconds(lambda: run(pep), times), "0.5")
    with plain, patch.object(Pep, "update", plain_update):
        slow = seconds(lambda: run(pep, rounds=5), 1)
    say("PEP, T = 5", seconds(lambda: run(pep, rounds=5), times), "-", slow)
    say("FEM, T = 50, s = 50", seconds(lambda: run(fem), 1), "-")
    table, _ = rows_of("adult_queries")
    few_rounds = {"rounds": 5}
    with patch.object(RapSoftmax, "update", plain_descent):
        run(rap_softmax, table, rounds=1)  # loads PyTorch
        slow = seconds(lambda: run(rap_softmax, table, **few_rounds), 1)
    say("RAP-softmax, T = 5, ADULT", seconds(lambda: run(rap_softmax, table, **few_rounds), times), "-", slow)
    say("RAP-softmax, T = 50, ADULT", seconds(lambda: run(rap_softmax, table), 1), "5")
    say("RAP, T = 50, ADULT", seconds(lambda: run(rap, table), 1), "-")
    say("GEM, T = 50, ADULT, 128 x (256, 256)", seconds(lambda: run(gem, table, **SMALL), 1), "30")
    say("GEM, T = 50, ADULT, 512 x (1024, 1024)", seconds(lambda: run(gem, table), 1), "60")
    with patch.object(Gem, "lowered", plain_training):
        run(gem, table, rounds=1, **SMALL)  # loads PyTorch's compiler
        slow = seconds(lambda: run(gem, table, **few_rounds, **SMALL), 1)
    say("GEM, T = 5, ADULT, 128 x (256, 256)", seconds(lambda: run(gem, table, **few_rounds, **SMALL), 1), "-", slow)

    def a_round() -> float:
        few, more = (seconds(lambda T=T: run(dualquery, table, rounds=T), max(times // 2, 1)) for T in (11, 31))
        return (more - few) / 20

    with patch.object(QueryWorkload, "of_rows", plain_rows):
        slow = a_round()
    say("a round of DualQuery, s = 25, ADULT (of rounds 12 to 31)", a_round(), "0.03", slow)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=5)
    given = parser.parse_args()
    steps(given.times)
    methods(given.times)
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:,.0f} MB  (target 1,500 MB)")


if __name__ == "__main__":
    main()
