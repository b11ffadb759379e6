"""Dates as texts: how they are written, and the days that they name. A time of the day, and its zone, are left out."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from dpbench.data.domain import ISO, Floats

if TYPE_CHECKING:
    import pandas as pd

YEAR = "%Y"
FORMATS = {  # likeliest first, of those that one text may have
    ISO: r"\d{4}-\d{1,2}-\d{1,2}",
    "%Y/%m/%d": r"\d{4}/\d{1,2}/\d{1,2}",
    "%Y.%m.%d": r"\d{4}\.\d{1,2}\.\d{1,2}",
    "%d.%m.%Y": r"\d{1,2}\.\d{1,2}\.\d{4}",
    "%d/%m/%Y": r"\d{1,2}/\d{1,2}/\d{4}",
    "%m/%d/%Y": r"\d{1,2}/\d{1,2}/\d{4}",
    "%d-%m-%Y": r"\d{1,2}-\d{1,2}-\d{4}",
    "%m-%d-%Y": r"\d{1,2}-\d{1,2}-\d{4}",
    "%d.%m.%y": r"\d{1,2}\.\d{1,2}\.\d{2}",
    "%d/%m/%y": r"\d{1,2}/\d{1,2}/\d{2}",
    "%m/%d/%y": r"\d{1,2}/\d{1,2}/\d{2}",
    "%d-%m-%y": r"\d{1,2}-\d{1,2}-\d{2}",
    "%d %b %Y": r"\d{1,2} [A-Za-z]{3} \d{4}",
    "%d-%b-%Y": r"\d{1,2}-[A-Za-z]{3}-\d{4}",
    "%d-%b-%y": r"\d{1,2}-[A-Za-z]{3}-\d{2}",
    "%d %B %Y": r"\d{1,2} [A-Za-z]+ \d{4}",
    "%b %d, %Y": r"[A-Za-z]{3} \d{1,2}, \d{4}",
    "%B %d, %Y": r"[A-Za-z]+ \d{1,2}, \d{4}",
    "%Y-%m": r"\d{4}-\d{2}",
    "%Y/%m": r"\d{4}/\d{2}",
    "%m/%Y": r"\d{1,2}/\d{4}",
    "%b %Y": r"[A-Za-z]{3} \d{4}",
    "%b-%y": r"[A-Za-z]{3}-\d{2}",
}
COMPACT = {"%Y%m%d": r"(?:19|20)\d{6}", YEAR: r"(?:19|20)\d{2}"}  # are whole numbers, too
TIME = r"[T ]\s*\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?\s*(?:[AaPp]\.?[Mm]\.?)?\s*(?:Z|UTC|GMT|[+-]\d{2}:?(?:\d{2})?)?"


def formats_of(texts: pd.Series[Any], *, compact: bool = False) -> list[str]:
    """The formats that read all of these texts, without a time of the day, likeliest first; `compact`: 20241231 too.

    >>> import pandas as pd
    >>> formats_of(pd.Series(["01/02/2024 13:15"])), formats_of(pd.Series(["01/13/2024"]))
    (['%d/%m/%Y', '%m/%d/%Y'], ['%m/%d/%Y'])
    """
    known = {**FORMATS, **(COMPACT if compact else {})}
    first = re.sub(rf"{TIME}$", "", str(texts.iloc[0]).strip()).strip() if len(texts) else ""
    if not (likely := [(form, pattern) for form, pattern in known.items() if re.fullmatch(pattern, first)]):
        return []
    days = without_time(texts.drop_duplicates())
    fit = (form for form, pattern in likely if days.str.fullmatch(pattern).all())
    return [form for form in fit if not np.isnan(days_of(days, form)).any()]


def first_formats(texts: pd.Series[Any]) -> list[str]:
    """The likeliest format of each text by itself; an empty one for what is no date.

    >>> import pandas as pd
    >>> first_formats(pd.Series(["01/02/2024 13:15", "01/13/2024", "01/32/2024"]))
    ['%d/%m/%Y', '%m/%d/%Y', '']
    """
    days, found = without_time(texts), np.full(len(texts), "", dtype=object)
    for form, pattern in FORMATS.items():
        likely = (found == "") & days.str.fullmatch(pattern).to_numpy(dtype=bool)
        if likely.any():
            found[likely] = np.where(np.isnan(days_of(days[likely], form)), "", form)
    return [str(form) for form in found]


def without_time(texts: pd.Series[Any]) -> pd.Series[Any]:
    """The texts without a time of the day at their end."""
    return texts.str.strip().str.replace(rf"{TIME}$", "", regex=True).str.strip()


def days_of(column: pd.Series[Any], form: str) -> Floats:
    """The days since 1970 (n,) of dates in this format, or of times, or such numbers; NaN for what is none.

    The day is the one that is written: that of its own time zone.
    """
    import pandas as pd

    if pd.api.types.is_numeric_dtype(column):
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    if pd.api.types.is_datetime64_any_dtype(column):
        parsed = column.dt.tz_localize(None)
    else:
        texts = column.map(str).str.strip()
        timed = any(code in form for code in ("%H", "%I"))
        parsed = pd.to_datetime(texts if timed else without_time(texts), format=form, errors="coerce", utc=True)
        parsed = parsed.dt.tz_localize(None)
    days = (parsed - pd.Timestamp(0)) / pd.Timedelta(days=1)
    found: Floats = np.floor(days.to_numpy(dtype=np.float64, na_value=np.nan))
    return found
