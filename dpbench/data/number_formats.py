"""Numbers as people write them: the unit that each has, and the setting that reads the others."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

UNIT_SIGNS = "$€£¥%"  # that a number may have with it, where its declared unit has them
LONGEST_UNIT = 5
SPACE = "[ \u00a0\u202f\u2009]"
APART = r"[\d\s.,+\-\u2212()'\u2019]"  # what is of a number
# Settings, and how numbers are written: a part that needs the setting, and others.
WRITTEN = {
    "dataset.thousands=comma": (r"\d{1,3}(,\d{2,3})*,\d{3}(\.\d+)?", r"\d*(\.\d+)?"),
    "dataset.decimal=comma": (r"\d*,\d+", r"\d+"),
    "dataset.thousands=space": (rf"\d{{1,3}}({SPACE}\d{{3}})+(\.\d+)?", r"\d*(\.\d+)?"),
    "dataset.thousands=apostrophe": (r"\d{1,3}(['\u2019]\d{3})+(\.\d+)?", r"\d*(\.\d+)?"),
    "dataset.decimal=comma dataset.thousands=point": (r"\d{1,3}(\.\d{3})+(,\d+)?", r"\d*(,\d+)?"),
    "dataset.decimal=comma dataset.thousands=space": (rf"\d{{1,3}}({SPACE}\d{{3}})+,\d+", r"\d*(,\d+)?"),
    "dataset.decimal=comma dataset.thousands=apostrophe": (r"\d{1,3}(['\u2019]\d{3})+,\d+", r"\d*(,\d+)?"),
}
# Texts that often stand for a missing value, in small letters, and numbers that do.
ABSENT = frozenset({
    "?", ".", "..", "…", "-", "--", "---", "*", "–", "—", "x", "k.a.", "n.a.", "n.v.", "unbekannt", "unknown",
    "missing", "(missing)", "(blank)", "blank", "nodata", "tbd", "#div/0!", "#value!", "#ref!", "#name?", "#num!",
    "-1", "-9", "-99", "-999", "-9999", "9", "99", "999", "9999", "no data", "not available", "not applicable",
    "keine angabe",
})  # fmt: skip


def unit_of(texts: pd.Series[Any]) -> str:
    """The unit that each of these texts has with its number; empty if there is none.

    >>> import pandas as pd
    >>> [unit_of(pd.Series(one)) for one in (["$5", "-$1,000"], ["5 kg", "7.1 kg"], ["USD 5"], ["P1"], ["about 5"])]
    ['$', 'kg', 'USD', '', '']
    """
    first = re.sub(APART, "", str(texts.iloc[0])) if len(texts) else ""
    if not 0 < len(first) <= LONGEST_UNIT:
        return ""
    sign, apart = re.escape(first), "" if first in UNIT_SIGNS or len(first) > 1 else r"\s"
    minus = r"\s*[(+\-\u2212]?\s*"
    front = rf"(?:{sign}\s*{minus})?" if first in UNIT_SIGNS else rf"(?:{sign}\s+{minus})?" if first.isupper() else ""
    form = rf"{minus}{front}\.?\d{APART}*(?:{apart}\s*{sign})?{APART}*"
    return first if texts.str.contains(sign).all() and texts.str.fullmatch(form).all() else ""


def setting_of(texts: pd.Series[Any], unit: str = "") -> str:
    """The setting that reads these texts as numbers; empty if none does.

    >>> import pandas as pd
    >>> print(setting_of(pd.Series(["1.234,50 €", "7,00 €"]), "€"))
    dataset.decimal=comma dataset.thousands=point
    >>> print(setting_of(pd.Series(["1,234", "999"])))
    dataset.thousands=comma (or dataset.decimal=comma, if that is its decimal sign)
    """
    plain = texts.str.replace(unit, "", regex=False) if unit else texts
    plain = plain.str.strip().str.replace(r"^[(+\-\u2212]\s*|\s*[)-]$", "", regex=True).str.strip()
    fit = [
        setting
        for setting, (needs, other) in WRITTEN.items()
        if plain.str.fullmatch(needs).any() and plain.str.fullmatch(f"(?:{needs})|(?:{other})").all()
    ]
    if fit[:2] == ["dataset.thousands=comma", "dataset.decimal=comma"]:
        return f"{fit[0]} (or {fit[1]}, if that is its decimal sign)"
    return fit[0] if fit else ""
