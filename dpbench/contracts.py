"""What a plug-in may take and must return: one protocol a kind, checked when it is composed and again when it has run.

A plug-in is a function that a config names by its `_target_`. `check_signature` holds the function against its
protocol before anything runs; `check_release`, `check_fit` and `check_score` hold what it returned against the rest,
before anything is stored. `dpbench check` does all of it on tiny data.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np

from dpbench.data.domain import Domain
from dpbench.data.table import Table
from dpbench.errors import ContractError, UserError, shown
from dpbench.mechanisms.release import KINDS, BinSums, Release, SufficientStatistics
from dpbench.metrics.evaluation import Evaluation, Score
from dpbench.models.fit import Fit
from dpbench.privacy.budget import Budget, Ledger

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from dpbench.data.encode import Design
    from dpbench.data.simulate import Simulation
    from dpbench.report.text_table import TextTable

T = TypeVar("T")
MOST_PLAIN = 2**18  # characters of the JSON of diagnostics, notes or a score's detail
DIRECTIONS = ("lower", "higher", "none")


# --- protocols -----------------------------------------------------------------------------------------------------


class Mechanism(Protocol):
    """Training rows and a budget -> what is made public.

    `train`: n rows, read-only. `rng`: the only source of chance; noise is drawn through `dpbench.privacy.noise`. The
    parameters of its config are keyword-only; one called `design` is supplied: how rows become X (n, p) and y (n,).
    Returns a `Release` that holds each kind that the config `_offers_`, over the domain of `train`, with the ledger of
    the noise that was drawn and the budget that it was given.
    """

    def __call__(self, train: Table, budget: Budget, rng: np.random.Generator, **parameters: Any) -> Release:
        """Run the mechanism once."""
        ...


class Model(Protocol):
    """A release -> a fit. It sees no row, so that it is post-processing.

    A parameter called `rng` is supplied, for models that draw. Returns a `Fit`: coefficients (p,) in the order of
    `design.columns`, or a predictor of features (m, p) -> (m,); perhaps intervals (p, 2).
    """

    def __call__(self, release: Release, *, design: Design, **parameters: Any) -> Fit:
        """Fit the model to the release."""
        ...


class Metric(Protocol):
    """A fit and its release, held against the real rows -> a `Score` that bears the name of the metric's config."""

    def __call__(self, evaluation: Evaluation, **parameters: Any) -> Score:
        """Score the fit."""
        ...


class Loader(Protocol):
    """The config of a dataset -> its rows over the declared domain, or what draws them."""

    def __call__(self, config: Mapping[str, Any]) -> Table | Simulation:
        """Load the rows."""
        ...


class FigureKind(Protocol):
    """A frame of trials (see `report.frame`) -> a figure, and what it draws, one row a mark.

    `labels`: "mechanism/model" -> label. `spec`: the figure's entry in a report, with the keys that the kind's config
    lists under `_required_` and `_optional_`. `notes`: what must stand below.
    """

    def __call__(
        self, frame: pd.DataFrame, labels: Mapping[str, str], spec: Mapping[str, Any], notes: str
    ) -> tuple[Figure, pd.DataFrame]:
        """Draw the figure; write no file."""
        ...


class TableKind(Protocol):
    """A frame of trials -> a table, beside what a paper has of it (`published`, empty if it has nothing)."""

    def __call__(
        self, frame: pd.DataFrame, labels: Mapping[str, str], spec: Mapping[str, Any], published: Mapping[str, Any]
    ) -> TextTable:
        """Make the table; write no file."""
        ...


PROTOCOLS: dict[str, Callable[..., Any]] = {
    "mechanism": Mechanism.__call__,
    "model": Model.__call__,
    "metric": Metric.__call__,
    "dataset": Loader.__call__,
    "figure": FigureKind.__call__,
    "table": TableKind.__call__,
}
SUPPLIED = {"mechanism": ("design",), "model": ("design", "rng")}  # parameters that the grid gives; no config may


# --- signatures ----------------------------------------------------------------------------------------------------


def check_signature(kind: str, function: Callable[..., Any], where: str) -> None:
    """Hold a function against the protocol of its kind (a key of `PROTOCOLS`).

    Raises `UserError` that names the function's file and line, what is expected and what came.
    """
    wanted = _parameters(PROTOCOLS[kind])[1:]  # without self
    try:
        came = _parameters(function)
    except (TypeError, ValueError) as error:
        raise UserError(f"{where}: {shown(function)} is not a function whose parameters can be read") from error
    problem = _mismatch(wanted, came)
    if problem:
        raise UserError(
            f"{where} ({_place(function)}): {problem}; a {kind} takes {_text(wanted)}, and this one {_text(came)}"
        )


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
    """What is wrong with the parameters that came; empty if nothing is."""
    names, given = _positional(wanted), _positional(came)
    for name in names:
        if name not in given:
            return f"it has no positional parameter {name!r}"
    if given != names:
        extra = [name for name in given if name not in names]
        if extra and any(one.kind is one.VAR_KEYWORD for one in wanted):
            return f"{extra[0]!r} must be keyword-only, after a *"
        return f"{extra[0]!r} is not supplied" if extra else "its parameters stand in another order"
    for one in came:
        if one.kind in (one.VAR_POSITIONAL, one.VAR_KEYWORD):
            return f"each parameter needs a name of its own, which {one} has not"
    missing = [one.name for one in wanted if one.kind is one.KEYWORD_ONLY and one.name not in _names(came)]
    return f"it has no parameter {missing[0]!r}" if missing else ""


