"""Stored trials as one long table: a row for each trial and metric, failed trials included."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from dpbench.errors import UserError
from dpbench.grid.records import Trial, TrialKey
from dpbench.grid.seeds import canonical
from dpbench.metrics.evaluation import Score
from dpbench.report.frames.settings import NOTES, Group, leaves_of, note_of, series_group, setting_of, variants

SERIES = ("mechanism", "calibration", "variant", "model")
SEPARATOR = "; "  # between the non-private inputs of a trial
CELL = ("dataset", *SERIES, "epsilon", "delta", "metric")

_OF_SETTING = {
    "dataset": "str",
    "mechanism": "str",
    "calibration": "str",
    "model": "str",
    "epsilon": "float64",
    "delta": "float64",
    "train_rows": "int64",
    "test_rows": "str",
    "relation": "str",
}
_OF_TRIAL = {
    "trial": "str",
    "release": "str",
    "experiment": "str",
    "repetition": "int64",
    "status": "str",
    "spent_epsilon": "float64",
    "nonprivate_inputs": "str",
    "release_seconds": "float64",
    "model_seconds": "float64",
    "peak_mb": "float64",
}
_OF_SCORE = {"metric": "str", "value": "float64", "detail": "object", "unit": "str", "direction": "str"}
COLUMNS = {**_OF_TRIAL, **_OF_SETTING, "variant": "str", **_OF_SCORE, "x": "float64", "panel": "str"}


def trial_frame(trials: Iterable[Trial], by: Sequence[str] = ()) -> pd.DataFrame:
    """One row per trial and metric, in an order that does not depend on the order of `trials`.

    Each path that `by` names (see `setting_of`, `note_of`) is a further column; cells are told apart by the settings
    among them.

    A trial that is not done has a row, with NaN for its value, under every metric its key asks for and
    under every name that the done trials asked for the same metrics were scored with. `detail` is what a score has
    beside its value, such as a histogram, or None. `epsilon` is inf for the non-private reference;
    `spent_epsilon` is NaN where nothing is known to be spent; times are in seconds, `peak_mb` is the largest resident
    memory of the worker, its libraries included, during the release or the model. `variant` is "" unless
    one cell mixes other settings (see `variants`). `x` and `panel`, the place in a figure, are epsilon and dataset.

    Raises `UserError` if one id comes twice with different scores.
    """
    return joined_frame([rows_of(trials)], by)


@dataclass(frozen=True)
class TrialRows:
    """Trials as rows, before it is known what tells their cells apart; a frame over several experiments joins some.

    `keys`, `leaves` and `settings` have one entry or row for each setting of the trials, `scores` a row for each trial
    and metric: `trial`, the place among the trials, `setting`, that among the keys.
    """

    trials: Sequence[Trial]
    keys: Sequence[TrialKey]
    leaves: Sequence[dict[str, str]]
    settings: pd.DataFrame
    scores: pd.DataFrame


def rows_of(trials: Iterable[Trial]) -> TrialRows:
    """The trials as rows. Raises `UserError` if one id comes twice with different scores."""
    kept = unique_trials(trials)
    places: dict[Group, int] = {}
    keys: list[TrialKey] = []
    codes = []
    for trial in kept:
        codes.append(places.setdefault(_setting(trial.key), len(places)))
        keys += [trial.key] if len(places) > len(keys) else []
    settings = _typed([_of_setting(key) for key in keys], _OF_SETTING)
    found = list(_scores(kept, codes, keys))
    place = np.array([row[0] for row in found], dtype="int64")
    rows = _typed([_of_trial(trial) for trial in kept], _OF_TRIAL).take(place).reset_index(drop=True)
    scores = _typed([row[1:] for row in found], _OF_SCORE)
    rows = rows.assign(place=place, setting=np.array(codes, dtype="int64")[place])
    return TrialRows(kept, keys, [leaves_of(key) for key in keys], settings, pd.concat([rows, scores], axis=1))


def _typed(rows: Sequence[tuple[object, ...]], columns: dict[str, str]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=list(columns)).astype(columns)


def joined_frame(parts: Sequence[TrialRows], by: Sequence[str] = ()) -> pd.DataFrame:
    """The rows of several experiments in one frame (see `trial_frame`); a trial of two of them stands there once."""
    parts = parts or [rows_of(())]
    settings = pd.concat([part.settings for part in parts], ignore_index=True)
    keys = [key for part in parts for key in part.keys]
    told = variants(keys, [own for part in parts for own in part.leaves], by)
    settings = settings.assign(variant=pd.array(told, dtype="str"))
    rows = pd.concat([part.scores for part in parts], ignore_index=True)
    starts = np.cumsum([0, *(len(part.keys) for part in parts)])
    setting = rows["setting"].to_numpy() + np.repeat(starts[:-1], [len(part.scores) for part in parts])
    rank = settings.groupby(["dataset", *SERIES, "epsilon", "delta"], dropna=False).ngroup().to_numpy()
    metric = pd.factorize(rows["metric"], sort=True)[0]
    order = np.lexsort([rows["repetition"].to_numpy(), metric, rank[setting]])  # stable: then by id
    for path in by:
        if path.startswith(NOTES):
            notes = [[note_of(trial, path) for trial in part.trials] for part in parts]
            rows[path] = [own[place] for own, part in zip(notes, parts, strict=True) for place in part.scores["place"]]
        else:
            settings[path] = pd.Series([setting_of(key, path) for key in keys], dtype="object")
    rows, setting = rows.take(order), setting[order]
    rows = pd.concat([rows.reset_index(drop=True), settings.take(setting).reset_index(drop=True)], axis=1)
    frame = rows.assign(x=rows["epsilon"], panel=rows["dataset"])[[*COLUMNS, *by]]
    return frame.drop_duplicates(["trial", "metric"], ignore_index=True) if len(parts) > 1 else frame


def unique_trials(trials: Iterable[Trial]) -> list[Trial]:
    """The trials sorted by id, each once. Raises `UserError` if one id comes with different scores."""
    found: dict[str, Trial] = {}
    for trial in trials:
        known = found.setdefault(trial.id, trial)
        if known is trial:
            continue
        if _outcome(known) != _outcome(trial):
            raise UserError(
                f"trial {trial.id} is stored twice with different scores; "
                "remove one of the two files (or give one results folder only) and draw the report again"
            )
        found[trial.id] = min(known, trial, key=lambda one: canonical(one.to_dict()))
    return [found[name] for name in sorted(found)]


def _outcome(trial: Trial) -> str:
    return canonical([trial.status, sorted(trial.to_dict()["scores"], key=canonical)])


def _setting(key: TrialKey) -> Group:
    """Equal for trials that share the objects of their settings, as those of an export do."""
    release, fit = key.release, key.fit
    shared = (release.dataset, release.split, release.mechanism, release.budget, release.design, fit.model, fit.design)
    return (*map(id, shared), id(key.metrics), release.seed, fit.draw)


def _of_setting(key: TrialKey) -> tuple[object, ...]:
    split, budget = key.release.split, key.release.budget
    dataset, mechanism, calibration, model = series_group(key)
    marks = (name for name in ("protocol", "fixed") if name in split)
    test_rows = "+".join([str(setting_of(key, "release.split.test_rows") or 0), *marks])
    plain = (split.get("train_rows", 0), test_rows, budget.relation)
    return dataset, mechanism, calibration, model, budget.epsilon, budget.delta, *plain


def _of_trial(trial: Trial) -> tuple[object, ...]:
    inputs = SEPARATOR.join(sorted(map(str, trial.nonprivate_inputs)))
    spent = np.nan if trial.spent is None else trial.spent.epsilon
    names = (trial.id, trial.release_id, trial.experiment, trial.key.release.repetition, trial.status)
    seconds = (trial.runtime.release_seconds, trial.runtime.model_seconds)
    peaks = (trial.runtime.release_peak_mb, trial.runtime.peak_mb)
    return *names, spent, inputs, *seconds, max((peak for peak in peaks if peak is not None), default=None)


def _scores(
    trials: Sequence[Trial], codes: Sequence[int], keys: Sequence[TrialKey]
) -> Iterator[tuple[int, str, float, Any, str, str]]:
    """The rows of each trial: its place, then name, value, detail, unit and direction of each metric."""
    names, units = _metric_names(trials, codes, keys), _units(trials)
    for place, (trial, wanted) in enumerate(zip(trials, names, strict=True)):
        scores = {score.name: score for score in trial.scores} if trial.status == "done" else {}
        dataset = trial.key.release.dataset["name"]
        for name in wanted:
            score = scores.get(name)
            if score is None:
                known = units.get((dataset, name), units.get((name,)))
                unit, direction = (known.unit, known.direction) if known else ("", "none")
                yield place, name, np.nan, None, unit, direction
            else:
                yield place, name, score.value, score.detail, score.unit, score.direction


def _metric_names(trials: Sequence[Trial], codes: Sequence[int], keys: Sequence[TrialKey]) -> list[list[str]]:
    """The metric names each trial has rows for.

    One metric may give several scores (a mean and a maximum), so the names are learnt from done trials: of
    the same series first, and, where a series has none, of all trials that were asked for the same metrics.
    A done trial gets the names of its series only: a metric that its release cannot answer is no failure.
    """
    asked = [tuple(metric.name for metric in key.metrics) for key in keys]
    groups = [(*series_group(key), names) for key, names in zip(keys, asked, strict=True)]
    by_series: dict[Group, set[str]] = defaultdict(set)
    by_request: dict[Group, set[str]] = defaultdict(set)
    for trial, code in zip(trials, codes, strict=True):
        if trial.status == "done":
            scored = [score.name for score in trial.scores]
            by_series[groups[code]].update(scored)
            by_request[asked[code]].update(scored)
    learnt = [
        sorted(by_series[group] if group in by_series else by_request[names] | set(names))
        for group, names in zip(groups, asked, strict=True)
    ]
    return [learnt[code] for code in codes]


def _units(trials: Iterable[Trial]) -> dict[Group, Score]:
    """A score of each (dataset, metric) and of each (metric,): it has the unit and direction."""
    units: dict[Group, Score] = {}
    for trial in trials:
        dataset = trial.key.release.dataset["name"]
        for score in trial.scores:
            units.setdefault((dataset, score.name), score)
            units.setdefault((score.name,), score)
    return units
