"""Trials as a table for other programs: `COLUMNS` says what each column is."""

from __future__ import annotations

import json
from collections.abc import Iterable

import pandas as pd

from dpbench.grid.records import Trial, without_repetition
from dpbench.grid.seeds import canonical
from dpbench.report.frames.frame import joined_frame, rows_of

COLUMNS = {
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
    "train_rows": "asked for; all that there are if there are fewer. 0: all that are not for testing",
    "test_rows": "asked for: a number, or a part of all rows and its most; +coins: by a coin for each row",
    "seed": "of the splits and, on public data, of the noise",
    "repetition": "repetitions have splits of their own; methods are compared on the same ones",
    "status": "done, or why there is no value",
    "metric": "name of the score",
    "value": "of the score; missing if there is none",
    "unit": "of the value",
    "direction": "which values are better: lower, higher or none",
    "detail": "what the score has beside its value, as JSON; empty if nothing, and for private rows",
    "release_seconds": "of making the release",
    "model_seconds": "of fitting the model",
    "commit": "of the code that made the trial",
    "settings": "all settings of the trial but its repetition, as JSON",
}


def tidy_frame(trials: Iterable[Trial]) -> pd.DataFrame:
    """A row for each trial and score, with the `COLUMNS`; a trial without scores has one for each metric asked for.

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
    return frame[list(COLUMNS)]
