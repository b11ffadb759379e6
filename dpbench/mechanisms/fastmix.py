"""FastMix: least squares on a Gaussian sketch of rows that a Hadamard matrix has mixed (Lev et al. 2026).

Each record takes one of N places by chance. F is a K x N matrix, drawn without the rows: K rows of a Hadamard matrix,
each column with a random sign, over sqrt K. Its columns u_i have norm 1, and their inner products are at most c in
size, c known from F. What is sketched is F A, that is, sum_j u_j a_j' (K, p), whose Gram matrix is G.

**Theorem.** With m the largest norm of sum_{j != i} (u_i' u_j) a_j over all N places i, empty ones too, and ||a_j|| <=
B, let

    m~ = m + s c B N(0, 1),   m^ = max(m~ + tau s c B, 0),   Q = B^2 + 2 B m^,

and sketch G as in `sketches`, with Q for B^2: z = lambda + s Q N(0, 1), lambda the least eigenvalue of G, eta^2 =
max(gamma Q - max(z - tau s Q, 0), 0), and k rows of N(0, G + eta^2 I). Neighbours add or remove a record. All of it is
(eps, delta)-DP with delta = 2 P(N(0, 1) > tau) + that of two Gaussian steps of multiplier s and k rows as in
`projections.two_sided_rdp`, with multiplier sqrt(gamma - 1), at eps.

Proof. The places of the records of the smaller table D are a uniform choice of places, in a uniform order, and so are
they in the larger one, D', without the further record v. So take them to be the same, and F too: what is released is a
mixture over both, and delta at eps is convex. v takes a place i that is empty in D; let u = u_i, and w = sum_j (u' u_j)
a_j over D.

1. At place i the sum in m is w for both tables, and at another one it changes by (u_j' u) v: m~ is a Gaussian step of
   sensitivity c B. As ||w|| <= m for both, ||w|| <= m^ unless N(0, 1) < -tau: one set of values of m~ for the pair.
2. Given that, E = G(D') - G(D) = v v' + w v' + v w' has the trace norm Q at most, and so ||E|| <= Q: z is a Gaussian
   step of sensitivity Q. Let L be the larger of both lambda. Unless z > L + tau s Q, which has probability P(N(0, 1) >
   tau) at most on either table and is one set of values too, the table with L has G + eta^2 I >= gamma Q I, and the
   other, which differs by E, at least (gamma - 1) Q I.
3. With v = (a, 0) and w = (b, d) on their plane, E is ((a^2 + 2 a b, a d), (a d, 0)), of determinant -(a d)^2 <= 0: it
   has at most one eigenvalue of each sign. So `two_sided_rdp` bounds the divergence of a row, given all that was drawn
   before.

Renyi divergences add up, and what is outside of the two sets is paid once, as in `sketches`.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from dpbench.data.domain import Codes, Floats
from dpbench.data.encode import Design
from dpbench.data.table import Table
from dpbench.errors import UserError, check_positive
from dpbench.mechanisms.sketches import FAILURE, LEAST, check_finite, sketch, statistics_of
from dpbench.privacy.budget import Budget
from dpbench.privacy.ledger import Ledger
from dpbench.privacy.noise import gaussian
from dpbench.privacy.projections import two_sided_epsilon
from dpbench.privacy.root_finding import root
from dpbench.releases import Release

COLUMNS = 32  # that are mixed at once


def fastmix(
    train: Table,
    budget: Budget,
    rng: np.random.Generator,
    *,
    design: Design,
    rows_per_column: float = 2.5,
    mixed_per_column: float = 200.0,
    most_rows: int = 65_536,
) -> Release:
    """k random Gaussian combinations of K Hadamard combinations of the rows of A = [X, y], with a ridge.

    What is released is their second moments over k, as `gaussmix` does, of which it is the variant for large n: the
    sketch takes N log N steps a column, not k n. Here `gaussmix` draws its sketch from the distribution given A'A, and
    is the faster of the two; and its noise is less, by the factor Q / B^2, which is large where K is far below n.

    **Source** Lev, Shenfeld, Srinivasan, Ligett and Wilson 2026, "The Fast Mixing Mechanism for Differential Privacy",
    arXiv 2605.30600. Read were its abstract and the authors' code (omrilev1/FastMix 4bb81dc, `FastLinearMix`), not its
    theorem: the one above is our own. K = `mixed_per_column` max(p, log(20 / delta)), the most columns in that code,
    and k as in `gaussmix`. `most_rows` is a public bound on the number of rows; N is the next power of 2.
    **Privacy** Add/remove, by the theorem above. gamma is the least for (eps, delta), s = (gamma - 1) / sqrt k.
    **Shapes** X (n, p), y (n,) as `design` encodes them, ||x||_2 <= ||X||, |y| <= ||Y||; k rows of length p + 1.
    **Departures** 1. Records take places by chance, with empty ones: the code replaces a row by zeros, in a table of
    2^q rows. 2. The trace norm of E bounds its divergence, and all steps are composed by Renyi divergence; the code
    bounds trace and determinant apart, and adds up the eps of its steps. 3. The sketch is drawn from its distribution
    given F A. 4. `xtx_sd` and `xty_sd` are a lower bound, as in `gaussmix`.

    Raises `UserError` for a parameter out of range, an infinite eps, or more than `most_rows` rows.
    """
    check_positive("fastmix", rows_per_column=rows_per_column, mixed_per_column=mixed_per_column, most_rows=most_rows)
    if len(train) > most_rows:
        raise UserError(
            f"fastmix: the table has more than most_rows={most_rows:,} rows; give a bound that does not come from it"
        )
    p, B = len(design.columns), math.hypot(design.x_bound, design.y_bound)
    scale = max(p, math.log(20 / budget.delta))
    k = max(math.ceil(rows_per_column * scale), p + 2)
    N = 2 ** math.ceil(math.log2(max(most_rows, 2)))
    K = min(math.ceil(mixed_per_column * scale), N // 2)
    gamma, failure, ledger = least_gamma(budget, k), FAILURE * budget.delta / 2, Ledger()
    s = (gamma - 1) / math.sqrt(k)

    places, signs = rng.permutation(N)[: len(train)], rng.choice([-1.0, 1.0], size=N)
    chosen = np.zeros((N, 1))
    chosen[rng.permutation(N)[:K]] = 1.0
    c = float(np.abs(hadamard(chosen)[1:]).max()) / K
    gram, m = mixed(np.column_stack(design.encode(train)), places, signs, chosen[:, 0] > 0)
    found = gaussian(rng, ledger, m, sensitivity=c * B, multiplier=s, label="largest sum of the other rows")
    Q = B * (B + 2 * max(float(found) - float(ndtri(failure)) * s * c * B, 0.0))
    rows, ridge = sketch(
        rng,
        ledger,
        gram,
        squared=Q,
        gamma=gamma,
        multiplier=s,
        failure=failure,
        count=k,
        paid=failure,
        two_sided=True,
    )
    statistics = statistics_of(rows, ridge, gamma * Q / math.sqrt(k))
    diagnostics = {"sketch_rows": k, "mixed_rows": K, "gamma": gamma, "ridge": ridge, "inflation": Q / B**2}
    return Release(train.domain, budget, ledger, (statistics,), diagnostics)


def least_gamma(budget: Budget, count: int) -> float:
    """The least gamma with which the theorem gives the budget, 2 P(N(0, 1) > tau) being `FAILURE` of delta.

    Raises `UserError` for an infinite eps.
    """
    check_finite(budget.epsilon, "fastmix")

    def excess(multiplier: float) -> float:
        mu = math.sqrt(2 * count) / multiplier**2  # of two steps of multiplier (gamma - 1) / sqrt(count)
        return two_sided_epsilon(multiplier, count, (1 - FAILURE) * budget.delta, mu) - budget.epsilon

    return 1 + root(excess, LEAST, 1.0, rising=False) ** 2


def mixed(A: Floats, places: Codes, signs: Floats, chosen: NDArray[np.bool_]) -> tuple[Floats, float]:
    """G (p, p), and m, of rows A (n, p) at these places, for the `chosen` rows of a Hadamard matrix with these signs
    (N,).
    """
    N, K, p = len(signs), int(chosen.sum()), A.shape[1]
    FA, squares = np.empty((K, p)), np.zeros(N)
    for start in range(0, p, COLUMNS):
        part = A[:, start : start + COLUMNS]
        placed = np.zeros((N, part.shape[1]))
        placed[places] = part * signs[places, None]
        spread = hadamard(placed)
        FA[:, start : start + COLUMNS] = spread[chosen] / math.sqrt(K)
        spread[~chosen] = 0.0
        squares += np.square(hadamard(spread) / K - placed).sum(axis=1)  # F'F A - A, but for the signs
    return FA.T @ FA, math.sqrt(float(squares.max()))


def hadamard(x: Floats) -> Floats:
    """The product of the Hadamard matrix of Sylvester (N, N), N a power of 2, and x (N, m).

    >>> hadamard(np.array([[1.0], [2.0], [3.0], [4.0]])).ravel().tolist()
    [10.0, -2.0, -4.0, 0.0]
    """
    N, m = x.shape
    y = x.copy()
    for step in (2**q for q in range(N.bit_length() - 1)):
        pairs = y.reshape(-1, 2, step, m)
        pairs[:, 0], pairs[:, 1] = pairs[:, 0] + pairs[:, 1], pairs[:, 0] - pairs[:, 1]
    return y
