"""BinAgg: noisy counts and sums of the rows in private bins (Algorithms 1 and 2 of its paper)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dpbench.data.domain import Codes, Floats
from dpbench.data.encode import Design
from dpbench.data.table import Table
from dpbench.errors import UserError, check_known
from dpbench.mechanisms.privtree import at_least, check_tree, privtree
from dpbench.privacy.accounting import check_calibration, gaussian_mu
from dpbench.privacy.budget import Budget
from dpbench.privacy.discrete import OnGrid, grouped, is_discrete, whole
from dpbench.privacy.ledger import Ledger
from dpbench.privacy.noise import gaussian, unpaid
from dpbench.privacy.pure import pure_epsilon
from dpbench.releases import BinSums, Release

ALLOCATIONS = ("proportional", "centred")


def binagg(
    train: Table,
    budget: Budget,
    rng: np.random.Generator,
    *,
    design: Design,
    calibration: str = "tight",
    ratio: Sequence[float] = (1, 3, 3, 3),
    theta: float = 0.0,
    widest: str = "own_unit",
    allocation: str = "proportional",
    least_count: int = 2,
    max_bins: int = 100_000,
    noise: str = "continuous",
) -> Release:
    """Bins of the features from PrivTree; in each, a noisy count c, sum s of the features, and sum t of the target.

    `ratio` divides mu into mu_bin : mu_c : mu_s : mu_t (the root of the sum of their squares is mu). Bins with a noisy
    count below `least_count` are discarded. `theta`, `widest` and `max_bins`: see `privtree`. `noise`: `continuous`, or
    `discrete` (`privacy.discrete`), in the tree too.

    **Source** BinAgg, Algorithm 1 and lines 2 to 4 of Algorithm 2; budgets: appendix A.
    **Privacy** Add/remove; mu is the largest Gaussian-DP parameter that (eps, delta) allows. The tree is
    pure_epsilon(mu_bin)-DP. A record is in one bin, so that the noises of all bins compose in parallel: c has
    sensitivity 1; t has B_y = max |y|; s_i has Delta_i = max(|L_i|, |U_i|) in a bin [L, U], and s / Delta has sqrt(d)
    in the l2 norm, d being the number of features that can be other than 0 at once: of a one-hot attribute one.
    `tight`: noise sqrt(d) Delta_i / mu_s. `paper`: noise Delta_i / mu_s, as published, which is sqrt(d) mu_s-Gaussian
    DP; the ledger says so. `authors`: the published noise, as in the authors' package, which takes the exact number of
    rows n unpaid: the counts of the bins that are kept are brought to add up to it.
    **Shapes** X (n, p), y (n,) as `design` encodes them, moved into the design's box; the release: see `BinSums`.
    **Departures** 1. `tight`. 2. `centred`, ours: not s and t are noised but s - c m and t - c m_y, where m is the
    middle of the bin and m_y that of the target's range. Delta_i and B_y are then the half-widths, which are smaller,
    and d counts every feature that varies, one-hot ones too: 0 is as far from the middle as 1.
    The release holds their noisy values plus m c~ and m_y c~, with the noisy count c~. The noise of the count cancels
    in t - s beta as far as the model holds at the middle; `sums_sd` and `targets_sd` leave it out, and
    `bin_regression` says why that is right. 3. `authors` halves the largest bin of the tree until there are p + 1 (see
    `at_least`), as the package does. There a row on the edge of two bins is in both, and so counts twice; here it is in
    one.
    """
    check_calibration(calibration, "authors")
    check_tree(theta, widest, max_bins)
    _check(budget, ratio, allocation, least_count)
    box, target_range = design.box, design.target_range
    d = _at_once(design, allocation)
    if not d:
        raise UserError("binagg: each feature of the domain has one value only; regression needs one that varies")
    share = gaussian_mu(budget.epsilon, budget.delta) / math.hypot(*ratio)
    mu_bin, mu_c, mu_s, mu_t = (share * part for part in ratio)
    ledger, epsilon_bin = Ledger(), pure_epsilon(mu_bin)

    X, y = design.encode(train)
    X, y = np.clip(X, *box), np.clip(y, *target_range)
    # Alg. 1, line 2
    lower, upper, bin_of = privtree(
        X, *box, rng, ledger, epsilon=epsilon_bin, theta=theta, widest=widest, max_bins=max_bins, noise=noise
    )
    if calibration == "authors":
        lower, upper, bin_of = at_least(X.shape[1] + 1, X, lower, upper, bin_of)
    # Alg. 1, lines 3 to 12
    K = len(lower)
    c = np.bincount(bin_of, minlength=K).astype(float)
    noisy = gaussian(rng, ledger, whole(c, noise), sensitivity=1.0, multiplier=1 / mu_c, label="counts")
    counts = np.rint(noisy).astype(np.int64)
    kept = counts >= least_count
    lower, upper, counts, c = lower[kept], upper[kept], counts[kept], c[kept]
    s = np.stack([np.bincount(bin_of, weights=column, minlength=K)[kept] for column in X.T], axis=1)
    t = np.bincount(bin_of, weights=y, minlength=K)[kept]
    m, delta_s = _reach(lower, upper, allocation)
    m_y, delta_t = _reach(*target_range, allocation)
    # Alg. 2, lines 2 to 4
    scale = (math.sqrt(d) if calibration == "tight" else 1.0) / mu_s
    unit = np.where(delta_s > 0, delta_s, 1.0)
    sums: Floats | OnGrid = (s - c[:, None] * m) / unit
    targets: Floats | OnGrid = t - c * m_y
    if is_discrete(noise):  # the same, row by row
        inside = kept[bin_of]
        b = (np.cumsum(kept) - 1)[bin_of[inside]]
        sums, targets = grouped((X[inside] - m[b]) / unit[b], b, len(m)), grouped(y[inside] - m_y, b, len(m))
    s_noisy = gaussian(
        rng, ledger, sums, sensitivity=math.sqrt(d), multiplier=scale / math.sqrt(d), label="sums of features"
    )
    t_noisy = gaussian(
        rng, ledger, targets, sensitivity=float(delta_t), multiplier=1 / mu_t, label="sums of the target"
    )
    bins = BinSums(
        lower,
        upper,
        _adding_up(counts, int(unpaid(len(y), label="number of rows"))) if calibration == "authors" else counts,
        sums=s_noisy * delta_s + counts[:, None] * m,
        targets=t_noisy + counts * m_y,
        sums_sd=scale * delta_s,
        targets_sd=float(delta_t) / mu_t,
    )
    diagnostics = {"bins": K, "bins_kept": len(counts), "epsilon_bin": epsilon_bin}
    taken = ("the number of training rows",) if calibration == "authors" else ()
    return Release(train.domain, budget, ledger, (bins,), diagnostics, taken)


def _adding_up(counts: Codes, n: int) -> Codes:
    """Whole numbers in proportion to the counts that add up to n, by largest remainders; none is less than 1."""
    if not len(counts):
        return counts
    parts, remainders = np.divmod(counts * n, counts.sum())
    parts[np.argsort(-remainders, kind="stable")[: n - parts.sum()]] += 1
    return np.maximum(parts, 1)


def _reach(lower: Floats | float, upper: Floats | float, allocation: str) -> tuple[Floats, Floats]:
    """What is taken off the rows of [lower, upper], and the largest absolute value of the rest, by coordinate."""
    if allocation == "centred":
        return np.add(lower, upper) / 2, np.subtract(upper, lower) / 2
    return np.zeros(np.shape(lower)), np.maximum(np.abs(lower), np.abs(upper))


def _at_once(design: Design, allocation: str) -> int:
    """How many coordinates of x, or of x - m, can be other than 0 in one row."""
    if allocation == "centred":
        return int(np.count_nonzero(_reach(*design.box, allocation)[1]))
    return int(np.count_nonzero(design.peaks))


def _check(budget: Budget, ratio: Sequence[float], allocation: str, least_count: int) -> None:
    if math.isinf(budget.epsilon):
        raise UserError("binagg needs a finite epsilon; use a large one, such as 1e3, to see its limit")
    if len(ratio) != 4 or not all(0 < part < math.inf for part in ratio):
        raise UserError(
            f"ratio must be four positive numbers, for bins, counts, sums and targets, not {list(ratio)}; "
            "the paper takes [1, 3, 3, 3]"
        )
    check_known("allocation", allocation, ALLOCATIONS)
    if least_count < 1:
        raise UserError(f"least_count, which the sums are divided by, must be at least 1, not {least_count}")
