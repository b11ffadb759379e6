"""The input of a metric: a fit, its release, and the real rows. Only metrics use the real rows again."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeVar

import numpy as np

from dpbench.data.domain import Clique, Floats
from dpbench.data.encode import Design, second_moments
from dpbench.data.table import Split
from dpbench.errors import ContractError, UserError, shown
from dpbench.inference.query_workload import QueryWorkload
from dpbench.models.fit import Fit
from dpbench.models.linear import solve
from dpbench.privacy.budget import Budget
from dpbench.privacy.ledger import Ledger
from dpbench.releases import Release, SyntheticRows
from dpbench.releases.checks import check_plain, kind_of
from dpbench.releases.release_type import answers_of

MOST_FITS = 8  # that a reference keeps: a fit may be a large one, of trees
DIRECTIONS = ("lower", "higher", "none")
Arrays = TypeVar("Arrays", bound=tuple[Floats, ...])


@dataclass(frozen=True)
class Score:
    """One number: its name, unit, and which direction is better (`lower`, `higher` or `none`).

    `detail` is plain data (JSON-ready) behind the number, such as the histogram that it summarises.
    """

    name: str
    value: float
    unit: str
    direction: str
    detail: Mapping[str, object] | None = None


@dataclass(frozen=True)
class Reference:
    """The real rows of one split under one design, and non-private quantities computed from them, once.

    A fit without noise is that of the rows that the mechanism used (`Split.seen`).
    """

    split: Split
    design: Design
    _fits: dict[Hashable, Fit] = field(default_factory=dict, init=False, repr=False, compare=False)
    _marginals: dict[Clique, Floats] = field(default_factory=dict, init=False, repr=False, compare=False)
    _answers: dict[tuple[Clique, ...], Floats] = field(default_factory=dict, init=False, repr=False, compare=False)

    @cached_property
    def train_moments(self) -> tuple[Floats, Floats]:
        """X'X (p, p) and X'y (p,) of the training rows."""
        return _read_only(second_moments(*self.train))

    @cached_property
    def seen_moments(self) -> tuple[Floats, Floats]:
        """X'X (p, p) and X'y (p,) of the rows that the mechanism used."""
        return self.train_moments if self.split.protocol == "split" else self.all_moments

    @cached_property
    def coefficients(self) -> Floats:
        """The least-squares solution of least norm on the rows that the mechanism used (p,)."""
        return _read_only((solve(*self.seen_moments, scaled=self.design.scaled).coefficients,))[0]

    @cached_property
    def target_mean(self) -> float:
        """The mean of the target of the rows that the mechanism used."""
        return float(self.design.targets(self.split.seen).mean())

    @cached_property
    def likelihood(self) -> Floats:
        """The coefficients (p,) of logistic regression by maximum likelihood on the rows that the mechanism used."""
        from dpbench.models.logistic import logistic_rows  # its imports are slow

        rows = Release(self.design.domain, Budget(math.inf), Ledger(), (SyntheticRows(self.split.seen),))
        return _read_only((logistic_rows(rows, design=self.design).coefficients,))[0]

    @cached_property
    def all_moments(self) -> tuple[Floats, Floats]:
        """X'X (p, p) and X'y (p,) of the training and the test rows together."""
        (xtx, xty), (more_xtx, more_xty) = self.train_moments, second_moments(*self.design.encode(self.split.test))
        return _read_only((xtx + more_xtx, xty + more_xty))

    @cached_property
    def train(self) -> tuple[Floats, Floats]:
        """X (n, p) and y (n,) of the training rows."""
        return _read_only(self.design.encode(self.split.train))

    @cached_property
    def of_training(self) -> Reference:
        """The reference of a mechanism that used only the training rows: this one, unless it used the test rows too."""
        return self if self.split.protocol == "split" else Reference(replace(self.split, protocol="split"), self.design)

    @cached_property
    def test(self) -> tuple[Floats, Floats]:
        """X (m, p) and y (m,) of the test rows. Raises `UserError` if there are none."""
        if not len(self.split.test):
            raise UserError("this metric needs test rows: set sample.test_rows, or choose rel_mse_train")
        return _read_only(self.design.encode(self.split.test))

    @cached_property
    def truth(self) -> Floats | None:
        """The population's coefficients (p,) of simulated rows; None for real rows.

        Raises `UserError` if the design has other features than the simulation.
        """
        if not self.split.truth:
            return None
        if self.design.scaled or set(self.design.columns) != set(self.split.truth):
            intercept = str("(intercept)" in self.split.truth).lower()
            raise UserError(
                f"the simulation's coefficients are of {', '.join(self.split.truth)}, without scaling: set "
                f"+design.scaled=false, +design.exact=true and design.intercept={intercept}"
            )
        return _read_only((np.array([self.split.truth[name] for name in self.design.columns]),))[0]

    def fit(self, model: Callable[[Release], Fit], release: Release) -> Fit:
        """The model's fit to the release without noise, made once for all releases of one outline.

        Least squares if no part of the release has a form without noise.
        """
        key = (model, release.outline)
        if key not in self._fits:
            exact = release.exact(self.split.seen, self.design)
            self._keep(key, model(exact) if exact.parts else Fit(self.coefficients))
        return self._fits[key]

    def posterior(self, family: str, largest_norm: float, *, whole: bool = False) -> Fit:
        """The posterior of a Bayesian GLM given the rows that the mechanism used (or, `whole`, the test rows too).

        It is without noise, and its draws are the same wherever they are made.
        """
        from dpbench.models.bayesian_rows import bayesian_rows  # its imports are slow

        key = ("posterior", family, largest_norm, whole)
        if key not in self._fits:
            table = self.split.whole if whole else self.split.seen
            rows = Release(self.design.domain, Budget(math.inf), Ledger(), (SyntheticRows(table),))
            found = bayesian_rows(
                rows, design=self.design, rng=np.random.default_rng(0), family=family, largest_norm=largest_norm
            )
            self._keep(key, found)
        return self._fits[key]

    def _keep(self, key: Hashable, fit: Fit) -> None:
        """Keep a fit in place of the oldest, if there are many."""
        if len(self._fits) == MOST_FITS:
            del self._fits[next(iter(self._fits))]
        self._fits[key] = fit

    def marginals(self, cliques: Sequence[Clique]) -> dict[Clique, Floats]:
        """The marginals of these cliques on the rows that the mechanism used."""
        missing = [clique for clique in cliques if clique not in self._marginals]
        found = self.split.seen.marginals(missing)
        self._marginals.update(zip(found, _read_only(tuple(found.values())), strict=True))
        return {clique: self._marginals[clique] for clique in cliques}

    def answers(self, cliques: tuple[Clique, ...]) -> Floats:
        """The answers (m,) to all cells of these marginals, as parts of the rows that the mechanism used."""
        if cliques not in self._answers:
            rows = self.split.seen
            self._answers[cliques] = _read_only((QueryWorkload(rows.domain.sizes, cliques).of_rows(rows.codes),))[0]
        return self._answers[cliques]


def _read_only(arrays: Arrays) -> Arrays:
    """These arrays, read-only, since other trials use them too."""
    for array in arrays:
        array.setflags(write=False)
    return arrays


@dataclass(frozen=True)
class Evaluation:
    """One fit of one release, to be compared with the real rows.

    `model`: the trial's own model with its parameters, as a function of a release alone.
    """

    fit: Fit
    release: Release
    reference: Reference
    model: Callable[[Release], Fit] | None = None
    _answers: dict[tuple[Clique, ...], Floats] = field(default_factory=dict, init=False, repr=False, compare=False)

    def answers(self, cliques: tuple[Clique, ...]) -> Floats:
        """The release's answers (m,) by `answers_of`, computed once for all metrics."""
        if cliques not in self._answers:
            found = answers_of(self.release, cliques, len(self.reference.split.seen))
            self._answers[cliques] = _read_only((found,))[0]
        return self._answers[cliques]

    def coefficients(self, metric: str) -> Floats:
        """The coefficients (p,) of the fit, which this metric needs. Raises `ValueError` if the model has none."""
        if not len(self.fit.coefficients):
            raise ValueError(f"this model has no coefficients; leave {metric} out of its metrics")
        return self.fit.coefficients

    @property
    def nonprivate(self) -> Fit:
        """The fit of the trial's own model to the same release without noise (`Release.exact`).

        Coefficients that a mechanism estimates itself have no such release: for them, or without a model, it is least
        squares on the rows that the mechanism used.
        """
        return Fit(self.reference.coefficients) if self.model is None else self.reference.fit(self.model, self.release)


def check_score(score: object, name: str) -> Score:
    """The score, if it has this name and its value is a number (perhaps nan or inf). Raises `ContractError`."""
    if type(score) is not Score:
        raise ContractError(f"metric {name} must return a dpbench.metrics.evaluation.Score, not {kind_of(score)}")
    if score.name != name:
        raise ContractError(f"metric {name} must return a score with this name, not {shown(score.name)}")
    if isinstance(score.value, bool) or not isinstance(score.value, (int, float)):
        raise ContractError(f"the value of {name} must be a float, not {kind_of(score.value)}")
    if type(score.unit) is not str or score.direction not in DIRECTIONS:
        raise ContractError(
            f"the unit of {name} must be a text, and its direction one of {', '.join(DIRECTIONS)}; they are "
            f"{shown(score.unit)} and {shown(score.direction)}"
        )
    if score.detail is not None:
        check_plain(f"the detail of {name}", score.detail)
    return score
