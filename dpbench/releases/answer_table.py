"""What a release answers to queries, as a file has it: a row for each cell of each marginal."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from dpbench.data.domain import Attribute, Clique, Domain, Floats

if TYPE_CHECKING:
    import pandas as pd


def answer_table(domain: Domain, counts: Mapping[Clique, Floats]) -> pd.DataFrame:
    """The counts of marginals, each of the shape of its clique, as rows: `attribute_1`, `value_1` and so on, `count`.

    A value is a level, a number, or for a bin "16 to 23", its lower end and its upper end, which is in the next bin; it
    is empty if it is missing. A marginal of fewer attributes than others leaves the last columns empty.
    """
    import pandas as pd

    widest, values = max(map(len, counts), default=0), {one.name: value_texts(one) for one in domain.attributes}
    parts = []
    for clique, table in counts.items():
        columns: dict[str, object] = {}
        for k, (name, places) in enumerate(zip(clique, np.indices(table.shape), strict=True), 1):
            columns |= {f"attribute_{k}": name, f"value_{k}": np.array(values[name], dtype=object)[places.ravel()]}
        parts.append(pd.DataFrame({**columns, "count": table.ravel()}))
    names = [f"{what}_{k + 1}" for k in range(widest) for what in ("attribute", "value")]
    return pd.concat(parts, ignore_index=True).reindex(columns=[*names, "count"])


def value_texts(attribute: Attribute) -> list[str]:
    """What each code of an attribute means.

    >>> value_texts(Attribute.binned("age", 20, 40, 2)), value_texts(Attribute.discrete("grade", [1, 2]))
    (['20 to 30', '30 to 40'], ['1', '2'])
    """
    if not attribute.numeric:
        return list(attribute.levels)
    if attribute.discrete_values:
        found = [attribute.text(value) for value in attribute.values]
    else:
        ends = [attribute.text(edge) for edge in attribute.edges]
        found = [f"{low} to {high}" for low, high in pairwise(ends)]
    return [*found, ""] if attribute.missing else found
