"""A paper's protocol, data sets and runtimes, compared with this project's, each with a verdict."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

import pandas as pd

from dpbench.config import Experiment, Paper
from dpbench.config.specs import Published, PublishedDataset, PublishedFact, PublishedTime
from dpbench.files import write_file
from dpbench.grid.records import Trial, TrialKey
from dpbench.report.claims.statements import NOT_RUN
from dpbench.report.frames.results import Results
from dpbench.report.frames.settings import calibration_of, series_group
from dpbench.report.text import csv_text, markdown, markdown_table, number, span

EQUAL = "equal"


def write_published(paper: Paper, results: Sequence[Results], folder: Path) -> list[Path]:
    """Write protocol, datasets and runtimes, each as .md and .csv, into `folder`; the paths written.

    Those whose numbers the paper's published file does not have are left out.
    """
    published, experiments = paper.published, [one.experiment for one in results]
    tables: dict[str, tuple[str, pd.DataFrame]] = {}
    if "protocol" in published:
        caption = (
            "The paper's published protocol, compared with the settings of our stored trials; not run: a setting of "
            "an experiment that has no trial with it."
        )
        tables["protocol"] = caption, protocol_table(published["protocol"], results)
    if "datasets" in published:
        caption = "Table 1 of the paper, compared with our data sets; the target counts as an attribute."
        tables["datasets"] = caption, dataset_table(published["datasets"], experiments, paper.report["panels"])
    if "runtimes" in published:
        trials = {one.experiment.name: one.trials for one in results}
        tables["runtimes"] = _processors(published, results), runtime_table(published["runtimes"]["times"], trials)
    paths = []
    for name, (caption, table) in tables.items():
        rows = [["" if pd.isna(cell) else str(cell) for cell in row] for row in table.to_numpy()]
        text = (
            f"# {markdown(paper.title)}: {name}\n\n{markdown(caption)}\n\n{markdown_table(list(table.columns), rows)}\n"
        )
        paths.append(write_file(folder / f"{name}.md", text))
        paths.append(write_file(folder / f"{name}.csv", csv_text(table)))
    return paths


def _processors(published: Published, results: Sequence[Results]) -> str:
    """The caption of the runtimes: how the published and our times were measured."""
    records = [trial.release_provenance or trial.provenance for one in results for trial in one.trials]
    ours = sorted({f"{record['cpu']}, {record['threads']} thread(s)" for record in records})
    return (
        f"Paper: {published['runtimes']['processor']}. It does not say whether a time is for one release or for all "
        f"trials, nor on how many threads. Ours: mean seconds of one release; {'; '.join(ours) or 'nothing was run'}. "
        "Where the paper names no ε, ours runs from the fastest to the slowest one. Processors, settings and code "
        "differ, so the factor does not compare two programs on the same machine."
    )


def protocol_table(facts: Iterable[PublishedFact], results: Sequence[Results]) -> pd.DataFrame:
    """A row per published fact and value of ours: the experiments whose stored trials have it, and whether it is the
    paper's.

    A fact names the place of our value in an experiment: a field such as `sample.train_rows`, or a parameter such as
    `mechanism.aim.iterations`, of the experiments that have this mechanism, with all values of a sweep; the
    `repetitions` are how many trials a cell has. Where the paper tried a grid of values, some of these are "in the
    grid". What is planned, and has no trial, is "not run".
    """
    rows = []
    for fact in facts:
        ours: dict[tuple[str, bool], list[str]] = {}
        published = _text(fact["value"])
        for one in results:
            name = one.experiment.name
            if name not in fact.get("only", [name]) or (planned := _planned(one.experiment, fact["ours"])) is None:
                continue
            ran = _ran(one, fact["ours"], planned)
            ours.setdefault((_text(ran or planned), bool(ran)), []).append(name)
        for (value, run), names in ours.items():
            inside = fact.get("grid", False) and set(value.split(", ")) <= set(published.split(", "))
            verdict = NOT_RUN if not run else EQUAL if value == published else "in the grid" if inside else "differs"
            everywhere = len(names) == sum(map(len, ours.values()))
            where = "every experiment" if everywhere and len(names) > 1 else ", ".join(names)
            rows.append([fact["what"], fact["where"], published, value, where, verdict])
    return pd.DataFrame(rows, columns=["fact", "where published", "paper", "ours", "experiments", "verdict"])


def _planned(experiment: Experiment, place: str) -> Any:
    """What the configuration has at a place, all values of a sweep in order; None for a mechanism that it lacks."""
    match place.split("."):
        case ["epsilon"]:
            return list(experiment.epsilons)
        case ["mechanism", name, parameter]:
            parts = (part for one in experiment.grids for part in one.mechanisms if part.name == name)
            values = {value for part in parts if (value := part.value(parameter)) is not None}
            return sorted(values) or None
        case ["sample" | "limits" as group, field]:
            return getattr(getattr(experiment, group), field)
        case _:
            return getattr(experiment, place)


def _ran(one: Results, place: str, planned: Any) -> Any:
    """The values that the stored trials have there, in order: none where no trial has one."""
    if place == "repetitions":
        return _repetitions(one)
    keys = one.rows.keys if one.trials else []
    return sorted({value for key in keys if (value := _value_of(key, place, planned)) is not None})


def _value_of(key: TrialKey, place: str, planned: Any) -> Any:
    """What a trial has at a place; None for a reference's budget and for another mechanism's parameter.

    A parameter that the key leaves out has its default, the one value that is planned.
    """
    made, budget, split = key.release.mechanism, key.release.budget, key.release.split
    match place.split("."):
        case ["epsilon" | "delta" as field]:
            return getattr(budget, field) if budget.epsilon < math.inf else None
        case ["mechanism", name, parameter]:
            default = planned[0] if len(planned) == 1 else None
            return made.parameters.get(parameter, default) if made.name == name else None
        case ["sample", "split"]:
            return "fixed" if split.get("fixed") else "fresh"
        case ["sample", field]:
            return split.get(field)
        case _:
            return planned


def _repetitions(one: Results) -> list[int]:
    """The numbers of repetitions that cells have: settings alike but for the versions of the code are one."""
    if not one.trials:
        return []
    rows = one.rows
    cells = [
        (*series_group(key), key.release.budget, *sorted(own.items()))
        for key, own in zip(rows.keys, rows.leaves, strict=True)
    ]
    codes, _ = pd.factorize(pd.Series(list(map(str, cells))))
    found = rows.scores[["repetition"]].groupby(codes[rows.scores["setting"]])["repetition"].nunique()
    return sorted(set(found.tolist()))


def _text(value: Any) -> str:
    values = value if isinstance(value, list | tuple) else [value]
    return ", ".join(one if isinstance(one, str) else number(float(one)) for one in values)


def dataset_table(
    published: Iterable[PublishedDataset], experiments: Sequence[Experiment], titles: Mapping[str, str]
) -> pd.DataFrame:
    """A row per data set of the paper and way in which our experiments use it, from their configurations alone.

    The target counts as an attribute. The verdict says which only the paper ("without") or only we ("added") have;
    names are compared without case and punctuation.
    """
    rows = []
    for one in published:
        uses: dict[tuple[str, ...], list[Experiment]] = {}
        for experiment in experiments:
            data = experiment.dataset
            if data.name in one["names"]:
                use = (data.name, str(experiment.design["target"]), *sorted(data.drop))
                uses.setdefault(use, []).append(experiment)
        paper = {"dataset": one["name"], "rows, paper": one["rows"], "attributes, paper": one["attributes"]}
        paper["targets, paper"] = ", ".join(one["targets"])
        ours = [_use(one, users) | {"ours": titles.get(use[0], use[0])} for use, users in uses.items()]
        rows += [paper | use for use in ours] or [paper | {"verdict": "no experiment"}]
    columns = [
        "dataset", "ours", "experiments", "rows, paper", "rows, ours", "attributes, paper", "attributes, ours",
        "targets, paper", "target, ours", "verdict",
    ]  # fmt: skip
    counts = {"rows, ours": "Int64", "attributes, ours": "Int64"}
    return pd.DataFrame(rows, columns=columns).astype(counts)


def _use(published: PublishedDataset, experiments: Sequence[Experiment]) -> dict[str, object]:
    """How these experiments use a data set, all in the same way, and where that differs from the paper."""
    data, target = experiments[0].dataset, str(experiments[0].design["target"])
    names = [name for name in data.get("attributes") or {} if name not in data.drop]
    rows = data.card.get("rows")
    differences = [] if rows == published["rows"] else ["rows not declared" if rows is None else "rows"]
    missing, added = _only(published["listed"], names), _only(names, published["listed"])
    differences += [f"without {', '.join(missing)}"] if missing else []
    differences += [f"added {', '.join(added)}"] if added else []
    if len(names) != published["attributes"] and not missing and not added:
        differences.append("number of attributes")
    differences += [] if _plain(target) in map(_plain, published["targets"]) else ["target"]
    return {
        "experiments": ", ".join(experiment.name for experiment in experiments),
        "rows, ours": rows,
        "attributes, ours": len(names),
        "target, ours": target,
        "verdict": f"differs: {'; '.join(differences)}" if differences else EQUAL,
    }


def _only(names: Iterable[str], others: Iterable[str]) -> list[str]:
    known = set(map(_plain, others))
    return [name for name in names if _plain(name) not in known]


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def runtime_table(published: Iterable[PublishedTime], trials: Mapping[str, Sequence[Trial]]) -> pd.DataFrame:
    """A row per published time: the paper's seconds, ours (mean of one release), and the paper's over ours.

    `trials` are those of each experiment. Where the paper gives no epsilon or a range, ours runs from the smallest to
    the largest mean over the epsilons, and the factor from the smallest to the largest that is possible.
    """
    rows = []
    for one in published:
        mechanism, epsilon = str(one["mechanism"]), one.get("epsilon")
        seconds, settings = _release_seconds(trials.get(one["experiment"], []), mechanism, epsilon)
        paper = one["seconds"] if isinstance(one["seconds"], list) else [one["seconds"]]
        factors = [paper[0] / max(seconds), paper[-1] / min(seconds)] if seconds else []
        rows.append(
            {
                "experiment": one["experiment"],
                "mechanism": mechanism,
                "ε": "not stated" if epsilon is None else number(float(epsilon)),
                "where published": one["where"],
                "paper": one["stated"],
                "paper, s": span(paper),
                "ours, s": span(seconds) or "not run",
                "paper / ours": span(factors),
                "our settings": settings,
            }
        )
    return pd.DataFrame(rows)


def _release_seconds(trials: Sequence[Trial], mechanism: str, epsilon: float | None) -> tuple[list[float], str]:
    """The mean seconds of the mechanism's releases at each epsilon, and the parameters that they were made with.

    If a mechanism ran under several calibrations, those with the published constants count: the paper timed them.
    """
    releases: dict[str, Trial] = {}
    own = [trial for trial in trials if trial.key.release.mechanism.name == mechanism]
    calibrations = {calibration_of(trial.key) for trial in own}
    for trial in own:
        asked = epsilon is None or trial.key.release.budget.epsilon == float(epsilon)
        chosen = "paper" not in calibrations or calibration_of(trial.key) == "paper"
        if asked and chosen and trial.runtime.release_seconds is not None:
            releases.setdefault(trial.release_id, trial)
    by_epsilon: dict[float, list[float]] = {}
    settings: set[str] = set()
    for _, trial in sorted(releases.items()):
        key = trial.key.release
        by_epsilon.setdefault(key.budget.epsilon, []).append(trial.runtime.release_seconds or 0.0)
        parameters = {name: value for name, value in key.mechanism.parameters.items() if value is not None}
        settings.add(", ".join(f"{name}={value}" for name, value in parameters.items()))
    return [mean(seconds) for seconds in by_epsilon.values()], "; ".join(sorted(settings))
