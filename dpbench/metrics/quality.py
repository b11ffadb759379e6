"""The quality of a synthetic table: every score of it, with that of a table as good as the real one.

Among the scores are how well models that are trained on it predict real rows, and what a regression on it concludes.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dpbench.data.domain import Clique
from dpbench.data.encode import Design
from dpbench.data.table import Table, split
from dpbench.errors import UserError
from dpbench.metrics.distinguish import distinguish
from dpbench.metrics.similarity import MOST_FOR_TRIPLES, Values, similarity

if TYPE_CHECKING:
    import pandas as pd
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from statistics import NormalDist

from numpy.typing import NDArray

from dpbench.data.domain import Floats
from dpbench.data.encode import second_moments
from dpbench.errors import NoEstimateError
from dpbench.metrics.classification import auc_of
from dpbench.metrics.distinguish import TREES
from dpbench.models.estimators import xgboost
from dpbench.models.fit import Fit
from dpbench.models.linear import RELATIVE_RANK_TOLERANCE, linear_rows, solve
from dpbench.models.logistic import logistic_lbfgs
from dpbench.privacy.budget import Budget
from dpbench.privacy.ledger import Ledger
from dpbench.releases import Release, SyntheticRows

LEVEL = 0.95  # of the intervals that say what is significant
ALIASED = 1e-9  # at most this part of a square is left of what others determine
STEPS = 100  # of logistic regression: the default of scikit-learn
TEST = 0.2  # of the real rows are for testing models
UNPROTECTED = (
    "The scores compare the synthetic rows with the real ones exactly: no privacy budget protects them. Before they "
    "are published, ask whether they may be."
)
LIKE_REAL = math.nan  # what the bootstrap reaches is the best
_TV = "total variation distance, half of the l1 distance, of the shares of the rows"


def efficacy(train: Table, test: Table, design: Design, rng: np.random.Generator) -> Values:
    """How well a linear model and boosted trees that were trained on `train` predict the real rows `test`.

    The score is the area under the ROC curve for a target of two levels, R^2 for a numeric one, else the share of rows
    whose level is predicted. NaN where the rows do not allow it, such as those of one level.

    **Source** Esteban, Hyland and Rätsch 2017 (train on synthetic, test on real, arXiv 1706.02633); synthcity's
    performance.linear_model and performance.xgb.
    """
    linear = partial(logistic_lbfgs, iterations=STEPS) if design.binary or design.several else linear_rows
    return {
        ("efficacy_linear", ()): _efficacy(linear, design, train, test, rng),
        ("efficacy_trees", ()): efficacy_of_trees(train, test, design, rng),
    }


def efficacy_of_trees(train: Table, test: Table, design: Design, rng: np.random.Generator) -> float:
    """`efficacy` of boosted trees alone, on codes: a few splits make up for the order of levels."""
    return _efficacy(partial(xgboost, trees=TREES), replace(design, categorical="ordinal"), train, test, rng)


def _efficacy(model: Callable[..., Fit], design: Design, train: Table, test: Table, rng: np.random.Generator) -> float:
    X, y = design.encode(test)
    try:
        predicted = model(_released(train), design=design, rng=rng).predict(X)
    except NoEstimateError:
        return math.nan
    return _performance(predicted, y, design)


def _performance(predicted: Floats, y: Floats, design: Design) -> float:
    if design.binary:
        return auc_of(predicted, y)
    if design.several:
        return float(np.mean(predicted == y))
    spread = float(np.mean((y - y.mean()) ** 2))
    return 1 - float(np.mean((y - predicted) ** 2)) / spread if spread else math.nan


def _released(table: Table) -> Release:
    return Release(table.domain, Budget(math.inf), Ledger(), (SyntheticRows(table),))


# --- conclusions ---------------------------------------------------------------------------------------------------


def conclusions(real: Table, others: Sequence[Table], design: Design) -> list[Values]:
    """The share of a regression's conclusions on the real rows that each of the other tables gives too.

    The regression is least squares on the target (-1 and +1 for two levels). Of each coefficient but the intercept it
    concludes that it is above 0, below 0 or not known to differ from 0, by the usual interval. Columns that are, in the
    real rows, combinations of those before them are left out. `findings`: of all coefficients; `findings_significant`:
    of those that are significant on the real rows. Empty for a target of more than two levels, and for one that the
    other attributes determine.

    **Source** After SynRD (Rosenblatt et al. 2023, "Epistemic parity: reproducibility as an evaluation metric for
    differential privacy", arXiv 2208.12700), which repeats the findings of eight papers.
    """
    if design.several:
        return [{} for _ in others]
    X, y = design.encode(real)
    kept = _identified(X.T @ X)
    true = _signs(X[:, kept], y)
    if true is None or not len(true):
        return [{} for _ in others]
    found = []
    for other in others:
        X, y = design.encode(other)
        signs = _signs(X[:, kept], y)
        same = np.zeros(len(true)) if signs is None else signs == true
        values: Values = {("findings", ()): float(same.mean())}
        if true.any():
            values["findings_significant", ()] = float(same[true != 0].mean())
        found.append(values)
    return found


def _identified(gram: Floats) -> NDArray[np.intp]:
    """The columns of X that are no combinations of the intercept, the last one, and those before them."""
    left, kept = gram.copy(), []
    for j in (len(gram) - 1, *range(len(gram) - 1)):
        if left[j, j] > ALIASED * gram[j, j]:
            kept.append(j)
            left -= np.outer(left[j], left[j]) / left[j, j]
    return np.sort(kept)


def _signs(X: Floats, y: Floats) -> Floats | None:
    """-1, 0 or +1 for each column but the last, the intercept; None if nothing of y is left unexplained."""
    xtx, xty = second_moments(X, y)
    theta = solve(xtx, xty).coefficients
    unexplained, spread = float(((y - X @ theta) ** 2).sum()), float(((y - y.mean()) ** 2).sum())
    if len(y) <= len(theta) or unexplained <= ALIASED * spread:
        return None
    inverse = np.linalg.pinv(xtx, rcond=RELATIVE_RANK_TOLERANCE, hermitian=True)
    se = np.sqrt(unexplained / (len(y) - len(theta)) * np.maximum(np.diag(inverse), 0.0))
    reach = NormalDist().inv_cdf((1 + LEVEL) / 2) * se
    signs: Floats = np.where((np.abs(theta) > reach) & (se > 0), np.sign(theta), 0.0)[:-1]
    return signs


@dataclass(frozen=True)
class Definition:
    """What a score is, and its value for a table that could not be better (NaN: see the bootstrap)."""

    group: str
    text: str
    best: float


SCORES = {
    "one_way": Definition("marginals", f"{_TV}, of one attribute's levels or bins; the mean over attributes", 0),
    "two_way": Definition("marginals", f"{_TV}, of a pair's cells; the mean over all pairs", 0),
    "two_way_max": Definition("marginals", "the largest of a pair", 0),
    "two_way_measured": Definition("marginals", "the mean over the pairs in a marginal that was measured", 0),
    "two_way_unmeasured": Definition("marginals", "the mean over the other pairs", 0),
    "three_way": Definition("marginals", "the same of triples; the mean over all of them", 0),
    "three_way_max": Definition("marginals", "the largest of a triple", 0),
    "correlation": Definition(
        "dependence", "mean |r - r'| of Pearson's correlations, over pairs of numeric or two-level attributes", 0
    ),
    "association": Definition("dependence", "mean |V - V'| of Cramér's V, over all pairs", 0),
    "levels_covered": Definition(
        "coverage", "the share of the levels and bins of the real rows that occur; the mean over attributes", 1
    ),
    "rare_levels_kept": Definition(
        "coverage", "the same of those that have at most 1 % of the real rows, of all attributes together", 1
    ),
    "auc_logistic": Definition(
        "distinguishability", "area under the ROC curve of logistic regression, real against synthetic rows", 0.5
    ),
    "auc_trees": Definition("distinguishability", "the same of boosted trees (XGBoost), which see interactions", 0.5),
    "pmse": Definition(
        "distinguishability", "mean squared difference of a logistic propensity score from the synthetic share", 0
    ),
    "efficacy_linear": Definition(
        "analysis", "a linear model trained on synthetic, tested on real rows: area under the ROC curve of two levels, "
        "R² of a number, accuracy of several levels", LIKE_REAL,
    ),
    "efficacy_trees": Definition("analysis", "the same of boosted trees (XGBoost)", LIKE_REAL),
    "findings": Definition(
        "analysis", "the share of a regression's coefficients with the same conclusion: above 0, below 0, or neither", 1
    ),
    "findings_significant": Definition("analysis", "the same of those significant on the real rows", 1),
}  # fmt: skip


@dataclass(frozen=True)
class QualityScore:
    """A score of the synthetic table: its `value`, and that of a `bootstrap` of the real rows.

    `of`: the attribute or the pair that it is of; empty for the whole table.
    """

    score: str
    of: Clique
    value: float
    bootstrap: float


@dataclass(frozen=True)
class Quality:
    """All scores of a synthetic table of m rows against n real ones, in the order of `SCORES`.

    `target`: what the models of the analysis predict, "" for none. `notes`: what is left out, and why.
    """

    rows: int
    real_rows: int
    target: str
    scores: tuple[QualityScore, ...]
    notes: tuple[str, ...]

    def frame(self) -> pd.DataFrame:
        """A row for each score, with its `group`, `best` value and `definition`."""
        import pandas as pd

        rows = []
        for one in self.scores:
            about = SCORES[one.score]
            numbers = {"value": one.value, "bootstrap": one.bootstrap, "best": about.best}
            rows.append(
                {"group": about.group, "score": one.score, "of": ", ".join(one.of), **numbers, "definition": about.text}
            )
        return pd.DataFrame(rows)


def quality(
    real: Table, synthetic: Table, target: str | None = None, *, measured: Collection[Clique] = (), seed: int = 0
) -> Quality:
    """Score a synthetic table against the real rows, which must be over the same domain.

    The bootstrap has as many rows as the synthetic table, drawn from the real ones with replacement: what it scores is
    the real rows' own sampling error, the scale of each score. Models are tested on a random fifth of the real rows;
    the bootstrap's are trained on draws from the other four fifths. Whether the synthesizer saw the rows for testing
    is not known here. `measured`: the marginals that it measured, if known.

    Raises `UserError` for tables over other domains, and for fewer than two rows in one of them.
    """
    if real.domain != synthetic.domain:
        raise UserError("the real and the synthetic rows must be over the same domain")
    for what, table in (("real", real), ("synthetic", synthetic)):
        if len(table) < 2:
            raise UserError(f"the {what} table has {len(table)} rows; a comparison needs two or more")
    choice, draws, folds, models = np.random.default_rng(seed).spawn(4)
    names, notes = list(real.domain.names), []
    triples_of = names
    if len(names) > MOST_FOR_TRIPLES:
        triples_of = sorted(choice.choice(names, MOST_FOR_TRIPLES, replace=False).tolist(), key=names.index)
        notes.append(f"Triples are those of {MOST_FOR_TRIPLES} of the {len(names)} attributes, chosen at random.")
    tables = (synthetic, real.take(draws.integers(len(real), size=len(synthetic))))
    found = [similarity(real, table, measured, triples_of) for table in tables]
    for values, table, rng in zip(found, tables, folds.spawn(2), strict=True):
        values.update(distinguish(real, table, rng))
    if target is None:
        notes.append("No target is declared, so that there are no scores of the analysis.")
    else:
        design = Design(real.domain, target, classes=True)
        for values, more in zip(found, _analysis(real, synthetic, tables[1], design, models), strict=True):
            values.update(more)
        if ("findings", ()) not in found[0]:
            why = "it has several levels" if design.several else "the other attributes determine it"
            notes.append(f"No findings on {target} are compared: {why}.")
    scores = (QualityScore(name, of, value, found[1][name, of]) for (name, of), value in found[0].items())
    order = list(SCORES)
    ordered = sorted(scores, key=lambda one: (one.of != (), order.index(one.score)))
    return Quality(len(synthetic), len(real), target or "", tuple(ordered), tuple(notes))


def _analysis(real: Table, synthetic: Table, drawn: Table, design: Design, rng: np.random.Generator) -> list[Values]:
    """The scores of models and conclusions, of the synthetic rows and of real ones."""
    parts = split(real, rng, train_rows=len(real), test_rows=TEST)
    again = parts.train.take(rng.integers(len(parts.train), size=len(synthetic)))
    tables = zip((synthetic, again), conclusions(real, (synthetic, drawn), design), rng.spawn(2), strict=True)
    return [efficacy(table, parts.test, design, own) | agreed for table, agreed, own in tables]
