"""The protocols of plug-ins, one per kind: their arguments, checked before a run, and their results, checked after it.

A plug-in is a function that a config names by its `_target_`. `check_signature` compares the function with its
protocol before anything runs. Its result is checked before it is stored, by `check_release`, `check_fit` and
`check_score` in the modules of these types. `dpbench check` does all of it on tiny data.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from dpbench.data.encode import Design
from dpbench.data.table import Table
from dpbench.errors import UserError, shown
from dpbench.metrics.evaluation import Evaluation, Score
from dpbench.models.fit import Fit
from dpbench.privacy.budget import Budget
from dpbench.releases import Coefficients, Release, SufficientStatistics
from dpbench.releases.checks import check_array

if TYPE_CHECKING:
    import pandas as pd

    from dpbench.config.specs import PublishedTable, Spec
    from dpbench.data.dataset import Dataset
    from dpbench.data.encode import Design
    from dpbench.data.simulate import Simulation

# --- protocols -----------------------------------------------------------------------------------------------------


class Mechanism(Protocol):
    """Training rows and a budget -> a release.

    `train`: n rows, read-only. `rng`: the only source of randomness; noise is drawn through `dpbench.privacy.noise`.
    The parameters of its config are keyword-only; one called `design` is supplied: how rows become X (n, p) and y (n,);
    and so is one called `public`: a table of rows that need no privacy, sample.public_rows of the same table or those
    of `dataset.public_data`, which may lack some of the attributes of `train`; None if there are none. One called
    `test` is the test rows, which no budget protects: choices based on them are non-private inputs.
    Returns a `Release` that holds each kind that the config `_offers_`, over the domain of `train`, with the ledger of
    the noise that was drawn and the budget that it was given.
    """

    def __call__(self, train: Table, budget: Budget, rng: np.random.Generator, **parameters: Any) -> Release:
        """Run the mechanism once."""


class Model(Protocol):
    """A release -> a fit. It has no access to the rows, so it is post-processing.

    A parameter called `rng` is supplied, for models that draw. Returns a `Fit`: coefficients (p,) in the order of
    `design.columns`, or a predictor of features (m, p) -> (m,); perhaps intervals (p, 2).
    """

    def __call__(self, release: Release, *, design: Design, **parameters: Any) -> Fit:
        """Fit the model to the release."""


class Metric(Protocol):
    """A fit and its release, compared with the real rows -> a `Score` with the name of the metric's config."""

    def __call__(self, evaluation: Evaluation, **parameters: Any) -> Score:
        """Score the fit."""


class Loader(Protocol):
    """A data set as its config declares it -> its rows over the declared domain, or a function that draws them."""

    def __call__(self, config: Dataset) -> Table | Simulation:
        """Load the rows."""


class FigureKind(Protocol):
    """A frame of trials (see `report.frame`) -> a matplotlib figure and its data, one row per mark, or a `Picture` (see
    `report.picture`), which has both and is interactive as it is printed.

    `labels`: "mechanism/model" -> label. `spec`: the figure's entry in a report, with the keys that the kind's config
    lists with their types. `notes`: footnotes that it must show. A keyword-only parameter is a further column of the
    frame, whose path in a trial is the default, such as `level="model.parameters.level"`.
    """

    def __call__(self, frame: pd.DataFrame, labels: Mapping[str, str], spec: Spec, notes: str) -> object:
        """Draw the figure; write no file."""


class TextTable(NamedTuple):
    """The table's texts, its footnotes, and `tidy`, the numbers with all digits, one per row.

    `trials`: row and column of a number in `rows` -> ids of the trials behind it; `dpbench report` links the number to
    them. `best`: rows and columns of what is bold in LaTeX.
    """

    header: list[str]
    rows: list[list[str]]
    footnotes: list[str]
    tidy: pd.DataFrame
    trials: Mapping[tuple[int, int], Sequence[str]] = MappingProxyType({})
    best: Collection[tuple[int, int]] = frozenset()


