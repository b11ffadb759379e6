"""Leaderboards: one for each ranking that a paper's report declares, with the trials behind each of its numbers."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from dpbench.config import Paper, choices
from dpbench.config.labels import labels, metric_label
from dpbench.config.registry import read_yaml
from dpbench.config.specs import Spec
from dpbench.errors import UserError
from dpbench.grid.plan import all_stays
from dpbench.report.export_file import SUFFIX, Cell, Exported, exports_in, load_export
from dpbench.report.figures.mean_ranks import ranks_of
from dpbench.report.frames.frame import CELL, TrialRows, joined_frame, reach, rows_of, summarise
from dpbench.report.frames.series import in_order, mark_series, series_of
from dpbench.report.outcomes import method_cells
from dpbench.report.recommendation import Evidence, evidence_of, without_unit
from dpbench.report.text import number, powers

RANKS = "mean_ranks"  # the kind of figure that makes a leaderboard
Exports = Mapping[str, Sequence[Cell]]  # by experiment
WHERE = ["dataset", "epsilon", "series"]


class Trial(NamedTuple):
    """A trial behind a number."""

    repetition: int
    id: str
    value: float
    status: str


@dataclass(frozen=True)
class Board:
    """The private methods of some experiments, ranked by a metric on each table and at each epsilon.

    `rows`: one row per trial of the metric, references included. `cells`: a row for each method, table and epsilon
    (`cells_of`). `by_trial`: what the exports hold, by the identities of trials.
    """

    paper: Paper
    spec: Spec
    rows: pd.DataFrame
    cells: pd.DataFrame
    by_trial: Mapping[str, Cell]
    relative: str

    @property
    def name(self) -> str:
        """The name of its page, among those of all papers."""
        return f"{self.paper.name}-{self.spec['name']}"

    @property
    def metric(self) -> str:
        """The metric that ranks."""
        return str(self.spec["metric"])

    @property
    def title(self) -> str:
        """Such as "Linear regression: MSE"."""
        return f"{str(self.spec['title']).partition(':')[0]}: {metric_label(self.metric)}"

    @cached_property
    def protocol(self) -> str:
        """The protocols of its experiments, such as "arena 1.0"; "" if they declare none."""
        named = (read_yaml(choices("experiment")[name]).get("protocol") for name in self.spec["experiments"])
        return ", ".join(dict.fromkeys(str(one) for one in named if one))

    @property
    def unit(self) -> str:
        """The unit of the metric, and which direction is better."""
        first = self.cells.iloc[0]
        return ", ".join(filter(None, [powers(first["unit"]), f"{first['direction']} is better"]))

    @cached_property
    def datasets(self) -> dict[str, str]:
        """The tables with their titles, in the order of the report."""
        titles = self.paper.report["panels"]
        return {name: titles.get(name, name) for name in in_order(self.private["dataset"], titles)}

    @cached_property
    def private(self) -> pd.DataFrame:
        """The cells of private methods."""
        found: pd.DataFrame = self.cells[np.isfinite(self.cells["epsilon"])]
        return found

    @cached_property
    def ranks(self) -> pd.DataFrame:
        """The mean rank of each method at each epsilon, as the figure and table of mean ranks have it."""
        private = self.rows[np.isfinite(self.rows["epsilon"])]
        parts = [ranks_of(here).assign(epsilon=epsilon) for epsilon, here in private.groupby("epsilon")]
        return pd.concat(parts, ignore_index=True)

    @cached_property
    def by_mechanism(self) -> dict[str, pd.DataFrame]:
        """The cells of private methods by their mechanism."""
        return {str(name): rows for name, rows in self.private.groupby("mechanism")}

    @cached_property
    def ranked(self) -> dict[tuple[str, float], Mapping[Any, Any]]:
        """The rows of `ranks` by series and epsilon."""
        return {(row["series"], row["epsilon"]): row for row in self.ranks.to_dict("records")}

    @cached_property
    def trials(self) -> dict[int, list[Trial]]:
        """The trials of each cell by its `place`, in the order of their repetitions."""
        places = self.cells.set_index(list(CELL))["place"].to_dict()
        rows = self.rows.sort_values(["repetition", "trial"])
        found = defaultdict[int, list[Trial]](list)
        keys = rows[list(CELL)].itertuples(index=False, name=None)
        trials = rows[["repetition", "trial", "value", "status"]].itertuples(index=False, name=None)
        for key, trial in zip(keys, trials, strict=True):
            found[places[key]].append(Trial(*trial))
        return found

    def exported(self, cell: Mapping[Any, Any]) -> list[Cell]:
        """What the exports hold of a cell."""
        return list(
            {id(one): one for one in (self.by_trial[trial.id] for trial in self.trials[cell["place"]])}.values()
        )


def boards_of(paper: Paper, exports: Exports) -> Iterator[Board]:
    """The leaderboards of a paper, from the exports of its experiments; one that was not run yet has none.

    Of several rankings of the same experiments the first one has a leaderboard: their pages would have the same trials.
    """
    done = set()
    for spec in paper.report["figures"]:
        if spec.get("kind") == RANKS and (experiments := tuple(spec["experiments"])) not in done:
            done.add(experiments)
            yield board_of(paper, spec, [cell for name in spec["experiments"] for cell in exports.get(name, [])])


def exports_of(paper: Paper, results: Path) -> dict[str, list[Cell]]:
    """What the exports of a paper in the folder `results` hold, by experiment."""
    with all_stays():
        return {path.name.removesuffix(SUFFIX): load_export(path) for path in exports_in(results / paper.name)}


def board_of(paper: Paper, spec: Spec, exported: Sequence[Cell], submitted: Sequence[Cell] = ()) -> Board:
    """One leaderboard, from the cells of its experiments' exports, with those of a submission, if one is given."""
    with all_stays():
        parts = [_rows(exported)]
        parts += [_in_units_of(parts[0], _rows(submitted))] if submitted else []
        frame = joined_frame(parts)
        by_trial = {name: cell for cell in (*exported, *submitted) for name in cell.ids}
    levels = [cell.key.fit.model.parameters.get("level") for cell in exported]
    level = max((float(one) for one in levels if one is not None), default=None)
    known = labels()
    evidence = _evidence(frame, str(spec["metric"]), known, level)
    rows = frame[frame["metric"] == spec["metric"]]
    rows = mark_series(rows, series_of(rows, known))
    trivial = evidence is not None and not evidence.trivial.isna().all()
    relative = "" if evidence is None else "gain kept" if trivial else "× non-private"
    return Board(paper, spec, rows, cells_of(rows, evidence), by_trial, relative)


