"""The page of a synthetic table's quality, and the frame behind it."""

from __future__ import annotations

import math
from pathlib import Path

from dpbench.files import write_file
from dpbench.metrics.quality import SCORES, UNPROTECTED, Quality, QualityScore
from dpbench.report.page.compressed import template
from dpbench.report.text import csv_text

NAME = "quality"
PAIRS = 20  # shown at most


def write_quality(quality: Quality, title: str, command: str, folder: Path) -> list[Path]:
    """Write quality.csv, a row for each score, and quality.html, one file that loads nothing, into `folder`."""
    text = template("quality.html.j2").render(
        title=title,
        command=command,
        quality=quality,
        unprotected=UNPROTECTED,
        whole=_whole(quality),
        attributes=_attributes(quality),
        pairs=[[", ".join(one.of), *map(_text, _both(one))] for one in _farthest(quality, "two_way")[:PAIRS]],
    )
    return [
        write_file(folder / f"{NAME}.csv", csv_text(quality.frame())),
        write_file(folder / f"{NAME}.html", text.lstrip()),
    ]


def _whole(quality: Quality) -> list[list[str]]:
    """The scores of the whole table, each with its group."""
    rows = []
    for one in quality.scores:
        if not one.of:
            about = SCORES[one.score]
            best = "" if math.isnan(about.best) else f"{about.best:g}"
            rows.append([one.score, about.group, *map(_text, _both(one)), best, about.text])
    return rows


def _attributes(quality: Quality) -> list[list[str]]:
    """Each attribute with its distance, the mean of its pairs and its levels, the farthest first."""
    levels = {one.of: one for one in quality.scores if one.score == "levels_covered"}
    pairs = [one for one in quality.scores if one.score == "two_way" and one.of]
    rows = []
    for one in _farthest(quality, "one_way"):
        own = [pair for pair in pairs if one.of[0] in pair.of]
        means = [sum(values) / len(own) for values in zip(*map(_both, own), strict=True)] or [math.nan, math.nan]
        rows.append([one.of[0], *map(_text, (*_both(one), *means, *_both(levels[one.of])))])
    return rows


def _farthest(quality: Quality, score: str) -> list[QualityScore]:
    """The parts of a score, the largest first."""
    return sorted((one for one in quality.scores if one.score == score and one.of), key=lambda one: -one.value)


def _both(one: QualityScore) -> tuple[float, float]:
    return one.value, one.bootstrap


def _text(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.4f}"
