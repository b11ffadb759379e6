"""Least squares on several synthetic tables, combined into estimates and intervals that know how they were made."""

from __future__ import annotations

import numpy as np

from dpbench.data.domain import Floats
from dpbench.data.encode import Design
from dpbench.errors import check_part
from dpbench.models.fit import Fit
from dpbench.models.sandwich import robust_fit
from dpbench.releases import Release, SyntheticTables


def linear_tables(release: Release, *, design: Design, level: float = 0.95) -> Fit:
    """Least squares on each of m tables, and q -+ t sqrt(T), q the mean of the estimates, by the rules for synthetic
    data.

    With q_j the estimates, u_j their variances as if the rows were real, b the variance of the q_j between tables, and
    q and u the means: T = (1 + 1/m) b - u, and t the quantile of Student's distribution with (m - 1) (1 - u / ((1 +
    1/m) b))^2 degrees of freedom. b has the posterior variance of the distribution, which knows the privacy noise, and
    that of drawing rows from it; the latter is u. Where T is not positive, (rows of a table / rows of the data) u takes
    its place.

    **Source** Raghunathan, Reiter and Rubin 2003, "Multiple imputation for statistical disclosure limitation", Journal
    of Official Statistics 19; for a T that is not positive Reiter 2002, same journal 18. That they hold under noise
    where each table is of its own posterior draw that takes account of it: Räisä, Jälkö, Kaski and Honkela 2023 (arXiv
    2205.14485). The formulas are from the code of the last (Apache-2.0); the older papers were not read.
    **Privacy** Post-processing.
    **Shapes** `intervals` (p, 2): lower and upper ends in the order of `Design.columns`.
    **Departures** u_j is White's robust variance, since a linear model is not true of a table of levels; any valid
    variance serves.

    Raises `UserError` for a level outside (0, 1).
    """
    check_part("linear_tables: level", level)
    tables = release[SyntheticTables]
    fits = [robust_fit(*design.encode(table), scaled=design.scaled) for table in tables]
    q, u = np.stack([fit.coefficients for fit, _ in fits]), np.stack([variances for _, variances in fits])
    ratio = tables.size / float(release.diagnostics.get("total", tables.size))
    half, lowest = combined_width(q, u, level=level, ratio=ratio)
    mean = q.mean(axis=0)
    notes = {"level": level, "tables": tables.count, "replaced": int((lowest <= 0).sum())}
    return Fit(mean, notes=notes, intervals=np.stack([mean - half, mean + half], axis=1))


def combined_width(q: Floats, u: Floats, *, level: float, ratio: float) -> tuple[Floats, Floats]:
    """Half the width (p,) of the intervals from estimates and variances (m, p), and T before a replacement (p,).

    >>> half, T = combined_width(np.array([[1.0], [2.0], [3.0]]), np.full((3, 1), 1 / 3), level=0.95, ratio=1.0)
    >>> float(T[0]).hex() == 1.0.hex(), round(float(half[0]), 2)
    (True, 9.81)
    """
    from scipy.special import stdtrit

    m = len(q)
    between, within = (1 + 1 / m) * q.var(axis=0, ddof=1), u.mean(axis=0)
    T = between - within
    share = np.divide(within, between, out=np.ones_like(within), where=between > 0)
    freedom = np.maximum((m - 1) * (1 - share) ** 2, 1.0)  # a quantile of fewer degrees is that of no interval
    half: Floats = stdtrit(freedom, (1 + level) / 2) * np.sqrt(np.where(T > 0, T, ratio * within))
    return half, T
