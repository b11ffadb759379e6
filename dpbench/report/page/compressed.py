"""Text of a page, packed by gzip as base64, which a browser unpacks without a network; and the page's templates."""

from __future__ import annotations

import base64
import gzip
import json
import math
from functools import cache
from pathlib import Path
from typing import Any

import jinja2

GZIP = "data:application/gzip;base64,"


def packed(text: str) -> str:
    """The text, by gzip and base64: the same text always gives the same result."""
    return base64.b64encode(gzip.compress(text.encode(), 9, mtime=0)).decode()


def packed_json(value: Any) -> str:
    """The value as JSON, packed."""
    return packed(json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False))


def address(content: str) -> str:
    """The address that downloads packed text, as a file <name>.gz."""
    return f"{GZIP}{content}"


def rounded(value: float | None, digits: int) -> float | str | None:
    """The number with this many significant digits, or its name where JSON has none.

    >>> rounded(0.123456, 3), rounded(2500.0, 5), rounded(float("nan"), 3), rounded(None, 3)
    (0.123, 2500, 'nan', None)
    """
    if value is None or not math.isfinite(value):
        return None if value is None else str(value)
    short = float(f"{value:.{digits}g}")
    return int(short) if short.is_integer() and abs(short) < 1e15 else short


@cache
def template(name: str) -> jinja2.Template:
    """A template of this folder, which may include its styles and its script."""
    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    return made.get_template(name)
