"""A printed number beside the one found here: whether they differ by more than the noise of both simulations."""

from __future__ import annotations

import math
from collections.abc import Iterable
from statistics import NormalDist

from dpbench.report.statements import LEVEL, NOT_RUN, OPEN

VERDICTS = WITHIN, HIGHER, LOWER = "within", "higher", "lower"
Z = NormalDist().inv_cdf((1 + LEVEL) / 2)
RULE = (
    "Verdicts: a printed number is within Monte Carlo error of ours if they differ by at most "
    f"{Z:.2f} times the standard error of the difference, sqrt(se² (1 + n / n printed)), which takes our spread "
    "for that of the print, plus half a unit of the last printed digit. Otherwise ours is higher or lower. Where all "
    f"else is equal, {100 * (1 - LEVEL):.0f} % of verdicts are not within; they are not corrected for their number"
)


def verdict(mean: float, se: float, count: int, printed: float, repetitions: int, digit: float) -> str:
    """Where `mean`, with the standard error `se` over `count` repetitions, lies to a printed mean over `repetitions`.

    `digit` is one unit of the last printed digit. Without a mean or a standard error it is "cannot tell".
    """
    if not math.isfinite(mean) or not math.isfinite(se):
        return OPEN
    tolerance = Z * se * math.sqrt(1 + count / repetitions) + digit / 2
    return WITHIN if abs(mean - printed) <= tolerance else HIGHER if mean > printed else LOWER


def counted(verdicts: Iterable[str]) -> str:
    """How often each verdict was given: "Of 9 comparisons with the print: within 5, higher 2, lower 1, not run 1"."""
    given = list(verdicts)
    told = [f"{name} {given.count(name)}" for name in (*VERDICTS, OPEN, NOT_RUN) if name in given]
    return f"Of {len(given)} comparisons with the print: {', '.join(told)}" if given else ""
