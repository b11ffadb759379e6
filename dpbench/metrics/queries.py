"""How well a release answers the marginals of its workload."""

from __future__ import annotations

import numpy as np

from dpbench.errors import UserError
from dpbench.metrics.evaluation import Evaluation, Score
from dpbench.metrics.marginals import marginal_distances
from dpbench.releases import Marginals, SyntheticRows


def workload_error_mean(evaluation: Evaluation) -> Score:
    """Mean over the workload of ||M_r(D) - released M_r||_1 / n (McKenna et al. 2022)."""
    return Score("workload_error_mean", float(np.mean(_errors(evaluation))), "", "lower")


def workload_error_max(evaluation: Evaluation) -> Score:
    """Largest over the workload of ||M_r(D) - released M_r||_1 / n."""
    return Score("workload_error_max", float(np.max(_errors(evaluation))), "", "lower")


def row_marginals_error(evaluation: Evaluation, *, degree: int = 4, max_cells: int | None = 1_000_000) -> Score:
    """Mean over all marginals r of `degree` attributes of ||h_r / n - h'_r / n'||_1 (excess risk, section 5.5).

    Excess risk is Zhou et al. 2024. h_r are counts of the n real rows that the mechanism used, h'_r those of the n'
    released rows. Marginals of more than `max_cells` cells are left out. The paper's text has this; its code has half
    of it, the total variation.

    Raises `UserError` for a degree outside [1, number of attributes], or if no marginal is left.
    """
    real, released = evaluation.reference.split.seen, evaluation.release[SyntheticRows].table
    distances = marginal_distances(real, released, degree, max_cells=max_cells)
    if not len(distances):
        raise UserError(f"row_marginals_error: all marginals of {degree} attributes have over {max_cells:,} cells")
    return Score("row_marginals_error", float(distances.mean()), "", "lower")


def selected_marginals_error(evaluation: Evaluation) -> Score:
    """Mean over the selected marginals r of ||h_r / n - h'_r / n'||_1 (excess risk, section 5.5 and Figure 2).

    As in `row_marginals_error`. Selected are the marginals of two attributes or more that the mechanism measured, each
    once: single attributes are measured without selection. Raises `UserError` if there is none.
    """
    real, rows = evaluation.reference.split.seen, evaluation.release[SyntheticRows].table
    selected = {clique: None for clique, _ in evaluation.release[Marginals].noise if len(clique) > 1}
    if not selected:
        raise UserError("selected_marginals_error: no marginal of two attributes or more was measured")
    distances = [np.abs(real.marginal(r) / len(real) - rows.marginal(r) / len(rows)).sum() for r in selected]
    return Score("selected_marginals_error", float(np.mean(distances)), "", "lower")


def _errors(evaluation: Evaluation) -> list[float]:
    released = evaluation.release[Marginals].tables
    true = evaluation.reference.marginals(list(released))
    n = len(evaluation.reference.split.seen)
    return [float(np.abs(true[clique] - table).sum()) / n for clique, table in released.items()]
