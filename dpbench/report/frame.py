"""Stored trials as one long table: a row for each trial and metric, failed trials included."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import pandas as pd

from dpbench.errors import UserError
from dpbench.privacy.accounting import gaussian_mu

Trial = Mapping[str, Any]
Group = tuple[object, ...]

SERIES = ("mechanism", "calibration", "variant", "model")
SEPARATOR = "; "  # between the non-private inputs of a trial
CELL = ("dataset", *SERIES, "epsilon", "delta", "metric")

COLUMNS = {
    "trial": "str",
    "release": "str",
    "experiment": "str",
    "dataset": "str",
    "mechanism": "str",
    "calibration": "str",
    "variant": "str",
    "model": "str",
    "epsilon": "float64",
    "delta": "float64",
    "repetition": "int64",
    "status": "str",
    "metric": "str",
    "value": "float64",
    "detail": "str",
    "unit": "str",
    "direction": "str",
    "spent_epsilon": "float64",
    "train_rows": "int64",
    "test_rows": "str",
    "relation": "str",
    "nonprivate_inputs": "str",
    "release_seconds": "float64",
    "model_seconds": "float64",
}

_ORDER = ["dataset", *SERIES, "epsilon", "delta", "metric", "repetition", "trial"]
_LONGEST_VALUE = 40  # characters a setting may take in a label before its digest stands for it
# Settings that are columns of their own, or that repetitions are allowed to differ in.
_NO_SETTING = {
    "release.dataset.name",
    "release.mechanism.name",
    "release.mechanism.target",
    "release.mechanism.parameters.calibration",
    "release.budget.epsilon",
    "release.budget.delta",
    "release.seed",
    "release.repetition",
    "model.name",
    "model.target",
}


def trial_frame(trials: Iterable[Trial], by: Sequence[str] = ()) -> pd.DataFrame:
    """One row per trial and metric, in an order that does not depend on the order of `trials`.

    Each path that `by` names (see `setting_of`) is a further column; cells are told apart by those that are settings.

    A trial that is not done has a row, with NaN for its value, under every metric its key asks for and
    under every name that the done trials asked for the same metrics were scored with. `detail` is the JSON of
    what a score has beside its value, such as a histogram. `epsilon` is inf for the non-private reference;
    `spent_epsilon` is NaN where nothing is known to be spent; times are in seconds. `variant` is "" unless
    one cell mixes other settings (see `_variants`).

    Raises `UserError` if one id comes twice with different scores.
    """
    kept = unique_trials(trials)
    variants = _variants(kept, [path for path in by if not path.startswith("fit.")])
    units = _units(kept)
    rows = [
        row | {path: setting_of(trial, path) for path in by}
        for trial, names in zip(kept, _metric_names(kept), strict=True)
        for row in _rows(trial, names, variants, units)
    ]
    frame = pd.DataFrame(rows, columns=[*COLUMNS, *by]).astype(COLUMNS)
    return frame.sort_values(_ORDER, kind="stable", ignore_index=True)


def unique_trials(trials: Iterable[Trial]) -> list[Trial]:
    """The trials sorted by id, each once. Raises `UserError` if one id comes with different scores."""
    found: dict[str, Trial] = {}
    for trial in trials:
        known = found.setdefault(trial["id"], trial)
        if known is trial:
            continue
        if _outcome(known) != _outcome(trial):
            raise UserError(
                f"trial {trial['id']} is stored twice with different scores; "
                "remove one of the two files (or give one results folder only) and draw the report again"
            )
        found[trial["id"]] = min(known, trial, key=canonical_json)
    return [found[name] for name in sorted(found)]


def canonical_json(value: object) -> str:
    """Compact JSON with sorted keys: equal values give equal text."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def setting_of(trial: Trial, path: str) -> object:
    """The value at a dotted path of a trial's key, such as release.split.train_rows; None where there is none.

    A number in the path is a place in a list (release.dataset.parameters.feature_bounds.1); a whole list is text, such
    as "1:3:3:3". `release.budget.mu` is the Gaussian-DP parameter of the budget, to four digits; paths that begin with
    `fit` are of the model's notes (fit.bins).
    """
    if path == "release.budget.mu":
        budget = trial["key"]["release"]["budget"]
        return _mu(_number(budget["epsilon"]), _number(budget.get("delta")))
    node: Any = {**trial["key"], "fit": trial.get("fit") or {}}
    for word in path.split("."):
        if isinstance(node, list):
            node = node[int(word)]
            continue
        node = node.get(word) if isinstance(node, Mapping) else None
    return ":".join(map(str, node)) if isinstance(node, list) else node


