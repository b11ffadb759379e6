"""DPKendall: features by their rank correlation with the target and with those already chosen (Dick et al. 2023).

**Theorem.** Rows draw their block, and K of two columns is the sum over the blocks, of b >= 2 rows, of C / (b - 1), C
the number of pairs of the block's rows that both columns order alike less that of those that they order differently.
One row more or less changes K by 3/2 at most. Proof. It is in one block of b other rows. With |C| <= b (b - 1) / 2, and
c, |c| <= b, the part of the new row's pairs, (C + c) / b - C / (b - 1) = c / b - C / (b (b - 1)) is at most 1 + 1/2 in
absolute value; for b = 1 it is c. Replacing a row changes K by 3 at most.
"""

from __future__ import annotations

import numpy as np

from dpbench.data.domain import Codes, Floats
from dpbench.privacy.ledger import Ledger
from dpbench.privacy.noise import permute_and_flip

BLOCK = 64  # expected rows of a block: 2,016 pairs, of all columns at once
SENSITIVITY = {"add_remove": 1.5, "replace": 3.0}  # of K


def dpkendall(
    rng: np.random.Generator,
    ledger: Ledger,
    X: Floats,
    y: Floats,
    *,
    count: int,
    epsilon: float,
    relation: str,
    expected_rows: int,
) -> list[int]:
    """The indices of `count` columns of X (n, p), in order, chosen one after another for epsilon / count each.

    The score of a column is its |K| with y less the mean of its |K| with the columns chosen before. No bound of X or y
    is used.

    **Source** Dick, Gillenwater and Joseph 2023, "Better Private Linear Regression Through Better Private Feature
    Selection", arXiv 2306.00920.
    **Privacy** Add/remove, or replace one: K has sensitivity D by the theorem above, the first scores too, and later
    ones 2 D, a mean of K having no more than K. Permute-and-flip is epsilon / count-DP in each round.
    **Departures** 1. Pairs are compared within blocks of some 64 rows, which takes time in proportion to n; the paper
    compares all. 2. Permute-and-flip in place of noisy maxima: the same cost, and no more error (McKenna and Sheldon
    2020).
    """
    blocks = rng.integers(max(expected_rows // BLOCK, 1), size=len(y))
    K = np.abs(_coefficients(np.column_stack([X, y]), blocks))
    left, chosen = list(range(X.shape[1])), list[int]()
    for _ in range(count):
        scores = K[left, -1] - (K[np.ix_(left, chosen)].mean(axis=1) if chosen else 0.0)
        sensitivity = SENSITIVITY[relation] * (2 if chosen else 1)
        chosen.append(
            left.pop(
                permute_and_flip(rng, ledger, scores, sensitivity=sensitivity, epsilon=epsilon / count, label="column")
            )
        )
    return sorted(chosen)


def _coefficients(columns: Floats, blocks: Codes) -> Floats:
    """K (p, p) of each two of the columns (n, p)."""
    found = np.zeros((columns.shape[1],) * 2)
    order = np.argsort(blocks, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(blocks[order])) + 1):
        if len(rows) > 1:
            one, two = np.triu_indices(len(rows), 1)
            signs = np.sign(columns[rows[one]] - columns[rows[two]]).astype(np.float32)
            found += (signs.T @ signs) / (len(rows) - 1)
    return found
