"""Numbers and names as a reader sees them: plain, Markdown and LaTeX."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from itertools import chain, zip_longest
from typing import Any

import pandas as pd

_POWERS = {"^2": "²", "^3": "³"}
_NUMBER = re.compile(r"(?<![\w.])\d+(?:,\d{3})*(?:\.\d+)?(?:e[+-]?\d+)?(?!\w)")
_FORMULA = frozenset("=+-@\t\r")  # first characters of a formula in a spreadsheet
_PLAIN_NUMBER = re.compile(r"[-+]?(\d[\d.]*(e[-+]?\d+)?|inf)?", re.IGNORECASE)
_LATEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"$<$",
    ">": r"$>$",
    "|": r"$|$",
    "±": r"$\pm$",
    "²": r"$^2$",
    "³": r"$^3$",
    "ε": r"$\varepsilon$",
    "δ": r"$\delta$",
    "θ": r"$\theta$",
    "μ": r"$\mu$",
    "∞": r"$\infty$",
    "·": r"$\cdot$",
}


def csv_text(table: pd.DataFrame) -> str:
    """The table as CSV. Twelve significant digits of a number: those after them depend on the processor.

    >>> csv_text(pd.DataFrame({"x": [0.1 + 0.2], "n": [3]}))
    'x,n\\n0.3,3\\n'
    """
    return plain_cells(table).to_csv(index=False, lineterminator="\n", float_format="%.12g")


def plain_cells(table: pd.DataFrame) -> pd.DataFrame:
    """The table with an apostrophe before texts that a spreadsheet would take for a formula, and run.

    >>> plain_cells(pd.DataFrame({"a": ["=1+1", "-2", "b"]}))["a"].tolist()
    ["'=1+1", '-2', 'b']
    """
    found = table.copy(deep=False)
    for name in table.columns:
        if pd.api.types.is_string_dtype(table[name].dtype):
            changed = {cell: plain for cell in table[name].unique() if (plain := _plain(cell)) is not cell}
            found[name] = table[name].replace(changed) if changed else table[name]
    return found.rename(columns=_plain)


def _plain(cell: Any) -> Any:
    return f"'{cell}" if isinstance(cell, str) and _is_formula(cell) else cell


def _is_formula(text: str) -> bool:
    signs = not any(map(str.isalnum, text))  # such as - or ?, which nothing can run
    return text[:1] in _FORMULA and not signs and not _PLAIN_NUMBER.fullmatch(text)


def from_plain(text: str) -> str:
    """A text of `plain_cells` as it was.

    >>> from_plain("'=1+1"), from_plain("'tis"), from_plain("-2")
    ('=1+1', "'tis", '-2')
    """
    return text[1:] if text[:1] == "'" and _is_formula(text[1:]) else text


def number(value: float) -> str:
    """Up to six significant digits, "inf" for infinity.

    >>> number(0.05), number(50000), number(float("inf"))
    ('0.05', '50000', 'inf')
    """
    return format(value, ".6g")


def span(values: Iterable[float], digits: int = 3) -> str:
    """One number, or the smallest and the largest, to this many digits; nothing for none.

    >>> span([0.4801, 16.02]), span([200, 200]), span([])
    ('0.48 to 16', '200', '')
    """
    found = list(values)
    ends = [number(float(f"{value:.{digits}g}")) for value in (min(found), max(found))] if found else []
    return " to ".join(dict.fromkeys(ends))


def in_ranges(sentences: Iterable[str]) -> list[str]:
    """The sentences; those that differ only in their numbers become one, with the range of each number.

    >>> in_ranges(["495 rows of 8 columns", "the levels", "1,474 rows of 8 columns"])
    ['495 to 1,474 rows of 8 columns', 'the levels']
    """
    alike: dict[tuple[str, ...], list[list[str]]] = {}
    for sentence in sentences:
        words = _NUMBER.split(sentence)
        alike.setdefault(tuple(words), []).append(_NUMBER.findall(sentence))
    merged = []
    for between, numbers in alike.items():
        each = (sorted(set(some), key=lambda one: float(one.replace(",", ""))) for some in zip(*numbers, strict=True))
        ranges = (" to ".join(dict.fromkeys((some[0], some[-1]))) for some in each)
        merged.append("".join(chain(*zip_longest(between, ranges, fillvalue=""))))
    return merged


def mean_and_error(mean: float, se: float) -> str:
    """The mean to the second digit of its standard error; four digits where the error is 0 or unknown (NaN).

    >>> mean_and_error(0.081234, 0.00112), mean_and_error(1234.5, 56.7)
    ('0.0812 ± 0.0011', '1234 ± 57')
    >>> mean_and_error(0.0812345, float("nan"))
    '0.08123'
    >>> mean_and_error(12345678.0, 34567.0), mean_and_error(-0.00001, 0.0018)
    ('(1.2346 ± 0.0035)e+07', '0.0000 ± 0.0018')
    """
    if math.isnan(mean):
        return "no value"
    size = max(abs(mean), 0.0 if math.isnan(se) else se)
    if not 1e-4 <= size < 1e6 and size > 0:
        power = math.floor(math.log10(size))
        scaled = _fixed(mean / 10.0**power, se / 10.0**power)
        return f"({scaled})e{power:+03d}" if "±" in scaled else f"{scaled}e{power:+03d}"
    return _fixed(mean, se)


def _fixed(mean: float, se: float) -> str:
    """Both numbers with the same decimals, at most seven significant digits of the larger one."""
    size = max(abs(mean), 0.0 if math.isnan(se) else se)
    leading = math.floor(math.log10(size)) if size > 0 else 0
    if math.isnan(se) or se == 0:
        decimals = max(0, 3 - leading)
    else:
        decimals = max(0, min(1 - math.floor(math.log10(se)), 6 - leading))
    mean = round(mean, decimals) + 0.0  # of -0.0 the sign is dropped
    if math.isnan(se):
        return f"{mean:.{decimals}f}"
    return f"{mean:.{decimals}f} ± {'0' if se == 0 else format(se, f'.{decimals}f')}"


def powers(text: str) -> str:
    """Plain "^2" and "^3" as raised digits: "scaled target^2" -> "scaled target²"."""
    for plain, raised in _POWERS.items():
        text = text.replace(plain, raised)
    return text


def latex(text: str) -> str:
    r"""The text with LaTeX's special characters escaped.

    >>> print(latex("DD_SSP & 5%"))
    DD\_SSP \& 5\%
    """
    return "".join(_LATEX.get(character, character) for character in text)


def markdown(text: str) -> str:
    """The text, escaped for a cell of a Markdown table."""
    escaped = "".join(f"\\{character}" if character in "\\|*_`[]<>" else character for character in text)
    return escaped.replace("\n", " ")


def aligned(columns: Iterable[Sequence[str]]) -> str:
    """Columns of text side by side, two spaces between them."""
    padded = [[cell.ljust(max(map(len, column))) for cell in column] for column in columns]
    return "\n".join("  ".join(row).rstrip() for row in zip(*padded, strict=True))


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table of plain text.

    >>> print(markdown_table(["a", "b"], [["1", "x|y"]]))
    | a | b |
    | --- | --- |
    | 1 | x\\|y |
    """
    lines = [[markdown(cell) for cell in row] for row in (header, *rows)]
    lines.insert(1, ["---"] * len(header))
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
