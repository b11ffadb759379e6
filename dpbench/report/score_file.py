"""Scores of a method that ran elsewhere: a table of parquet or CSV, which may come from anyone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from dpbench.errors import UserError, shown
from dpbench.grid.records import FitKey, PartKey, Runtime, Trial, TrialKey
from dpbench.metrics.evaluation import Score
from dpbench.report.submissions import ELSEWHERE, MOST_TRIALS, About

WHERE = ["dataset", "epsilon", "delta", "relation", "repetition"]
COLUMNS = {  # and their types
    **dict.fromkeys(["dataset", "relation", "metric"], "string"),
    **dict.fromkeys(["epsilon", "delta", "repetition", "value"], "float64"),
}
OPTIONAL = dict.fromkeys(["seconds", "mb"], "float64")
MOST_BYTES, MOST_UNPACKED, MOST_SCORES = 20 * 2**20, 200 * 2**20, 500_000
Place = tuple[str, float, float, str]


def read_scores(path: Path) -> pd.DataFrame:
    """The scores in a file: `COLUMNS`, and `OPTIONAL` ones if it has them. Raises `UserError` for anything else."""
    try:
        if path.stat().st_size > MOST_BYTES:
            raise UserError(f"{path} has more than {MOST_BYTES:,} bytes")
        found = _parquet(path) if path.suffix == ".parquet" else _csv(path)
        if missing := [name for name in COLUMNS if name not in found]:
            raise UserError(f"{path} lacks the columns {', '.join(missing)}; it has {shown(list(found))}")
        kinds = {**COLUMNS, **{name: kind for name, kind in OPTIONAL.items() if name in found}}
        found = found[list(kinds)].astype(kinds)
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror or error}") from error
    except (ValueError, TypeError) as error:
        raise UserError(f"{path} cannot be read as scores: {shown(str(error))}") from error
    _check(found, path)
    return found


def _csv(path: Path) -> pd.DataFrame:
    return pd.read_csv(path, dtype="string", nrows=MOST_SCORES + 1)


def _parquet(path: Path) -> pd.DataFrame:
    """The known columns of a parquet file, if what it says of its size is within the limits."""
    import pyarrow
    from pyarrow import parquet

    try:
        file = parquet.ParquetFile(path)
        sizes = [file.metadata.row_group(n).total_byte_size for n in range(file.metadata.num_row_groups)]
        if file.metadata.num_rows > MOST_SCORES or sum(sizes) > MOST_UNPACKED:
            raise UserError(
                f"{path} has more than {MOST_SCORES:,} scores, or unpacks to more than {MOST_UNPACKED:,} bytes"
            )
        names = [name for name in (*COLUMNS, *OPTIONAL) if name in file.schema_arrow.names]
        return pd.DataFrame(file.read(columns=names).to_pydict())
    except pyarrow.ArrowException as error:
        raise UserError(f"{path} is no parquet file: {shown(str(error))}") from error


def _check(found: pd.DataFrame, path: Path) -> None:
    if len(found) > MOST_SCORES or found.groupby(WHERE).ngroups > MOST_TRIALS:
        raise UserError(f"{path} has more than {MOST_SCORES:,} scores, or {MOST_TRIALS:,} trials")
    if found[[*WHERE, "metric"]].isna().to_numpy().any():
        raise UserError(f"{path} has empty cells; only the value of a run that has none may be empty, seconds and mb")
    repetitions = found["repetition"]
    if not ((repetitions >= 0) & (repetitions < MOST_TRIALS) & (repetitions % 1 == 0)).all():
        raise UserError(f"{path}: a repetition is a whole number from 0")
    if found.duplicated([*WHERE, "metric"]).any():
        raise UserError(f"{path} has two values of one metric in a repetition")


def trials_of(scores: pd.DataFrame, keys: Iterable[TrialKey], about: About) -> list[Trial]:
    """The scores as trials at the places of a protocol, of which `keys` has one each. Raises `UserError` for scores
    elsewhere.
    """
    places, trials = {_place(key): key for key in keys}, []
    records: list[dict[str, Any]] = [
        {str(name): value for name, value in row.items()} for row in scores.to_dict("records")
    ]
    runs: dict[tuple[Place, int], list[dict[str, Any]]] = {}
    for row in records:
        place = (str(row["dataset"]), float(row["epsilon"]), float(row["delta"]), str(row["relation"]))
        if place not in places:
            raise UserError(f"{about.experiment} has no {_said(place)[:200]}; it has {'; '.join(map(_said, places))}")
        runs.setdefault((place, int(row["repetition"])), []).append(row)
    for (place, repetition), rows in sorted(runs.items(), key=lambda one: one[0]):
        trials.append(_trial(places[place], repetition, rows, about))
    return trials


def _place(key: TrialKey) -> Place:
    budget = key.release.budget
    return str(key.release.dataset["name"]), budget.epsilon, budget.delta, budget.relation


def _said(place: Place) -> str:
    dataset, epsilon, delta, relation = place
    return f"{dataset} at epsilon {epsilon:g}, delta {delta:g}, {relation}"


def _trial(key: TrialKey, repetition: int, rows: Sequence[Mapping[str, Any]], about: About) -> Trial:
    """The trial of one repetition; the unit and direction of a score are for the leaderboard to say."""
    mechanism, model = PartKey(about.name, ELSEWHERE, {}), PartKey(ELSEWHERE, ELSEWHERE, {})
    release = replace(key.release, mechanism=mechanism, repetition=repetition, design=None)
    own = TrialKey(FitKey(release, model, key.fit.design), key.metrics)
    seconds, mb = (None if pd.isna(value := rows[0].get(name)) else float(value) for name in OPTIONAL)
    return Trial(
        id=own.id,
        release_id=release.id,
        key=own,
        experiment=about.experiment,
        status="done",
        scores=tuple(Score(str(row["metric"]), float(row["value"]), "", "none") for row in rows),
        provenance={"commit": None, "versions": {}},
        runtime=Runtime(release_seconds=seconds, peak_mb=mb),
    )
