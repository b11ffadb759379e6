"""The settings of trials by paths of their keys, and those in which trials that are not repetitions differ.

The rows of one metric are selected here, also as multiples of those of a reference.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from dpbench.config.reports import OTHER_METRICS
from dpbench.config.specs import Spec
from dpbench.config.values import listed
from dpbench.data.domain import Floats
from dpbench.grid.records import Trial, TrialKey
from dpbench.grid.seeds import canonical
from dpbench.privacy.accounting import gaussian_mu

Group = tuple[object, ...]

NOTES = "notes."  # paths that begin so are of the notes of a trial's fit, not of its key
_LONGEST_VALUE = 40  # characters of a setting in a label; a longer one is replaced by its digest
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
NO_SETTING = "none"  # the text of one that a key leaves out
# What a key without the setting has.
_LEFT_OUT = {
    "release.mechanism.parameters.noise": "continuous",
    "release.split.protocol": "split",
    "release.split.public_rows": "0",
}
# How the path of a setting begins in a key, and in the settings that a user writes; the first that fits.
_WRITTEN = {
    "release.split.public_data.": "dataset.public_data.",
    "release.split.": "sample.",
    "release.budget.": "",
    "release.": "",
    "": "",
}


def setting_of(key: TrialKey, path: str) -> object:
    """The value at a dotted path of a trial's key, such as release.split.train_rows; None where there is none.

    A number in the path is a place in a list (release.dataset.parameters.feature_bounds.1); a list is text, such as
    "1:3:3:3". `release.budget.mu` is the Gaussian-DP parameter of the budget, to four digits. A reference has the
    epsilon inf, and no `release.split.protocol`: it is the same under both.
    """
    budget = key.release.budget
    if path == "release.budget.mu":
        return _mu(budget.epsilon, budget.delta)
    if path == "release.budget.epsilon":
        return budget.epsilon
    if path == "release.split.protocol":
        return key.release.split.get("protocol", "split") if budget.epsilon < np.inf else None
    return _value_at(key.to_dict(), path)


def note_of(trial: Trial, path: str) -> object:
    """The value at a path of the notes of a trial's fit, such as notes.bins; None where there is none."""
    return _value_at(trial.notes, path.removeprefix(NOTES))


def _value_at(node: Any, path: str) -> object:
    for word in path.split("."):
        if isinstance(node, list):
            node = node[int(word)]
            continue
        node = node.get(word) if isinstance(node, Mapping) else None
    return ":".join(map(str, node)) if isinstance(node, list) else node


@cache
def _mu(epsilon: float, delta: float) -> float:
    return float(f"{gaussian_mu(epsilon, delta):.4g}")


def calibration_of(key: TrialKey) -> str:
    """The calibration of the mechanism, "" if it has none."""
    return str(key.release.mechanism.parameters.get("calibration") or "")


def series_group(key: TrialKey) -> Group:
    """Dataset, mechanism, calibration and model."""
    return (key.release.dataset["name"], key.release.mechanism.name, calibration_of(key), key.fit.model.name)


def leaves_of(key: TrialKey) -> dict[str, str]:
    """The settings of a key, dotted name -> text, without those that have columns of their own."""
    return dict(_leaves(key.to_dict(), ""))


def _leaves(node: object, path: str) -> Iterator[tuple[str, str]]:
    """Lists count as one value; versions are compared elsewhere: see `several_versions`."""
    if isinstance(node, dict):
        for name in sorted(node):
            yield from _leaves(node[name], f"{path}.{name}" if path else str(name))
    elif path not in _NO_SETTING and not path.endswith(".version"):
        text = node if isinstance(node, str) else canonical(node)
        short = len(text) <= _LONGEST_VALUE
        yield path, text if short else f"#{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def variants(keys: Sequence[TrialKey], leaves: Sequence[Mapping[str, str]], by: Sequence[str]) -> list[str]:
    """For each key, the settings by which those of one cell differ, as "max_model_mb=40"; `leaves` are theirs.

    Trials that differ in more than seed and repetition are not repetitions of each other, and must not be averaged
    silently: a sweep over a parameter becomes series of their own. A cell shares dataset, mechanism,
    calibration, model, epsilon, delta, and the settings of `by`.
    """
    cells: dict[Group, list[Mapping[str, str]]] = defaultdict(list)
    for key, own in zip(keys, leaves, strict=True):
        budget = key.release.budget
        asked = (setting_of(key, path) for path in by if not path.startswith(NOTES))
        cells[(*series_group(key), budget.epsilon, budget.delta, *asked)].append(own)
    varying: dict[Group, set[str]] = defaultdict(set)
    for group, here in cells.items():
        names = {name for own in here for name in own} if len(here) > 1 else set()
        varying[group[:4]] |= {name for name in names if len({own.get(name) for own in here}) > 1}
    differences = []
    for key, own in zip(keys, leaves, strict=True):
        differ = sorted(varying[series_group(key)])
        differences.append(", ".join(_setting_text(name, own) for name in differ))
    return differences


