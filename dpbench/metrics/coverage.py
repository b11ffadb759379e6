"""Coverage and width of intervals for the population's coefficients, and a score that combines both."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpbench.data.domain import Floats
from dpbench.metrics.evaluation import Evaluation, Reference, Score
from dpbench.models.linear import RELATIVE_RANK_TOLERANCE, solve, units

NULL_SPACE = 1e-6  # of a unit vector's length: less is the rounding of eigenvectors


def coverage(evaluation: Evaluation) -> Score:
    """Share of the identified coefficients covered by their intervals; over repetitions it should be the level.

    For simulated rows the population's coefficients are known, such as those they were drawn with, and all are
    identified. For real ones the population is the split's entire table, training and test rows together, of which the
    training rows are a sample without replacement: with `sample.test_rows` at all the other rows, it is the data set. A
    sample that is a fraction f of it varies less than one from an infinite population, by sqrt(1 - f): at f = 0.1,
    correct intervals of level 0.9 have coverage 0.917. A coefficient is identified if its value is unique in spite of
    collinear columns.
    `detail` has the numbers behind the share.
    """
    intervals, kept = _intervals(evaluation)
    population = _population(evaluation.reference)[kept]
    lower, upper = intervals.T
    covered = (lower <= population) & (population <= upper)
    detail = {
        "columns": [name for name, keep in zip(evaluation.reference.design.columns, kept, strict=True) if keep],
        "population": population.tolist(),
        "coefficients": evaluation.fit.coefficients[kept].tolist(),
        "lower": lower.tolist(),
        "upper": upper.tolist(),
    }
    return Score("coverage", float(covered.mean()), "", "none", detail)


def interval_width(evaluation: Evaluation) -> Score:
    """Median width of the intervals of the identified coefficients, in (scaled) target for one unit of a feature."""
    intervals, _ = _intervals(evaluation)
    return Score("interval_width", float(np.median(intervals[:, 1] - intervals[:, 0])), _unit(evaluation), "lower")


def interval_score(evaluation: Evaluation) -> Score:
    """Mean over the identified coefficients of (u - l) + 2/alpha times how far [l, u] misses the population's value.

    The interval score of level 1 - alpha, which penalises width and misses: its expectation is least for the true
    quantiles (Gneiting and Raftery 2007, equation 43). The population is that of `coverage`, the unit that of
    `interval_width`.
    """
    intervals, kept = _intervals(evaluation)
    population = _population(evaluation.reference)[kept]
    lower, upper = intervals.T
    missed = np.maximum(lower - population, 0.0) + np.maximum(population - upper, 0.0)
    score = upper - lower + 2 / (1 - float(evaluation.fit.notes["level"])) * missed
    return Score("interval_score", float(score.mean()), _unit(evaluation), "lower")


def _unit(evaluation: Evaluation) -> str:
    return "scaled target" if evaluation.reference.design.scaled else ""


def _population(reference: Reference) -> Floats:
    """The population's coefficients (p,); see `coverage`."""
    if reference.truth is not None:
        return reference.truth
    return solve(*reference.all_moments, scaled=reference.design.scaled).coefficients


def _intervals(evaluation: Evaluation) -> tuple[Floats, NDArray[np.bool_]]:
    """The intervals of the identified coefficients, and which these are (p,)."""
    if evaluation.fit.intervals is None:
        raise ValueError("this model has no intervals; leave out the metrics of intervals")
    if evaluation.reference.truth is not None:
        return evaluation.fit.intervals, np.ones(len(evaluation.fit.intervals), dtype=bool)
    xtx = evaluation.reference.all_moments[0]
    unit = units(xtx, evaluation.reference.design.scaled)
    values, vectors = np.linalg.eigh(xtx / np.outer(unit, unit))
    null = vectors[:, values <= RELATIVE_RANK_TOLERANCE * values[-1]]
    kept = np.linalg.norm(null, axis=1) < NULL_SPACE
    return evaluation.fit.intervals[kept], kept