@cache
def _mu(epsilon: float, delta: float) -> float:
    return float(f"{gaussian_mu(epsilon, delta):.4g}")


def mixed_code(trials: Iterable[Trial]) -> list[str]:
    """The mechanisms, with their calibration, whose results come from more than one version of their code."""
    found: dict[str, set[object]] = defaultdict(set)
    for trial in trials:
        name, calibration = trial["key"]["release"]["mechanism"]["name"], _calibration(trial)
        found[f"{name} ({calibration})" if calibration else name].add(setting_of(trial, "release.mechanism.code"))
    return sorted(name for name, codes in found.items() if len(codes) > 1)


def cell_group(trial: Trial) -> Group:
    """What a trial's repetitions share: dataset, mechanism, calibration, model, epsilon and delta."""
    budget = trial["key"]["release"]["budget"]
    return (*_series_group(trial), _number(budget["epsilon"]), _number(budget.get("delta")))


def _series_group(trial: Trial) -> Group:
    release = trial["key"]["release"]
    return (
        release["dataset"]["name"],
        release["mechanism"]["name"],
        _calibration(trial),
        trial["key"]["model"]["name"],
    )


def _outcome(trial: Trial) -> str:
    return canonical_json([trial["status"], sorted(trial.get("scores") or [], key=canonical_json)])


def _calibration(trial: Trial) -> str:
    parameters = trial["key"]["release"]["mechanism"].get("parameters") or {}
    return str(parameters.get("calibration") or "")


def _number(value: object) -> float:
    """A stored number: JSON has no infinity, so "inf" comes as text; None is NaN."""
    return float("nan") if value is None else float(str(value))


def _rows(
    trial: Trial, names: list[str], variants: Mapping[str, str], units: Mapping[Group, tuple[str, str]]
) -> Iterator[dict[str, object]]:
    """The trial's rows of the frame, one for each of these metric names."""
    key, release = trial["key"], trial["key"]["release"]
    split, runtime = release.get("split") or {}, trial.get("runtime") or {}
    scores = {score["name"]: score for score in trial.get("scores") or []} if trial["status"] == "done" else {}
    common = {
        "trial": trial["id"],
        "release": trial["release_id"],
        "experiment": trial["experiment"],
        "dataset": release["dataset"]["name"],
        "mechanism": release["mechanism"]["name"],
        "calibration": _calibration(trial),
        "variant": variants[trial["id"]],
        "model": key["model"]["name"],
        "epsilon": _number(release["budget"]["epsilon"]),
        "delta": _number(release["budget"].get("delta")),
        "repetition": release["repetition"],
        "status": trial["status"],
        "spent_epsilon": _number((trial.get("spent") or {}).get("epsilon")),
        "train_rows": split.get("train_rows", 0),
        "test_rows": str(setting_of(trial, "release.split.test_rows") or 0),
        "relation": str(release["budget"].get("relation") or ""),
        "nonprivate_inputs": SEPARATOR.join(sorted(str(name) for name in trial.get("nonprivate_inputs") or [])),
        "release_seconds": _number(runtime.get("release_seconds")),
        "model_seconds": _number(runtime.get("model_seconds")),
    }
    for name in names:
        known = units.get((common["dataset"], name), units.get((name,), ("", "none")))
        score = scores.get(name, {"value": None, "unit": known[0], "direction": known[1]})
        yield common | {
            "metric": name,
            "value": _number(score["value"]),
            "detail": canonical_json(score["detail"]) if score.get("detail") else "",
            "unit": str(score.get("unit") or ""),
            "direction": str(score.get("direction") or "none"),
        }