def _positional(parameters: Iterable[inspect.Parameter]) -> list[str]:
    return [one.name for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]


def _names(parameters: Iterable[inspect.Parameter]) -> list[str]:
    return [one.name for one in parameters]


def _text(parameters: Sequence[inspect.Parameter]) -> str:
    """Such as "(release, *, design, ...)"."""
    keywords = [one.name for one in parameters if one.kind is one.KEYWORD_ONLY]
    more = [str(one).split(":")[0] for one in parameters if one.kind is one.VAR_POSITIONAL]
    rest = ["..."] if any(one.kind is one.VAR_KEYWORD for one in parameters) else []
    star = ["*"] if (keywords or rest) and not more else []
    return f"({', '.join([*_positional(parameters), *more, *star, *keywords, *rest])})"


def _place(function: Callable[..., Any]) -> str:
    """File and line of a function."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    return f"{Path(code.co_filename).name}, line {code.co_firstlineno}" if code else shown(function)


# --- what came back ------------------------------------------------------------------------------------------------


def check_release(
    release: object, offers: Sequence[str] = (), budget: Budget | None = None, domain: Domain | None = None
) -> Release:
    """The release, if it is one that holds all kinds in `offers`, over this domain and for this budget (if given).

    Raises `ContractError`.
    """
    if type(release) is not Release:  # a subclass could carry rows past the store
        raise ContractError(f"a mechanism must return a dpbench.mechanisms.release.Release, not {_kind_of(release)}")
    missing = [kind for kind in offers or KINDS if kind not in release.offers]
    if missing and (offers or len(missing) == len(KINDS)):
        raise ContractError(
            f"the release must hold {', '.join(offers) or 'one of ' + ', '.join(KINDS)}; it holds "
            f"{', '.join(release.offers) or 'none of them'}"
        )
    if type(release.domain) is not Domain or (domain is not None and release.domain != domain):
        raise ContractError("the domain of the release must be that of the training rows, and it is another one")
    if type(release.budget) is not Budget or (budget is not None and release.budget != budget):
        raise ContractError(f"the budget of the release must be the one asked for, {budget}, not {release.budget}")
    if type(release.ledger) is not Ledger:
        raise ContractError(f"the ledger of the release must be a Ledger, not {_kind_of(release.ledger)}")
    if not all(type(text) is str for text in _listed("nonprivate_inputs", release.nonprivate_inputs)):
        raise ContractError("nonprivate_inputs must be a tuple of texts")
    _check_plain("the diagnostics of the release", release.diagnostics)
    _check_kinds(release)
    return release


def check_fit(fit: object, columns: int | None = None) -> Fit:
    """The fit, if it has finite coefficients (p,), p = `columns` if given, or a predictor. Raises `ContractError`."""
    if type(fit) is not Fit:
        raise ContractError(f"a model must return a dpbench.models.fit.Fit, not {_kind_of(fit)}")
    p = len(fit.coefficients) if isinstance(fit.coefficients, np.ndarray) and fit.coefficients.ndim else 0
    if fit.predictor is None:
        p = columns if columns is not None else p
        _check_array("the coefficients of the fit", fit.coefficients, (p,))
        if not p:
            raise ContractError("the fit must have coefficients (p,) or a predictor; it has neither")
    elif not callable(fit.predictor):
        raise ContractError(f"the predictor of the fit must be a function, not {_kind_of(fit.predictor)}")
    if fit.intervals is not None:
        _check_array("the intervals of the fit", fit.intervals, (p, 2), finite=False)
    if fit.moments is not None:
        xtx, xty = _listed("moments", fit.moments, 2)
        _check_array("X'X of the fit", xtx, (p, p), finite=False)
        _check_array("X'y of the fit", xty, (p,), finite=False)
    _check_plain("the notes of the fit", fit.notes)
    return fit


def check_score(score: object, name: str) -> Score:
    """The score, if it bears this name and its value is a number (perhaps nan or inf). Raises `ContractError`."""
    if type(score) is not Score:
        raise ContractError(f"metric {name} must return a dpbench.metrics.evaluation.Score, not {_kind_of(score)}")
    if score.name != name:
        raise ContractError(f"metric {name} must return a score of this name, not {shown(score.name)}")
    if isinstance(score.value, bool) or not isinstance(score.value, (int, float)):
        raise ContractError(f"the value of {name} must be a float, not {_kind_of(score.value)}")
    if type(score.unit) is not str or score.direction not in DIRECTIONS:
        raise ContractError(
            f"the unit of {name} must be a text, and its direction one of {', '.join(DIRECTIONS)}; they are "
            f"{shown(score.unit)} and {shown(score.direction)}"
        )
    if score.detail is not None:
        _check_plain(f"the detail of {name}", score.detail)
    return score


def _check_kinds(release: Release) -> None:
    """Type and shape of each kind that the release holds."""
    if release.statistics is not None:
        found = _exactly("statistics", release.statistics, SufficientStatistics)
        p = len(found.xty) if isinstance(found.xty, np.ndarray) and found.xty.ndim else 0
        _check_array("X'y of the release", found.xty, (p,))
        _check_array("X'X of the release", found.xtx, (p, p))
        _check_plain("the noise of the statistics", [found.xtx_sd, found.xty_sd, found.ridge, found.yty])
    if release.marginals is not None:
        for clique, counts in release.marginals.items():
            if type(clique) is not tuple or not set(clique) <= set(release.domain.names):
                raise ContractError(f"a marginal must be of a tuple of attributes, not of {shown(clique)}")
            _check_array(f"the marginal {','.join(clique)}", counts, release.domain.shape(clique))
    if release.rows is not None and _exactly("rows", release.rows, Table).domain != release.domain:
        raise ContractError("the released rows must have the domain of the release, and they have another one")
    if release.coefficients is not None:
        _check_array("the coefficients of the release", release.coefficients, np.shape(release.coefficients)[:1])
    if release.bins is not None:
        bins = _exactly("bins", release.bins, BinSums)
        K, p = np.shape(bins.sums) if np.ndim(bins.sums) == 2 else (0, 0)
        for name in ("lower", "upper", "sums", "sums_sd"):
            _check_array(f"{name} of the bins", getattr(bins, name), (K, p), finite=False)
        for name in ("counts", "targets"):
            _check_array(f"{name} of the bins", getattr(bins, name), (K,), finite=False)


def _check_array(what: str, value: object, shape: tuple[int, ...], *, finite: bool = True) -> None:
    """An array of numbers of this shape."""
    if type(value) is not np.ndarray or value.dtype.kind not in "fiu":
        raise ContractError(f"{what} must be a numpy array of numbers, not {_kind_of(value)}")
    if value.shape != shape:
        raise ContractError(f"{what} must have the shape {shape}, not {value.shape}")
    if finite and not np.isfinite(value).all():
        raise ContractError(f"{what} must be finite")


def _check_plain(what: str, value: object) -> None:
    """Plain data that JSON can hold: texts, finite numbers, lists and mappings, and not too many of them."""
    problem = _not_plain(value, 0)
    if problem:
        raise ContractError(f"{what} must be plain data (texts, finite numbers, lists, mappings), without {problem}")
    size = len(json.dumps(value))
    if size > MOST_PLAIN:
        raise ContractError(f"{what} must be small: {MOST_PLAIN:,} characters of JSON at most, not {size:,}")


def _not_plain(value: object, depth: int) -> str:
    """The first thing in the value that is not plain; empty if all is."""
    if depth > 20:
        return "more than 20 levels of lists in each other"
    if isinstance(value, dict):
        names = next((f"the key {shown(key)}" for key in value if type(key) is not str), "")
        return names or next(filter(None, (_not_plain(item, depth + 1) for item in value.values())), "")
    if isinstance(value, (list, tuple)):
        return next(filter(None, (_not_plain(item, depth + 1) for item in value)), "")
    if value is None or isinstance(value, (str, bool)):
        return ""
    if isinstance(value, int) and abs(value) < 2**63:
        return ""
    return "" if isinstance(value, float) and np.isfinite(value) else f"{_kind_of(value)} {shown(value)}"


def _exactly(what: str, value: Any, wanted: type[T]) -> T:
    if type(value) is not wanted:
        raise ContractError(f"{what} of the release must be a {wanted.__name__}, not {_kind_of(value)}")
    found: T = value
    return found


def _listed(what: str, value: object, length: int | None = None) -> Sequence[Any]:
    if not isinstance(value, (tuple, list)) or (length is not None and len(value) != length):
        raise ContractError(f"{what} must be a tuple{f' of {length}' if length else ''}, not {_kind_of(value)}")
    return value


def _kind_of(value: object) -> str:
    """The type of a value, such as "numpy.int64"; "None" for none."""
    kind = type(value)
    if value is None or kind.__module__ == "builtins":
        return "None" if value is None else kind.__name__
    return f"{kind.__module__}.{kind.__qualname__}"
