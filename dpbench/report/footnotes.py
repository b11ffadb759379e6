"""The footnotes of every figure and table: data, budget, failures and other cautions."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from dpbench.report.frames.frame import CELL, SERIES, summarise
from dpbench.report.frames.series import Series, mark_series, without_variant
from dpbench.report.text import in_ranges, number, span

_MARKS = {  # what a frame's `test_rows` may have besides a size
    "coins": "by a secret coin for each row",
    "protocol": "which the mechanism used too (protocol: authors)",
    "fixed": "one split for all repetitions, so that the errors reflect the noise alone (split: fixed)",
}
NO_VALUE = "No value (failed, no estimate or not finite)"
UNFINISHED = "Integer programmes stopped by their time limit, with the best solution so far"
ALL_OTHERS = "all others for training"  # for a table that is not public: their number is secret
_READ = [
    "dataset", *SERIES, "epsilon", "delta", "train_rows", "test_rows", "repetition", "value", "spent_epsilon",
    "unfinished", "nonprivate_inputs",
]  # fmt: skip
SENTENCES = re.compile(r"(?<=\.)(?<!al\.)(?<!Fig\.) (?=[A-Z0-9δε])")  # where one ends and the next begins
FURTHER = "Further notes{}: dpbench report."
EXCEEDS, INPUTS = "Spent ε exceeds the target ε", "Non-private inputs"
PRIVACY = {EXCEEDS: "exceeded budgets", INPUTS: "non-private inputs"}  # how a sentence starts -> what it is on
SLACK = 1.001  # spent epsilon counts as above the target beyond this ratio: accountants round


def footnotes(
    frame: pd.DataFrame,
    known: Sequence[Series],
    notes: str = "",
    shown: str = "Mean ± standard error",
    cells: pd.DataFrame | None = None,
) -> list[str]:
    """Sentences on rows of one metric: failures, overspending, unfinished programmes, what was run, inputs, `notes`.

    `shown`: the statistic over the repetitions, in words. `cells`: the summary of the rows, if it is at hand.
    """
    if cells is None:
        cells = mark_series(summarise(frame), known) if len(frame) else frame
    cautions = [*_failures(cells), *_overspending(cells), *_unfinished(frame, known)] if len(cells) else []
    sentences = [*cautions, *_data(frame), *_protocol(frame, shown)]
    if len(cells) and any(frame["nonprivate_inputs"]):
        sentences += _inputs(mark_series(frame.loc[np.isfinite(frame["epsilon"]), _READ], known))
    return [*sentences, notes] if notes else sentences


def sweep_footnotes(frame: pd.DataFrame, known: Sequence[Series]) -> list[str]:
    """Sentences on rows of one metric over a sweep, from the smallest to the largest value in place of a list."""
    marked = mark_series(frame[_READ], known)
    marked = marked.assign(series=without_variant(marked["series"]))
    private = marked[np.isfinite(marked["epsilon"])]
    lost, trials = marked[~np.isfinite(marked["value"])], marked["series"].value_counts()
    counts = [
        f"{name} {len(rows)} of {trials[name]}"
        for name, rows in lost.sort_values("series_order").groupby("series", sort=False)
    ]
    sentences = [f"{NO_VALUE}: {', '.join(counts)}"] if counts else []
    over = private[private["spent_epsilon"] > SLACK * private["epsilon"]]
    factors = [
        f"{name} by up to {(rows['spent_epsilon'] / rows['epsilon']).max():.3g} times"
        for name, rows in over.sort_values("series_order").groupby("series", sort=False)
    ]
    sentences += [f"{EXCEEDS}: {', '.join(factors)}"] if factors else []
    stopped = marked[marked["unfinished"] > 0]
    ended = [
        f"{name} {rows['unfinished'].sum()} in {len(rows)} of {trials[name]} trials"
        for name, rows in stopped.sort_values("series_order").groupby("series", sort=False)
    ]
    sentences += [f"{UNFINISHED}: {', '.join(ended)}"] if ended else []
    test = " or ".join(_test_rows(asked) for asked in sorted(frame["test_rows"].unique()))
    trained = _training_rows(frame)
    sizes = " to ".join(f"{rows:,}" for rows in dict.fromkeys([trained.min(), trained.max()]))
    most = f"{sizes} training rows at most" if trained.any() else ALL_OTHERS
    sentences.append(f"{most}, {test}")
    sentences += [f"ε = {span(private['epsilon'])}, δ = {span(private['delta'].dropna())}"] if len(private) else []
    cells = ["mechanism", "calibration", "model", "dataset", "epsilon"]
    repetitions = frame.groupby(cells, dropna=False)["repetition"].nunique()
    sentences.append(f"{span(repetitions)} repetition{'' if repetitions.max() == 1 else 's'}")
    return [*sentences, *_inputs(private)]


def _data(frame: pd.DataFrame) -> list[str]:
    """The data sets by their rows. The split takes all available rows, up to the number requested."""
    sentences = []
    for (train, test), rows in frame.groupby([_training_rows(frame), "test_rows"], sort=True):
        names = sorted(rows["dataset"].unique())
        everywhere = 1 < len(names) == frame["dataset"].nunique()
        where = "Each data set" if everywhere else listed(names)
        sizes = f"up to {train:,} training and {_test_rows(test)}" if train else f"{_test_rows(test)}, {ALL_OTHERS}"
        sentences.append(f"{where}: {sizes}")
    return sentences


def _training_rows(frame: pd.DataFrame) -> pd.Series[int]:
    """Those that there are (see `frame_of`), or those asked for where that is not known."""
    return frame["training_rows"] if "training_rows" in frame else frame["train_rows"]


def _test_rows(asked: object) -> str:
    """What a frame has for `test_rows` in words.

    >>> _test_rows("1000"), _test_rows("0"), _test_rows("0.2:1000")
    ('1,000 test rows', 'no test rows', '20 % of all rows, 1,000 at most, as test rows')
    >>> _test_rows("1000+protocol")
    '1,000 test rows, which the mechanism used too (protocol: authors)'
    >>> _test_rows("1000+fixed")
    '1,000 test rows, one split for all repetitions, so that the errors reflect the noise alone (split: fixed)'
    """
    asked, *marks = str(asked).split("+")
    return ", ".join([_size(asked), *(_MARKS[mark] for mark in marks)])


def _size(asked: str) -> str:
    rows, *most = (float(part) for part in asked.split(":"))
    if 0 < rows < 1:
        cap = f", {most[0]:,.0f} at most," if most else ""
        return f"{100 * rows:g} % of all rows{cap} as test rows"
    return f"{rows:,.0f} test rows" if rows else "no test rows"


def _protocol(frame: pd.DataFrame, shown: str) -> list[str]:
    private = frame[np.isfinite(frame["epsilon"])]
    sentences = []
    if len(private):
        sentences.append("δ = " + ", ".join(number(delta) for delta in sorted(private["delta"].dropna().unique())))
        sentences.append("Neighbours: " + ", ".join(sorted(set(private["relation"]) - {""})).replace("_", "/"))
    repetitions: dict[tuple[int, int], list[str]] = {}
    of_cells = frame.groupby(["dataset", *SERIES, "epsilon"], dropna=False)["repetition"].nunique()
    for dataset, most, least in of_cells.groupby(level="dataset").agg(["max", "min"]).itertuples():
        repetitions.setdefault((most, least), []).append(str(dataset))
    counts = [
        f"{span((least, most))} repetition{'' if most == 1 else 's'}"
        f"{f' ({listed(names)})' if len(repetitions) > 1 else ''}"
        for (most, least), names in sorted(repetitions.items(), reverse=True)
    ]
    several = any(most > 1 for most, _ in repetitions)
    sentences += [f"{shown} of {listed(counts)}" if several else listed(counts)] if counts else []
    return [text for text in sentences if not text.endswith(": ")]


def _failures(cells: pd.DataFrame) -> list[str]:
    missing = cells["failed"] + cells["nonfinite"]
    counted = cells.assign(missing=missing, trials=missing + cells["count"])
    cases = _by_series(counted, missing > 0, lambda row: f"{row['missing']} of {row['trials']}")
    return [f"{NO_VALUE}: {cases}"] if cases else []


def _overspending(cells: pd.DataFrame) -> list[str]:
    """Series whose ledger spent more than the target epsilon (published constants that do not hold)."""
    over = cells["spent_epsilon"] > SLACK * cells["epsilon"]
    cases = _by_series(cells, over, lambda row: f"{row['spent_epsilon']:.3g}")
    return [f"{EXCEEDS}: {cases}"] if cases else []


def _unfinished(frame: pd.DataFrame, known: Sequence[Series]) -> list[str]:
    """Series whose releases used integer programmes stopped by their time limit."""
    if not frame["unfinished"].any():
        return []
    counted = frame.assign(ended=frame["unfinished"] > 0)
    cells = counted.groupby(list(CELL), dropna=False).agg(
        programmes=("unfinished", "sum"), ended=("ended", "sum"), trials=("ended", "size")
    )
    cells = mark_series(cells.reset_index(), known)
    cases = _by_series(
        cells, cells["ended"] > 0, lambda row: f"{row['programmes']} in {row['ended']} of {row['trials']} trials"
    )
    return [f"{UNFINISHED}: {cases}"] if cases else []


def _inputs(private: pd.DataFrame) -> list[str]:
    """What was taken from the rows outside the privacy budget, by which series; of private rows with their series."""
    if not any(private["nonprivate_inputs"]):
        return []
    private = private.drop_duplicates(["dataset", "series_order", "nonprivate_inputs"])
    private = private.assign(series=without_variant(private["series"]))
    users: dict[str, dict[str, list[str]]] = {}
    for dataset, rows in private.groupby("dataset", sort=True):
        taken: dict[str, dict[str, None]] = {}
        order = rows[["series_order", "series", "nonprivate_inputs"]].drop_duplicates().sort_values("series_order")
        for series, inputs in order.groupby("series", sort=False)["nonprivate_inputs"]:
            names = dict.fromkeys(name for those in inputs for name in those)
            for name in in_ranges(names):
                taken.setdefault(name, {})[str(series)] = None
        for name, those in taken.items():
            who = "every private method" if len(those) == order["series"].nunique() > 1 else " and ".join(those)
            users.setdefault(name, {}).setdefault(who, []).append(str(dataset))
    described = [
        f"{name} ({'; '.join(who + _where(datasets, private) for who, datasets in uses.items())})"
        for name, uses in users.items()
    ]
    return [f"{INPUTS}: {'; '.join(described)}"] if described else []


def _by_series(cells: pd.DataFrame, wanted: pd.Series[bool], say: Callable[[Mapping[Any, Any]], str]) -> str:
    """The text of `say` for each wanted cell, as "SSP (paper) 0.13 at ε = 0.1, 1.6 at ε = 1; AdaSSP ..."."""
    by_series: dict[str, dict[str, list[str]]] = {}
    if not wanted.any():
        return ""
    for row in cells[wanted].sort_values(["series_order", "epsilon", "delta", "dataset"]).to_dict("records"):
        parts = by_series.setdefault(str(row["series"]), {})
        parts.setdefault(f"{say(row)} at ε = {number(row['epsilon'])}", []).append(str(row["dataset"]))
    sentences = []
    for series, parts in by_series.items():
        words = [f"{what}{_where(datasets, cells)}" for what, datasets in parts.items()]
        sentences.append(f"{series} {', '.join(words)}")
    return "; ".join(sentences)


def _where(datasets: Sequence[str], cells: pd.DataFrame) -> str:
    """Such as " on adult and taxi"; nothing where these are all the data sets of the cells."""
    named = sorted(set(datasets))
    return "" if named == sorted(cells["dataset"].unique()) else f" on {listed(named)}"


def listed(words: Sequence[str]) -> str:
    """Such as "adult, fire and taxi"."""
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))


def shortened(text: str, most: int) -> str:
    """The sentences, in their order, that fit into so many characters, and where the others are, if there are any: what
    these say of privacy (`PRIVACY`) is named.

    >>> shortened("One. A longer sentence, which is too long (Fig. 1). Two.", 42)
    'One. Two. Further notes: dpbench report.'
    >>> shortened("One. Non-private inputs: the levels of all attributes. Two.", 42)
    'One. Two. Further notes (non-private inputs): dpbench report.'
    >>> shortened("One. Two.", 42)
    'One. Two.'
    """
    if len(text) <= most:
        return text
    kept, named, left = [], [], most - len(FURTHER.format(""))
    for sentence in SENTENCES.split(text):
        if len(sentence) < left:
            kept.append(sentence)
            left -= len(sentence) + 1
        else:
            named += [what for start, what in PRIVACY.items() if sentence.startswith(start)]
    kept = kept or [textwrap.shorten(text, left, placeholder=" ...")]
    return " ".join([*kept, FURTHER.format(f" ({listed(named)})" if named else "")])


def as_text(sentences: Iterable[str]) -> str:
    """The footnotes in one paragraph, "" for none."""
    return " ".join(f"{sentence.rstrip('.')}." for sentence in sentences if sentence)
