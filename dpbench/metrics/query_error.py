"""The error of a release's answers, over all queries of a workload of marginals.

Liu, Vietri and Wu 2021: each cell of a marginal, as a fraction of the rows, is one query (Definition 1).
"""

from __future__ import annotations

import numpy as np

from dpbench.data.domain import Floats
from dpbench.mechanisms.fitting import check_answers
from dpbench.mechanisms.workload import Workload, cliques_of
from dpbench.metrics.evaluation import Evaluation, Score


def query_error_max(evaluation: Evaluation, *, workload: Workload = 3) -> Score:
    """max over the queries q of |q(D) - answer of q| (Liu, Vietri and Wu 2021, section 2 and Figure 1).

    The answers are the release's own: of its marginals where it has all of the workload's, else of its fitted
    distribution, else of its rows. `workload`: as `mechanisms.workload.cliques_of` takes it, such as 3 for all
    marginals of three attributes. D are the rows that the mechanism used.

    Raises `UserError` for a workload that does not fit the domain, or whose answers exceed this process's memory.
    """
    return _score("query_error_max", float(np.max(_errors(evaluation, workload))))


def query_error_mean(evaluation: Evaluation, *, workload: Workload = 3) -> Score:
    """The mean of |q(D) - answer of q| over the queries (Figure 3); see `query_error_max`."""
    return _score("query_error_mean", float(np.mean(_errors(evaluation, workload))))


def query_error_rmse(evaluation: Evaluation, *, workload: Workload = 3) -> Score:
    """The root of the mean of (q(D) - answer of q)^2 over the queries (Figure 3); see `query_error_max`."""
    return _score("query_error_rmse", float(np.sqrt(np.mean(_errors(evaluation, workload) ** 2))))


def _score(name: str, value: float) -> Score:
    return Score(name, value, "", "lower")


def _errors(evaluation: Evaluation, workload: Workload) -> Floats:
    """|q(D) - answer of q| of the workload's queries (m,), marginal by marginal."""
    domain = evaluation.reference.split.train.domain
    cliques = cliques_of(domain, workload)
    check_answers("query_error", domain.sizes, cliques)
    found: Floats = np.abs(evaluation.reference.answers(cliques) - evaluation.answers(cliques))
    return found
