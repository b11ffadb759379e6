"""Stored trials as one long table, a row for each trial and metric, failed trials included.

`summarise` gives mean, standard error and counts of each cell, `TIDY_COLUMNS` the columns of the table for other
programs.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.special import stdtrit

from dpbench.data.domain import Floats
from dpbench.errors import UserError
from dpbench.grid.records import Trial, TrialKey, without_repetition
from dpbench.grid.seeds import canonical
from dpbench.report.export_file import Exported
from dpbench.report.frames.by_setting import OF_TRIAL, OneSetting, by_setting
from dpbench.report.frames.settings import NOTES, Group, leaves_of, note_of, series_group, setting_of, variants

LEVEL = 0.95  # of the two-sided interval behind every verdict; the usual one
SERIES = ("mechanism", "calibration", "variant", "model")
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
_OF_SCORE = {"metric": "str", "value": "float64", "detail": "object", "unit": "str", "direction": "str"}
COLUMNS = {**OF_TRIAL, **_OF_SETTING, "variant": "str", **_OF_SCORE, "x": "float64", "panel": "str"}
NOT_FAILED = ("no_estimate", "unconverged")  # statuses of trials that have no score, though nothing went wrong
TIDY_COLUMNS = {
    "trial": "identity of the trial: one fit of a model to a release",
    "release": "identity of the release",
    "experiment": "name of the experiment that it was run for",
    "dataset": "name of the data set",
    "mechanism": "name of the mechanism",
    "calibration": "noise by the paper's constants (paper), the least that is private (tight), or by the authors' code",
    "variant": "settings by which rows with the same names differ",
    "model": "name of the model",
    "epsilon": "asked for; inf: the non-private reference",
    "delta": "asked for",
    "relation": "of neighbouring tables: add_remove or replace",
    "spent_epsilon": "at delta, by the ledger",
    "nonprivate_inputs": "what was taken from the private rows without paying for it, a list of texts",
    "train_rows": "asked for, or all available rows if there are fewer. 0: all that are not for testing",
    "test_rows": "asked for: a number, or a fraction of all rows and a maximum; +coins: by a coin for each row",
    "seed": "of the splits and, on public data, of the noise",
    "repetition": "repetitions have splits of their own; methods are compared on the same ones",
    "status": "done, or why there is no value",
    "metric": "name of the score",
    "value": "of the score; missing if there is none",
    "unit": "of the value",
    "direction": "which values are better: lower, higher or none",
    "detail": "further details of the score, as JSON; empty if there are none, and for private rows",
    "release_seconds": "of making the release",
    "model_seconds": "of fitting the model",
    "commit": "of the code that made the trial",
    "settings": "all settings of the trial but its repetition, as JSON",
}


def trial_frame(trials: Iterable[Trial], by: Sequence[str] = ()) -> pd.DataFrame:
    """One row per trial and metric, in an order that does not depend on the order of `trials`.

    Each path that `by` names (see `setting_of`, `note_of`) is a further column; cells are distinguished by the settings
    among them.

    A trial that is not done has a row, with NaN for its value, for every metric of its key and every score name that
    done trials with the same metrics have. `detail` is what a score has besides its value, such as a histogram, or
    None. `epsilon` is inf for the non-private reference;
    `spent_epsilon` is NaN where it is unknown; times are in seconds, `peak_mb` is the largest resident
    memory of the worker, its libraries included, during the release or the model. `variant` is "" unless
    one cell mixes other settings (see `variants`). `x` and `panel`, the place in a figure, are epsilon and dataset.

    Raises `UserError` if one id comes twice with different scores.
    """
    return joined_frame([rows_of(trials)], by)


@dataclass(frozen=True, eq=False)
class TrialRows:
    """Trials as rows, before their cells are distinguished; a frame over several experiments joins some.

    `keys`, `leaves` and `settings` have one entry or row for each setting of the trials, `scores` a row for each trial
    and metric: `trial`, the place among the trials, `setting`, that among the keys.
    """

    source: Sequence[Trial]
    keys: Sequence[TrialKey]
    leaves: Sequence[dict[str, str]]
    settings: pd.DataFrame
    scores: pd.DataFrame

    @cached_property
    def trials(self) -> list[Trial]:
        """The trials, sorted by id."""
        return sorted(self.source, key=lambda trial: trial.id)


def rows_of(trials: Iterable[Trial]) -> TrialRows:
    """The trials as rows. Raises `UserError` if one id comes twice with different scores."""
    source = trials if isinstance(trials, Exported) else unique_trials(trials)
    return rows_of_groups(by_setting(source), source)


def rows_of_groups(found: Iterable[OneSetting], source: Sequence[Trial] = ()) -> TrialRows:
    """The trials of these groups as rows; `source`, the trials, is for their notes.

    They have the fields that all groups have; without the trials' ids, their order is that of the groups.
    """
    groups = list(found)
    known = [name for name in OF_TRIAL if all(name in group.fields for group in groups)]
    if "trial" in known:
        groups.sort(key=lambda group: min(group.fields["trial"]))
    keys = [group.key for group in groups]
    settings = _typed(dict(zip(_OF_SETTING, zip(*map(_of_setting, keys), strict=True), strict=False)), _OF_SETTING)
    columns = {name: list(chain(*(group.fields[name] for group in groups))) for name in known}
    fields = _typed(columns, {name: OF_TRIAL[name] for name in known})
    by_id = np.argsort(fields["trial"].to_numpy(dtype="U")) if "trial" in known else np.arange(len(fields))
    scores = _scores(groups, np.argsort(by_id).tolist())
    rows = fields.take(by_id[scores["place"]]).reset_index(drop=True)
    return TrialRows(source, keys, list(map(leaves_of, keys)), settings, pd.concat([rows, scores], axis=1))


def _typed(columns: Mapping[str, Sequence[Any]], types: Mapping[str, str]) -> pd.DataFrame:
    return pd.DataFrame({name: pd.Series(columns.get(name, ()), dtype=kind) for name, kind in types.items()})


def joined_frame(parts: Sequence[TrialRows], by: Sequence[str] = ()) -> pd.DataFrame:
    """The rows of several experiments in one frame (see `trial_frame`); a trial of two of them is there once."""
    parts = parts or [rows_of(())]
    settings = pd.concat([part.settings for part in parts], ignore_index=True)
    keys = [key for part in parts for key in part.keys]
    texts = variants(keys, [own for part in parts for own in part.leaves], by)
    settings = settings.assign(variant=pd.array(texts, dtype="str"))
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
    rows = rows.assign(x=rows["epsilon"], panel=rows["dataset"])
    frame = rows[[*(name for name in COLUMNS if name in rows), *by]]
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


def _of_setting(key: TrialKey) -> tuple[object, ...]:
    split, budget = key.release.split, key.release.budget
    dataset, mechanism, calibration, model = series_group(key)
    marks = (name for name in ("coins", "protocol", "fixed") if name in split)
    test_rows = "+".join([str(setting_of(key, "release.split.test_rows") or 0), *marks])
    plain = (split.get("train_rows", 0), test_rows, budget.relation)
    return dataset, mechanism, calibration, model, budget.epsilon, budget.delta, *plain


def _scores(groups: Sequence[OneSetting], places: list[int]) -> pd.DataFrame:
    """A row for each trial and metric: `place`, the trial's, `setting`, that of its group, and the score.

    `places` has the trials of one group after the other. The rows are in its order, then in that of the metrics.
    """
    names, units, start = _metric_names(groups), _units(groups), 0
    columns: dict[str, list[Any]] = {name: [] for name in ("place", "setting", *_OF_SCORE)}
    for setting, (group, wanted) in enumerate(zip(groups, names, strict=True)):
        size, dataset = len(group.scores), group.key.release.dataset["name"]
        first = {name: len(columns["value"]) + row * size for row, name in enumerate(wanted)}
        for name in wanted:
            known = units.get((dataset, name), units.get((name,), {"unit": "", "direction": "none"}))
            given: dict[str, object] = {"setting": setting, "metric": name, "value": np.nan, "detail": None, **known}
            columns["place"] += places[start : start + size]
            for column, value in given.items():
                columns[column] += [value] * size
        for place, score in group.done:
            row = first[score["name"]] + place
            columns["value"][row], columns["detail"][row] = float(score["value"]), score.get("detail")
            columns["unit"][row], columns["direction"][row] = score["unit"], score["direction"]
        start += size
    rows = _typed(columns, {"place": "int64", "setting": "int64", **_OF_SCORE})
    metric = pd.factorize(rows["metric"], sort=True)[0]
    return rows.take(np.lexsort([metric, rows["place"].to_numpy()])).reset_index(drop=True)


def _metric_names(groups: Sequence[OneSetting]) -> list[list[str]]:
    """The metric names that the trials of each group have rows for.

    One metric may give several scores (a mean and a maximum), so the names are learnt from done trials: of
    the same series first, and, where a series has none, of all trials with the same metrics.
    A done trial gets the names of its series only: a metric that its release does not support is not a failure.
    """
    asked = [tuple(metric.name for metric in group.key.metrics) for group in groups]
    series = [(*series_group(group.key), names) for group, names in zip(groups, asked, strict=True)]
    by_series: dict[Group, set[str]] = defaultdict(set)
    by_request: dict[Group, set[str]] = defaultdict(set)
    for group, own, names in zip(groups, series, asked, strict=True):
        if "done" in group.fields["status"]:
            by_series[own] |= group.scored.keys()
            by_request[names] |= group.scored.keys()
    return [
        sorted(by_series[own] if own in by_series else by_request[names] | set(names))
        for own, names in zip(series, asked, strict=True)
    ]


def _units(groups: Iterable[OneSetting]) -> dict[Group, dict[str, str]]:
    """The unit and direction of each (dataset, metric) and of each (metric,)."""
    units: dict[Group, dict[str, str]] = {}
    for group in groups:
        dataset = group.key.release.dataset["name"]
        for name, score in group.scored.items():
            known = {"unit": score["unit"], "direction": score["direction"]}
            units.setdefault((dataset, name), known)
            units.setdefault((name,), known)
    return units


def has_value(rows: pd.DataFrame) -> pd.Series:
    """Which rows have a finite value and belong to a trial that is done."""
    valued: pd.Series = (rows["status"] == "done") & np.isfinite(rows["value"])
    return valued


def summarise(frame: pd.DataFrame, by: Sequence[str] = CELL) -> pd.DataFrame:
    """One row per cell (the values of the columns `by`), sorted by them.

    `mean` and `se` (sample standard deviation, ddof = 1, over the square root of `count`; NaN for a count
    of 1) are in the metric's `unit` and are taken over the `count` done trials whose value is finite.
    `nonfinite` counts the other done trials, `failed` those with any other status, so that
    count + nonfinite + failed is the number of trials; `no_estimate` and `unconverged` say how many of these have that
    status. `spent_epsilon` is the largest of the cell.

    Raises `ValueError` if cells would mix metrics.
    """
    if "metric" not in by and frame["metric"].nunique() > 1:
        raise ValueError("cells would mix metrics: put 'metric' into `by` or select one metric first")
    done = frame["status"] == "done"
    finite = has_value(frame)
    counted = {"nonfinite": done & ~finite, "failed": ~done}
    counted |= {status: frame["status"] == status for status in NOT_FAILED}
    place = frame.groupby(list(by), sort=True, dropna=False).ngroup().to_numpy()
    cells = frame[[*by, "unit", "direction"]].take(np.unique(place, return_index=True)[1]).reset_index(drop=True)
    numbers = {"value": frame["value"].where(finite), **counted, "spent_epsilon": frame["spent_epsilon"]}
    groups = pd.DataFrame(numbers).groupby(place)
    values = groups["value"].agg(["mean", "std", "count"]).rename(columns={"std": "se"})
    values["se"] /= np.sqrt(values["count"].where(values["count"] > 0))
    parts: list[pd.DataFrame] = [cells, values, groups[list(counted)].sum(), groups[["spent_epsilon"]].max()]
    return pd.concat(parts, axis=1)


def reach(counts: ArrayLike) -> Floats:
    """Half of Student's interval of level `LEVEL` of a mean of `counts` values, in standard errors; NaN below 2.

    >>> reach([1, 2, 1000]).round(2).tolist()
    [nan, 12.71, 1.96]
    """
    counts = np.asarray(counts)
    return np.where(counts > 1, stdtrit(np.maximum(counts - 1, 1), (1 + LEVEL) / 2), np.nan)


def tidy_frame(trials: Iterable[Trial]) -> pd.DataFrame:
    """A row for each trial and score, with `TIDY_COLUMNS`; a trial without scores has one for each metric asked for.

    A trial that several experiments computed is there once, as the first has it: on other processors its last digits
    may differ. Raises `UserError` if one id comes twice with different scores in the same experiment.
    """
    first: dict[str, str] = {}
    rows = rows_of(trial for trial in trials if first.setdefault(trial.id, trial.experiment) == trial.experiment)
    settings = pd.Series([canonical(without_repetition(key.to_dict())[0]) for key in rows.keys], dtype="str")
    seeds = pd.Series([key.release.seed for key in rows.keys])
    place = rows.scores.drop_duplicates("trial").set_index("trial")["setting"]
    commits = {trial.id: str(trial.provenance.get("commit")) for trial in rows.trials}
    frame = joined_frame([rows])
    setting = frame["trial"].map(place).to_numpy()
    details = [json.dumps(detail) if detail is not None else "" for detail in frame["detail"]]
    frame = frame.assign(
        seed=seeds.take(setting).to_numpy(),
        commit=frame["trial"].map(commits),
        settings=settings.astype("category").take(setting).array,
        detail=details,
    )
    return frame[list(TIDY_COLUMNS)]