def _setting_text(path: str, leaves: Mapping[str, str]) -> str:
    """A setting and its value as a user writes them."""
    if path == "release.split.fixed":
        return f"sample.split={'fixed' if path in leaves else 'fresh'}"
    return f"{_short_name(path)}={leaves.get(path, _LEFT_OUT.get(path, NO_SETTING))}"


def _short_name(path: str) -> str:
    """The name of a setting as a user writes it; of a parameter its last word.

    >>> _short_name("release.mechanism.parameters.max_model_mb"), _short_name("release.split.train_rows")
    ('max_model_mb', 'sample.train_rows')
    """
    words = path.split(".")
    if "parameters" in words:
        return words[-1]
    start = next(start for start in _WRITTEN if path.startswith(start))
    return _WRITTEN[start] + path.removeprefix(start)


# --- the axes of a figure -------------------------------------------------------------------------------------------


def settings_of(spec: Spec) -> list[str]:
    """The settings by which a figure or table distinguishes cells; none for a figure against epsilon."""
    named = [spec.get("x"), spec.get("panel"), spec.get("setting"), *spec.get("where", {})]
    return [str(path) for path in dict.fromkeys(named) if path]


def placed(frame: pd.DataFrame, spec: Spec) -> pd.DataFrame:
    """The rows that a figure shows, with the setting `spec["x"]` as `x` (inf for rows without it) and that of
    `spec["panel"]` as `panel`: epsilon and the dataset if the spec names none. `spec["where"]`: {setting: value}, the
    only rows that are kept; those of a method without the setting are too. `spec["relative"]`: see `as_multiples`;
    `spec["gain"]`: see `as_gains`; `spec["best_setting"]`: see `best_settings`.
    """
    frame = as_multiples(frame, spec.get("relative", {}))
    frame = as_gains(frame, str(spec["metric"]), **spec["gain"]) if "gain" in spec else frame
    for path, value in spec.get("where", {}).items():
        missing = frame[path].isna() | frame[path].isin([np.inf])
        frame = frame[(frame[path] == value) | missing]
    columns: dict[str, np.ndarray | pd.Series] = {}
    if "x" in spec:
        codes, values = pd.factorize(frame[spec["x"]])  # -1 for none
        columns["x"] = np.array([*map(_as_number, values), np.inf])[codes]
    if "panel" in spec:
        columns["panel"] = frame[spec["panel"]].map(str).astype("str")
    frame = frame.assign(**columns)
    return best_settings(frame, str(spec["metric"])) if spec.get("best_setting") else frame


def best_settings(frame: pd.DataFrame, metric: str) -> pd.DataFrame:
    """The rows of this metric without those of other settings than the best: for each method and `x` of a panel, that
    with the best mean, among those with the most values. They are one series a method.

    The choice reads the scores that are shown, which depend on the private rows: no budget covers it.
    """
    rows = metric_rows(frame, metric)
    cell = ["panel", "mechanism", "calibration", "model", "x"]
    found = rows.groupby([*cell, "variant"])["value"].agg(["mean", "count"])
    most = found.groupby(cell)["count"].transform("max")
    means = found.loc[(found["count"] == most) & (most > 0), "mean"].groupby(cell)
    best = means.idxmax() if (rows["direction"] == "higher").any() else means.idxmin()
    chosen = pd.MultiIndex.from_frame(rows[[*cell, "variant"]]).isin(best)
    return rows[chosen].assign(variant="")


def is_placed(key: TrialKey, spec: Spec) -> bool:
    """Whether a figure or table shows trials of this key, at its `spec["epsilon"]`, one or several, if it has any: see
    `placed`.
    """
    if "epsilon" in spec and key.release.budget.epsilon not in map(float, listed(spec["epsilon"])):
        return False
    return all(setting_of(key, path) in (value, None, np.inf) for path, value in spec.get("where", {}).items())