class TableKind(Protocol):
    """A frame of trials -> a table, with the paper's numbers (`published`, empty if there are none)."""

    def __call__(
        self, frame: pd.DataFrame, labels: Mapping[str, str], spec: Spec, published: PublishedTable
    ) -> TextTable:
        """Make the table; write no file."""


PROTOCOLS: dict[str, Callable[..., Any]] = {
    "mechanism": Mechanism.__call__,
    "model": Model.__call__,
    "metric": Metric.__call__,
    "dataset": Loader.__call__,
    "figure": FigureKind.__call__,
    "table": TableKind.__call__,
}
SUPPLIED = {"mechanism": ("design", "public", "test"), "model": ("design", "rng")}  # by the grid, never by a config


# --- signatures ----------------------------------------------------------------------------------------------------


def check_signature(kind: str, function: Callable[..., Any], where: str) -> None:
    """Compare a function with the protocol of its kind (a key of `PROTOCOLS`).

    Raises `UserError` that names the function's file and line, the expected signature and the actual one.
    """
    wanted = _parameters(PROTOCOLS[kind])[1:]  # without self
    try:
        came = _parameters(function)
    except (TypeError, ValueError) as error:
        raise UserError(f"{where}: {shown(function)} is not a function whose parameters can be read") from error
    problem = _mismatch(wanted, came)
    if problem:
        raise UserError(
            f"{where} ({_place(function)}): {problem}; a {kind} takes {_text(wanted)}, but this one takes {_text(came)}"
        )


def check_columns(release: Release, design: Design) -> None:
    """Check statistics and coefficients against the features of the design. Raises `ContractError`."""
    shape = (len(design.columns),)
    if (statistics := release.get(SufficientStatistics)) is not None:
        check_array("X'y of the release", statistics.xty, shape)
    if (coefficients := release.get(Coefficients)) is not None:
        check_array("the coefficients of the release", coefficients.values, shape)


def parameters_of(kind: str, function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """The parameters that a config may set: those that are keyword-only and not supplied by the grid."""
    return {
        one.name: one
        for one in _parameters(function)
        if one.kind is one.KEYWORD_ONLY and one.name not in SUPPLIED.get(kind, ())
    }


def _parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    return list(inspect.signature(function).parameters.values())


def _mismatch(wanted: Sequence[inspect.Parameter], came: Sequence[inspect.Parameter]) -> str:
    """The problem of the actual parameters; empty if there is none."""
    names, given = _positional(wanted), _positional(came)
    for name in names:
        if name not in given:
            return f"it has no positional parameter {name!r}"
    if given != names:
        extra = [name for name in given if name not in names]
        if extra and any(one.kind is one.VAR_KEYWORD for one in wanted):
            return f"{extra[0]!r} must be keyword-only, after a *"
        return f"{extra[0]!r} is not supplied" if extra else "its parameters are in another order"
    for one in came:
        if one.kind in (one.VAR_POSITIONAL, one.VAR_KEYWORD):
            return f"each parameter needs a name of its own, but {one} has none"
    known = {one.name for one in came}
    missing = [one.name for one in wanted if one.kind is one.KEYWORD_ONLY and one.name not in known]
    return f"it has no parameter {missing[0]!r}" if missing else ""


def _positional(parameters: Iterable[inspect.Parameter]) -> list[str]:
    return [one.name for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]


def _text(parameters: Sequence[inspect.Parameter]) -> str:
    """Such as "(release, *, design, ...)"."""
    keywords = [one.name for one in parameters if one.kind is one.KEYWORD_ONLY]
    more = [str(one).split(":")[0] for one in parameters if one.kind is one.VAR_POSITIONAL]
    rest = ["..."] if any(one.kind is one.VAR_KEYWORD for one in parameters) else []
    star = ["*"] if (keywords or rest) and not more else []
    return f"({', '.join([*_positional(parameters), *more, *star, *keywords, *rest])})"


def _place(function: Callable[..., Any]) -> str:
    code = getattr(inspect.unwrap(function), "__code__", None)
    return f"{Path(code.co_filename).name}, line {code.co_firstlineno}" if code else shown(function)