def _metric_names(trials: list[Trial]) -> list[list[str]]:
    """The metric names each trial has rows for.

    One metric may give several scores (a mean and a maximum), so the names are learnt from done trials: of
    the same series first, and, where a series has none, of all trials that were asked for the same metrics.
    A done trial gets the names of its series only: a metric that its release cannot answer is no failure.
    """
    by_series: dict[Group, set[str]] = defaultdict(set)
    by_request: dict[str, set[str]] = defaultdict(set)
    for trial in trials:
        if trial["status"] == "done":
            scored = {score["name"] for score in trial["scores"]}
            by_series[_request(trial)] |= scored
            by_request[canonical_json(trial["key"]["metrics"])] |= scored
    names = []
    for trial in trials:
        learnt = by_series.get(_request(trial))
        if learnt is None:
            learnt = by_request[canonical_json(trial["key"]["metrics"])] | set(trial["key"]["metrics"])
        names.append(sorted(learnt))
    return names


def _request(trial: Trial) -> Group:
    return (*_series_group(trial), canonical_json(trial["key"]["metrics"]))


def _units(trials: list[Trial]) -> dict[Group, tuple[str, str]]:
    """Unit and direction of each (dataset, metric) and, for want of that, of each (metric,)."""
    units: dict[Group, tuple[str, str]] = {}
    for trial in trials:
        for score in trial.get("scores") or []:
            known = (str(score.get("unit") or ""), str(score.get("direction") or "none"))
            units.setdefault((trial["key"]["release"]["dataset"]["name"], score["name"]), known)
            units.setdefault((score["name"],), known)
    return units


def _variants(trials: list[Trial], by: Sequence[str]) -> dict[str, str]:
    """For each trial id, the settings by which trials of one cell differ, as "max_model_mb=40".

    Trials that differ in more than seed and repetition are no repetitions of each other, and must not be
    averaged silently: a sweep over a parameter, or two versions of a mechanism, become series of their own.
    """
    settings = {trial["id"]: dict(_leaves(trial["key"], "")) for trial in trials}
    cells: dict[Group, list[str]] = defaultdict(list)
    for trial in trials:
        cells[(*cell_group(trial), *(setting_of(trial, path) for path in by))].append(trial["id"])
    varying: dict[Group, set[str]] = defaultdict(set)
    for group, ids in cells.items():
        names = sorted({name for trial in ids for name in settings[trial]})
        varying[group[:4]] |= {name for name in names if len({settings[trial].get(name) for trial in ids}) > 1}
    return {
        trial["id"]: ", ".join(
            f"{_short_name(name)}={settings[trial['id']].get(name, 'none')}"
            for name in sorted(varying[_series_group(trial)])
        )
        for trial in trials
    }


def _leaves(node: object, path: str) -> Iterator[tuple[str, str]]:
    """The settings of a key as (dotted name, text); lists count as one value."""
    if isinstance(node, dict):
        for name in sorted(node):
            yield from _leaves(node[name], f"{path}.{name}" if path else str(name))
    elif path not in _NO_SETTING and not path.endswith(
        ".code"
    ):  # code is told apart in another place: see `mixed_code`
        text = node if isinstance(node, str) else canonical_json(node)
        short = len(text) <= _LONGEST_VALUE
        yield path, text if short else f"#{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def _short_name(path: str) -> str:
    """The last word of a setting's dotted name, with what it belongs to where the word alone is vague.

    >>> _short_name("release.mechanism.parameters.max_model_mb"), _short_name("release.mechanism.version")
    ('max_model_mb', 'mechanism.version')
    """
    words = [word for word in path.split(".") if word != "release"]
    return words[-1] if "parameters" in words else ".".join(words)
