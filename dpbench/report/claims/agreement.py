"""Whether a published number and ours differ by more than the Monte Carlo error of both."""

from __future__ import annotations

import math
from collections.abc import Iterable

from dpbench.config.specs import PublishedTable
from dpbench.report.claims.statements import NOT_RUN, OPEN
from dpbench.report.frames.frame import LEVEL, reach

VERDICTS = WITHIN, HIGHER, LOWER, IMPRECISE = "within", "higher", "lower", "not precise enough"
PRECISION = 0.1  # of the published number: with a larger standard error, agreement means nothing,
HALF = 0.25  # nor with a wider half of the interval, as that of few repetitions is
RULE = (
    "Verdicts: a published number is within Monte Carlo error of ours if they differ by at most "
    f"Student's two-sided {100 * LEVEL:.0f} % quantile times the standard error of the difference, "
    "sqrt(se² (1 + n / n published)), which takes our spread for that of the paper, plus half a unit of the last "
    f"published digit, and if se is at most {PRECISION:g}, and that quantile times it at most {HALF:g}, of the "
    "published number (of a bias: of the published SD); else it is not precise enough. Otherwise ours is higher or "
    "lower, whatever its se: the difference is beyond the noise. Where all else is equal and estimates are normal, "
    f"{100 * (1 - LEVEL):.0f} % of verdicts are higher or lower; they are not corrected for their number"
)


def verdict(
    mean: float, se: float, count: int, published: float, paper: PublishedTable, scale: float | None = None
) -> str:
    """Compare `mean`, with the standard error `se` over `count` repetitions, with a published mean.

    `paper` has the published `repetitions` and `digit`, one unit of the last published digit. `se` is precise enough
    relative to `scale`, the published number unless given. Without a mean or a standard error it is
    "cannot tell".
    """
    if not math.isfinite(mean) or not math.isfinite(se):
        return OPEN
    quantile = float(reach(count))
    tolerance = quantile * se * math.sqrt(1 + count / paper["repetitions"]) + float(paper["digit"]) / 2
    if abs(mean - published) > tolerance:
        return HIGHER if mean > published else LOWER
    scale = abs(published if scale is None else scale)
    return WITHIN if se <= PRECISION * scale and quantile * se <= HALF * scale else IMPRECISE


def counted(verdicts: Iterable[str]) -> str:
    """How often each verdict was given: "Of 9 comparisons with published numbers: within 5, higher 4"."""
    given = list(verdicts)
    counts = [f"{name} {given.count(name)}" for name in (*VERDICTS, OPEN, NOT_RUN) if name in given]
    return f"Of {len(given)} comparisons with published numbers: {', '.join(counts)}" if given else ""
