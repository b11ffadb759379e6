"""One figure as the page needs it, kept in a file in place of those that `dpbench figures` writes."""

from __future__ import annotations

import base64
import io
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from dpbench.files import write_file
from dpbench.report.figures.style import style
from dpbench.report.page.charts import chart_of
from dpbench.report.page.looks import Look, looks_of
from dpbench.report.text import csv_text

WIDTH, QUALITY = 1000, 60  # pixels and WebP's quality of a picture


@dataclass(frozen=True)
class Part:
    """A picture (WebP in base64) with its `size` and panels' `titles`, the `chart`, the numbers, the footnotes."""

    picture: str
    size: tuple[int, int]
    titles: list[str]
    axes: list[str]
    footnotes: str
    csv: str
    legend: list[tuple[str, Look]]
    chart: dict[str, Any] | None


def save_part(figure: Figure, drawn: pd.DataFrame, folder: Path, name: str) -> list[Path]:
    """Write `name`.json into `folder`; its path."""
    file = io.BytesIO()
    looks, chart = looks_of(figure), chart_of(figure, drawn)
    with style():
        dpi = WIDTH / figure.get_figwidth()
        figure.savefig(file, format="webp", dpi=dpi, pil_kwargs={"quality": QUALITY, "method": 6})
    width, height = (round(dpi * inches) for inches in figure.get_size_inches())
    first = figure.axes[0]
    labels = [" ".join(label.split()) for label in (first.get_xlabel(), first.get_ylabel())]
    part = Part(
        base64.b64encode(file.getvalue()).decode(),
        (width, height),
        [axes.get_title() for axes in figure.axes if len(figure.axes) > 1],
        [label for label in labels if label],
        " ".join(figure.get_supxlabel().split()),
        csv_text(drawn),
        list(looks.items()),
        chart,
    )
    return [write_file(folder / f"{name}.json", json.dumps(asdict(part)))]


def read_part(path: Path) -> Part:
    """What `save_part` wrote."""
    data = json.loads(path.read_text())
    data["legend"] = [(label, Look(*look)) for label, look in data["legend"]]
    return Part(**data)