def _as_number(value: object) -> float:
    """The value of a setting on an axis; inf for text, such as a list's."""
    return float(value) if isinstance(value, (int, float)) else np.inf


def metric_rows(frame: pd.DataFrame, metric: str) -> pd.DataFrame:
    """The rows of one metric, or of a quantity that every trial has.

    That is "seconds", the time of a release and of a model on it, "peak_mb", the memory of their worker, and
    "spent_epsilon", the epsilon of the ledger of a private release; or a note of the fit that the frame has, such as
    "notes.bins".
    """
    if metric.startswith(NOTES):
        rows = frame.drop_duplicates("trial")
        return rows.assign(metric=metric, value=rows[metric].astype("float64"), unit="", direction="none")
    if metric not in OTHER_METRICS:
        return frame[frame["metric"] == metric]
    rows = frame.drop_duplicates("trial")
    if metric == "seconds":
        seconds = rows["release_seconds"] + rows["model_seconds"]
        return rows.assign(metric=metric, value=seconds.where(rows["status"] == "done"), unit="s", direction="lower")
    if metric == "peak_mb":
        peak = rows["peak_mb"].where(rows["status"] == "done")
        return rows.assign(metric=metric, value=peak, unit="MB", direction="lower")
    private: pd.DataFrame = rows[np.isfinite(rows["epsilon"])]
    return private.assign(metric=metric, value=private["spent_epsilon"], unit="", direction="lower")


def as_multiples(frame: pd.DataFrame, of: Mapping[str, Sequence[str]]) -> pd.DataFrame:
    """The frame with each metric that `of` names divided by that of a reference on the same split.

    `of`: metric -> non-private references, "mechanism/model" (see `_reference`). Rows of repetitions that the reference
    lacks are left out. Means of such ratios are paired: they can be compared even if one method has fewer repetitions.
    """
    for metric, methods in of.items():
        rows, divisor = frame["metric"] == metric, _reference(frame, metric, methods)
        value = (frame["value"] / divisor).where(rows, frame["value"])
        frame = frame.assign(value=value, unit=frame["unit"].mask(rows, ""))[~rows | np.isfinite(divisor)]
    return frame


def as_gains(frame: pd.DataFrame, metric: str, trivial: Sequence[str], exact: Sequence[str] = ()) -> pd.DataFrame:
    """The frame with a metric as the part of the gain over the trivial answer that is kept, (t - s) / (t - e), where t
    and e are the scores of the references `trivial` and `exact` on the same split (see `_reference`); e is 0 if there
    are none of these. 1 is as good as the exact answer, 0 as the trivial one; NaN where the exact one gains nothing.

    Rows of repetitions that a reference lacks are left out.
    """
    rows, answer = frame["metric"] == metric, _reference(frame, metric, trivial)
    gain = answer - (_reference(frame, metric, exact) if exact else 0.0)
    higher = (frame.loc[rows, "direction"] == "higher").any()
    kept = (answer - frame["value"]) / np.where(gain < 0 if higher else gain > 0, gain, np.nan)
    changed = {"value": kept.where(rows, frame["value"]), "direction": frame["direction"].mask(rows, "higher")}
    return frame.assign(**changed, unit=frame["unit"].mask(rows, ""))[~rows | np.isfinite(gain)]


def _reference(frame: pd.DataFrame, metric: str, methods: Sequence[str]) -> Floats:
    """For each row of the frame, the metric's mean of a non-private reference in its repetition; NaN if it lacks it.

    The reference of a data set is the one of these methods, "mechanism/model", with the best mean.
    """
    rows = frame["metric"] == metric
    named = (frame["mechanism"] + "/" + frame["model"]).isin(list(methods))
    references = frame[rows & named & (frame["epsilon"] == np.inf) & (frame["status"] == "done")]
    values = references.groupby(["dataset", "mechanism", "model", "repetition"])["value"].mean().unstack()
    means = values.mean(axis=1).dropna().groupby("dataset")
    best = means.idxmax() if (frame.loc[rows, "direction"] == "higher").any() else means.idxmin()
    own = values.loc[best].droplevel(["mechanism", "model"]).stack()
    return own.reindex(pd.MultiIndex.from_frame(frame[["dataset", "repetition"]])).to_numpy()
