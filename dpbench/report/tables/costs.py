"""How long experiments took and would take in full, by mechanism."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from dpbench.config import compose
from dpbench.config.specs import PublishedTable, Spec
from dpbench.contracts import TextTable
from dpbench.grid.plan import make_plan
from dpbench.report.frames.settings import series_group
from dpbench.targets import own_folder

RELEASES = ["experiment", "mechanism", "dataset", "calibration", "epsilon", "delta"]
FITS = [*RELEASES, "model"]
SECONDS = ["release_seconds", "model_seconds", "metrics_seconds"]
METHOD = ["experiment", "mechanism"]
ALL = "all"
TIDY = [
    *METHOD, "least_repetitions", "most_repetitions", "declared_repetitions", "releases", "declared_releases",
    "release_hours", "model_hours", "metrics_hours", "hours", "predicted_hours", "without_seconds",
]  # fmt: skip
HEADER = ["", "", "releases", "repetitions", "hours", "hours in full", "without a time"]
CAPTION = (
    "Hours of one core: the seconds of stored releases, of the fits to them and of their scores, each once in an "
    "experiment, on the machines that made them. In full: the mean of the stored repetitions, times those declared; "
    "releases of which none is stored (without a time) are taken to need the mean of the mechanism's others in the "
    "experiment, and are left out if it has none. Repetitions: the least and the most on a data set at an ε"
)


def costs_table(frame: pd.DataFrame, labels: Mapping[str, str], spec: Spec, published: PublishedTable) -> TextTable:
    """The hours of `spec["experiments"]`: those of the stored trials, and those that all declared ones would take.

    A row for each mechanism with the fits to its releases, the longest first, below one for its experiment; the last
    row is the sum. The prediction is that of `dpbench run --dry-run` without stored trials, but for releases of which
    none is stored. `labels` and `published` are not read.
    """
    places = _places(_declared(spec["experiments"]), frame)
    methods = _summed(places, METHOD)
    lines = []
    for name, own in methods.groupby("experiment", sort=False):
        total = _summed(places[places["experiment"] == name], ["experiment"]).assign(mechanism=ALL)
        lines += [total, own.sort_values("predicted_hours", ascending=False, kind="stable")]
    lines.append(_summed(places.assign(experiment=ALL), ["experiment"]).assign(mechanism=ALL))
    tidy = pd.concat(lines, ignore_index=True)[TIDY]
    return TextTable(HEADER, list(map(_texts, tidy.to_dict("records"))), [CAPTION], tidy)


def _declared(experiments: Sequence[str]) -> pd.DataFrame:
    """What the experiments declare: a row for each fit to a release, with the number of `declared` repetitions."""
    return pd.DataFrame(_fits(experiments), columns=[*FITS, "declared"])


def _fits(experiments: Sequence[str]) -> Iterator[tuple[object, ...]]:
    for name in experiments:
        for group in make_plan(compose([f"experiment={name}"], own_folder())).groups:
            budget = group.item.key.budget
            for trial in group.item.trials:
                dataset, mechanism, calibration, model = series_group(trial)
                yield name, mechanism, dataset, calibration, budget.epsilon, budget.delta, model, len(group)


def _places(declared: pd.DataFrame, frame: pd.DataFrame) -> pd.DataFrame:
    """A row for each mechanism on a data set at a budget: repetitions declared and stored, the seconds stored, and
    those of all that are declared, NaN where a part was never run.
    """
    trials = frame.drop_duplicates(["experiment", "trial"])
    releases = trials.drop_duplicates(["experiment", "release"]).groupby(RELEASES)["release_seconds"]
    fits = trials.assign(seconds=trials[SECONDS[1:]].fillna(0.0).sum(axis=1)).groupby(FITS)["seconds"].mean()
    each = declared.join(fits, on=FITS).groupby(RELEASES, sort=False)
    places = each.agg(declared=("declared", "max"), fits=("seconds", lambda own: own.sum(skipna=False)))
    places["releases"] = releases.size()
    places["release_seconds"] = releases.sum()
    places[SECONDS[1:]] = trials.groupby(RELEASES)[SECONDS[1:]].sum()
    places["predicted"] = (releases.mean() + places["fits"]) * places["declared"]
    return places.fillna(dict.fromkeys(["releases", *SECONDS], 0)).reset_index()


def _summed(places: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """The places together: of a mechanism, an experiment or all."""
    known = places["predicted"].notna()
    each = (places["predicted"] / places["declared"]).groupby([places[name] for name in METHOD]).transform("mean")
    predicted = places["predicted"].fillna(each * places["declared"]) / 3600
    hours = {name.replace("seconds", "hours"): places[name] / 3600 for name in SECONDS}
    rows = places.assign(**hours, predicted=predicted, without=places["declared"].mask(known, 0))
    found = rows.groupby(list(by), sort=False).agg(
        least_repetitions=("releases", "min"),
        most_repetitions=("releases", "max"),
        declared_repetitions=("declared", "max"),
        releases=("releases", "sum"),
        declared_releases=("declared", "sum"),
        **{name: (name, "sum") for name in hours},
        predicted_hours=("predicted", lambda own: own.sum(min_count=1)),
        without_seconds=("without", "sum"),
    )
    counts = ["least_repetitions", "most_repetitions", "releases"]
    found = found.astype(dict.fromkeys(counts, "int64")).assign(hours=found[list(hours)].sum(axis=1))
    return found.reset_index()


def _texts(row: Mapping[Any, Any]) -> list[str]:
    """Such as ["", "aim", "2400 of 3600", "5 to 20 of 20", "1.20", "2.41", "60"]."""
    least, most = row["least_repetitions"], row["most_repetitions"]
    stored = f"{least}" if least == most else f"{least} to {most}"
    predicted = "" if np.isnan(row["predicted_hours"]) else f"{row['predicted_hours']:.2f}"
    return [
        row["experiment"] if row["mechanism"] == ALL else "",
        row["mechanism"],
        f"{row['releases']} of {row['declared_releases']}",
        f"{stored} of {row['declared_repetitions']}",
        f"{row['hours']:.2f}",
        predicted,
        str(row["without_seconds"]) if row["without_seconds"] else "",
    ]
