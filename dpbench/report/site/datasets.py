"""A page for each data set, and the list of all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dpbench.config.catalogue import catalogue
from dpbench.config.composition import filled_in, merged
from dpbench.data.dataset import Dataset
from dpbench.data.load import card
from dpbench.errors import UserError
from dpbench.report.site.boards import Board
from dpbench.report.site.rendering import Site


def datasets_of() -> dict[str, Dataset]:
    """Every data set that can be described without a file of the user's, by the name of its config."""
    found = {}
    for entry in catalogue("dataset"):
        try:
            dataset = Dataset.of(filled_in(merged([], config_name=f"dataset/{entry.name}"), {})["dataset"])
            if dataset.domain.names:
                found[entry.name] = dataset
        except UserError:  # of the user's own: its file and its domain are not named yet
            continue
    return found


def write_datasets(site: Site, datasets: Mapping[str, Dataset], boards: Sequence[Board]) -> None:
    """Write the page of each data set, and the list."""
    rows = []
    for name, dataset in datasets.items():
        own = [board for board in boards if dataset.name in board.datasets]
        rows.append((name, dataset, own))
        best = [(board, _best(board, dataset.name)) for board in own]
        site.render(f"tables/{name}.md", "dataset.md.j2", name=name, dataset=dataset, card=card(dataset), best=best)
    site.render("tables/index.md", "datasets.md.j2", rows=rows)


def _best(board: Board, dataset: str) -> list[tuple[float, list[dict[Any, Any]]]]:
    """By epsilon, the methods of the first three ranks on a table."""
    cells = board.private[(board.private["dataset"] == dataset) & (board.private["count"] > 0)]
    return [
        (float(str(epsilon)), rows.sort_values("rank", kind="stable").head(3).to_dict("records"))
        for epsilon, rows in cells.groupby("epsilon")
    ]
