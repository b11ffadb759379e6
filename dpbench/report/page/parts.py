"""One figure as the page needs it, kept in a file instead of those that `dpbench figures` writes."""

from __future__ import annotations

import base64
import io
import json
from dataclasses import asdict, dataclass
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure
from PIL import Image

from dpbench.files import Json, write_file
from dpbench.report.figures.style import style
from dpbench.report.page.charts import chart_of
from dpbench.report.page.legends import Look, looks_of
from dpbench.report.text import csv_text

WIDTH, COLOURS = 1000, 64  # of a picture: pixels, and colours, which make it sharper and smaller than a lossy one
EFFORT = 60  # of WebP to make it small


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
    chart: Json | None


def save_part(figure: Figure, drawn: pd.DataFrame, folder: Path, name: str) -> list[Path]:
    """Write `name`.json into `folder`; its path."""
    looks, chart = looks_of(figure), chart_of(figure, drawn)
    with style():
        dpi = WIDTH / figure.get_figwidth()
        picture = _picture(figure, dpi)
    width, height = (round(dpi * inches) for inches in figure.get_size_inches())
    first = figure.axes[0]
    labels = [" ".join(label.split()) for label in (first.get_xlabel(), first.get_ylabel())]
    part = Part(
        base64.b64encode(picture).decode(),
        (width, height),
        [axes.get_title() for axes in figure.axes if len(figure.axes) > 1],
        [label for label in labels if label],
        " ".join(figure.get_supxlabel().split()),
        csv_text(drawn),
        list(looks.items()),
        chart,
    )
    return [write_file(folder / f"{name}.json", json.dumps(asdict(part)))]


def _picture(figure: Figure, dpi: float) -> bytes:
    drawn, file = io.BytesIO(), io.BytesIO()
    figure.savefig(drawn, format="png", dpi=dpi, pil_kwargs={"compress_level": 1})
    few = Image.open(drawn).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
    few.convert("RGB").save(file, format="webp", lossless=True, quality=EFFORT, method=6)
    return file.getvalue()


def read_part(path: Path) -> Part:
    """What `save_part` wrote."""
    data = json.loads(path.read_text())
    data["legend"] = [(label, Look(*look)) for label, look in data["legend"]]
    return Part(**data)
