"""One figure or table of a report, of whatever kind; the kinds are configs of the groups `figure` and `table`."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd
from matplotlib.figure import Figure

from dpbench.config.reports import kind_of
from dpbench.config.specs import PublishedTable, Spec
from dpbench.contracts import TextTable
from dpbench.errors import ContractError
from dpbench.report.picture.own_figure import own_picture
from dpbench.report.picture.picture import Picture, title_of


def is_table(spec: Spec) -> bool:
    """Whether the spec asks for a table."""
    return kind_of(spec).group == "table"


def draw_figure(frame: pd.DataFrame, labels: Mapping[str, str], spec: Spec, notes: str = "") -> Picture:
    """The figure of `spec`, by its `kind` ("metric_by_epsilon" if left out).

    Raises `UserError` for an unknown kind, `ContractError` for a kind that returns anything else.
    """
    kind = kind_of(spec)
    made = kind.function(frame, labels, spec, notes)
    if isinstance(made, Picture):
        return made
    if isinstance(made, tuple) and len(made) == 2 and isinstance(made[0], Figure) and isinstance(made[1], pd.DataFrame):
        return own_picture(*made, title_of(spec), notes)
    raise ContractError(
        f"figure {kind.name} must return a Picture, or a matplotlib Figure and a DataFrame of the data drawn, not "
        f"{type(made).__name__}"
    )


def make_table(frame: pd.DataFrame, labels: Mapping[str, str], spec: Spec, published: PublishedTable) -> TextTable:
    """The table of `spec`, with the paper's numbers.

    Raises `UserError` for an unknown kind, `ContractError` for a kind that returns no `TextTable`.
    """
    kind = kind_of(spec)
    table = kind.function(frame, labels, spec, published)
    if not isinstance(table, TextTable):
        raise ContractError(f"table {kind.name} must return a TextTable, not {type(table).__name__}")
    return table
