"""How well a release answers the marginals of its workload."""

from __future__ import annotations

import numpy as np

from dpbench.metrics.evaluation import Evaluation, Score


def workload_error_mean(evaluation: Evaluation) -> Score:
    """Mean over the workload of ||M_r(D) - released M_r||_1 / n (McKenna et al. 2022)."""
    return Score("workload_error_mean", float(np.mean(_errors(evaluation))), "", "lower")


def workload_error_max(evaluation: Evaluation) -> Score:
    """Largest over the workload of ||M_r(D) - released M_r||_1 / n."""
    return Score("workload_error_max", float(np.max(_errors(evaluation))), "", "lower")


def _errors(evaluation: Evaluation) -> list[float]:
    released = evaluation.release.marginals or {}
    true = evaluation.reference.marginals(list(released))
    n = len(evaluation.reference.split.train)
    return [float(np.abs(true[clique] - table).sum()) / n for clique, table in released.items()]
