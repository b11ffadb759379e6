"""The margins y x'theta of the test rows, for a target of -1 and +1 (DD-SSP, Figure 4)."""

from __future__ import annotations

import numpy as np

from dpbench.metrics.classification import scores_of
from dpbench.metrics.evaluation import Evaluation, Score

RADIUS = 6.0  # DD-SSP, section 3.3: it approximates the loss on [-6, 6], the dashed lines of Figure 4
EDGES = np.linspace(-15.0, 15.0, 121)  # of our histogram, wider than [-6, 6]


def margins_inside(evaluation: Evaluation) -> Score:
    """Share of the test rows whose margin y x'theta lies in [-6, 6].

    The detail is the histogram: `edges`, e_0 < ... < e_k, and `counts`, the rows with a margin below e_0, in each
    [e_j, e_j+1), and of e_k or more, k + 2 in all.

    Raises `ValueError` for a target that is not -1 and +1.
    """
    scores, y = scores_of(evaluation)
    margins = y * scores
    counts = np.bincount(np.searchsorted(EDGES, margins, side="right"), minlength=len(EDGES) + 1)
    detail = {"edges": EDGES.tolist(), "counts": counts.tolist()}
    return Score("margins_inside", float(np.mean(np.abs(margins) <= RADIUS)), "", "none", detail)