def _rows(cells: Sequence[Cell]) -> TrialRows:
    return rows_of(Exported([(cell, range(cell.count)) for cell in cells]))


def _in_units_of(known: TrialRows, submitted: TrialRows) -> TrialRows:
    """Submitted rows with the units and directions of the known ones: what a submission says of them is not read."""
    first = known.scores.drop_duplicates("metric").set_index("metric")[["unit", "direction"]]
    metric = submitted.scores["metric"]
    said = {
        name: metric.map(first[name].to_dict()).fillna(other) for name, other in (("unit", ""), ("direction", "none"))
    }
    return replace(submitted, scores=submitted.scores.assign(**said))


def _evidence(frame: pd.DataFrame, metric: str, known: Mapping[str, str], level: float | None) -> Evidence | None:
    """What puts the errors of different tables on one scale; None for a metric that has none."""
    ranked = without_unit(metric, set(frame["metric"]))
    try:
        return evidence_of(method_cells(frame, (ranked, "coverage")), ranked, known, level)
    except UserError:
        return None


def cells_of(rows: pd.DataFrame, evidence: Evidence | None) -> pd.DataFrame:
    """A row for each method, table and epsilon: the mean, its standard error `se` and its interval `low` to `high` of
    level `LEVEL` (Student's t), the `rank` among the private methods there (last if a run has no value), the median
    `seconds` and `mb`, the number of `runs`, and on a scale that all tables share `relative` with `relative_low` and
    `relative_high` (`Evidence`).

    `anchor` is the name of the cell on the page of its table: it depends on what was run alone, not on labels.
    """
    cells = summarise(rows).merge(rows.drop_duplicates(list(CELL))[[*CELL, "series", "series_order", "relation"]])
    rows = rows.assign(seconds=rows["release_seconds"].fillna(0) + rows["model_seconds"].fillna(0))
    measured = rows.groupby(list(CELL)).agg(seconds=("seconds", "median"), mb=("peak_mb", "median"))
    cells = cells.merge(measured, left_on=list(CELL), right_index=True)
    half = reach(cells["count"]) * cells["se"]
    cells = cells.assign(low=cells["mean"] - half, high=cells["mean"] + half)
    cells["runs"] = cells["count"] + cells["nonfinite"] + cells["failed"]
    private = cells[np.isfinite(cells["epsilon"])]
    lower = (private["direction"] == "lower").all()
    complete = private.assign(mean=private["mean"].where(private["count"] == private["runs"]))
    places = complete.groupby(["dataset", "epsilon", "delta"])["mean"]
    ranks = places.rank(method="min", ascending=bool(lower), na_option="bottom")
    cells = cells.assign(rank=ranks, **_relative(cells, evidence))
    cells = cells.sort_values(["dataset", "epsilon", "rank", "series_order"], kind="stable", ignore_index=True)
    several = cells.groupby([*WHERE])["delta"].nunique().max() > 1
    anchors = [_anchor(row, several) for row in cells.to_dict("records")]
    return cells.assign(anchor=anchors, place=range(len(cells)))


def _relative(cells: pd.DataFrame, evidence: Evidence | None) -> dict[str, Any]:
    """The columns on the scale that all tables share."""
    if evidence is None:
        return dict.fromkeys(("relative", "relative_low", "relative_high"), np.nan)
    places = pd.MultiIndex.from_frame(cells[WHERE])
    found = evidence.expected.stack().rename_axis(WHERE).reindex(places).to_numpy()
    found = np.where(cells["count"] > 0, found, np.nan)
    errors = evidence.cells.reindex(places)
    trivial, exact = (cells["dataset"].map(part.to_dict()) for part in (evidence.trivial, evidence.exact))
    scale = exact if trivial.isna().all() else trivial - exact
    half = reach(errors["runs"].fillna(0)) * errors["se"].to_numpy() / scale.to_numpy()
    return {"relative": found, "relative_low": found - half, "relative_high": found + half}


def _anchor(row: Mapping[Any, Any], deltas: bool) -> str:
    parts = [row["mechanism"], row["model"], row["calibration"], row["variant"], number(row["epsilon"])]
    parts += [number(row["delta"])] if deltas else []
    return "-".join(re.sub(r"[^\w.]+", "_", str(part)) for part in parts if part)
