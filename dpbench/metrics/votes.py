"""The data-dependent cost of PATE's noisy votes."""

from __future__ import annotations

import math

from dpbench.metrics.evaluation import Evaluation, Score


def data_dependent_epsilon(evaluation: Evaluation) -> Score:
    """eps at the budget's delta by Renyi DP on the votes of the teachers (`mechanisms.pate.votes_rdp`).

    It is a function of the private rows, outside the privacy budget, and not a guarantee; that is in the ledger. NaN
    for a release without it; mechanism.pate.data_dependent=true computes it.
    """
    found = evaluation.release.diagnostics.get("data_dependent_epsilon", math.nan)
    return Score("data_dependent_epsilon", float(found), "", "lower")
