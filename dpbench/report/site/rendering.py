"""Templates, links between pages, and small pictures of numbers."""

from __future__ import annotations

import html
import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
import pandas as pd

from dpbench.files import write_file
from dpbench.report.picture.looks import COLOURS
from dpbench.report.picture.render_vega import CONFIG
from dpbench.report.text import mean_and_error, number

TEMPLATES = Path(__file__).parent / "templates"
WIDTH, HEIGHT, MARK = 96, 14, 3  # pixels of a bar and of its mark, as in site.css
SERIES = [COLOURS[name] for name in ("blue", "vermillion", "green", "purple", "sky", "orange")]  # of the epsilons
STEP = 9  # pixels of a point's row in a chart


@dataclass
class Site:
    """The pages as they are written into `folder`, each once: `pages`."""

    folder: Path
    pages: list[str] = field(default_factory=list)

    def write(self, page: str, text: str) -> None:
        """One page in Markdown, such as methods/aim.md."""
        write_file(self.folder / page, text.rstrip() + "\n")
        self.pages.append(page)

    def render(self, page: str, template: str, **values: Any) -> None:
        """A page from a template, which has `link` for addresses relative to it."""
        self.write(page, environment().get_template(template).render(link=lambda to: link(page, to), **values))


def link(page: str, to: str) -> str:
    """The address of another page of the site, relative to this one, as HTML needs it.

    >>> link("methods/aim.md", "boards/arena/adult.md#aim-1")
    '../boards/arena/adult.html#aim-1'
    """
    path, _, anchor = to.partition("#")
    path = path.removesuffix(".md") + ".html" if path.endswith(".md") else path
    relative = os.path.relpath(path, os.path.dirname(page) or ".") if path else ""
    return relative + (f"#{anchor}" if anchor else "")


@cache
def environment() -> jinja2.Environment:
    """The templates of this folder."""
    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    made.filters |= {"number": _number, "score": score, "digits": digits}
    made.globals |= {"math": math}
    return made


def _number(value: float) -> str:
    return "" if pd.isna(value) else number(value)


def digits(value: float, count: int = 3) -> str:
    """A number to this many digits; nothing for NaN."""
    return "" if pd.isna(value) else number(float(f"{value:.{count}g}"))


def score(cell: Mapping[Any, Any]) -> str:
    """The mean of a cell and its standard error, as every table has them."""
    return mean_and_error(cell["mean"], cell["se"]) if cell["count"] else "no value"


@dataclass(frozen=True)
class Scale:
    """The axis of the bars in a table: from `low` to `high`, by logarithms or not."""

    low: float
    high: float
    log: bool = False

    def at(self, value: float) -> float:
        """The place of a value, in pixels; one outside of the axis is at its end."""
        ends = [self.low, self.high, max(value, self.low)]
        low, high, here = [math.log(one) for one in ends] if self.log else ends
        return MARK + (WIDTH - 2 * MARK) * min((here - low) / (high - low), 1.0)

    def bar(self, low: float, value: float, high: float) -> str:
        """A mark with its interval, as a picture; nothing for NaN."""
        if pd.isna(value):
            return ""
        first, middle, last = (f"{self.at(value if pd.isna(one) else one):.0f}" for one in (low, value, high))
        return f'<svg class="bar" aria-hidden="true"><path d="M{first} 7H{last}"/><circle cx="{middle}"/></svg>'


def chart(rows: pd.DataFrame, x: str, low: str, high: str, title: str, *, log: bool = False) -> str:
    """A chart of Vega-Lite as JSON, its numbers included: one row per series, with a point and its interval for each
    epsilon, as `x`, `low` and `high` have them.
    """
    rows = rows.assign(epsilon=[number(value) for value in rows["epsilon"]])
    shown = rows[rows[x].notna() & ((rows[x] > 0) | (not log))]
    epsilons = sorted(set(shown["epsilon"]), key=float)
    names = list(shown.groupby("series")[x].mean().sort_values(kind="stable").index)
    scale: dict[str, Any] = {"type": "log"} if log else {"zero": False}
    colour = {
        "field": "epsilon",
        "type": "nominal",
        "title": "ε",
        "scale": {"domain": epsilons, "range": SERIES},
        "legend": {"orient": "top"},
    }
    y = {"field": "series", "type": "nominal", "sort": names, "title": None, "axis": {"labelLimit": 180}}
    shared = {"y": y, "yOffset": {"field": "epsilon", "type": "nominal", "sort": epsilons}, "color": colour}
    at = {"type": "quantitative", "title": title, "scale": scale, "axis": {"labelOverlap": True}}
    texts = [{"field": name, "type": "nominal"} for name in ("series", "epsilon")]
    tip = [*texts, *({"field": name, "type": "quantitative", "format": ".4~g"} for name in (x, low, high))]
    bar = {**shared, "x": {**at, "field": low}, "x2": {"field": high}}
    kept = f"isValid(datum.{low}) && isValid(datum.{high})" + (f" && datum.{low} > 0" if log else "")
    spec = {
        "width": "container",
        "height": STEP * (len(epsilons) + 1) * len(names),
        "config": CONFIG,
        "data": {"values": _records(shown[["series", "epsilon", x, low, high]])},
        "layer": [
            {"transform": [{"filter": kept}], "mark": {"type": "rule", "clip": True}, "encoding": bar},
            {
                "mark": {"type": "point", "filled": True, "size": 35, "opacity": 1},
                "encoding": {**shared, "x": {**at, "field": x}, "tooltip": tip},
            },
        ],
    }
    return json.dumps(spec, ensure_ascii=False, separators=(",", ":")).replace("</", "<\\/")


def _records(rows: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows as JSON has them, numbers to five digits."""

    def value(one: Any) -> Any:
        return one if isinstance(one, str) else None if not math.isfinite(one) else float(f"{one:.5g}")

    return [{str(name): value(one) for name, one in row.items()} for row in rows.to_dict("records")]


def code(text: str, language: str = "") -> str:
    """A block of code in Markdown.

    >>> print(code("a", "sh"))
    ```sh
    a
    ```
    """
    return f"```{language}\n{text.strip()}\n```"


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table of cells that may hold Markdown."""
    lines = [header, ["---"] * len(header), *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def plain(text: str) -> str:
    """Text that Markdown shows as it is."""
    return html.escape(text, quote=False)
