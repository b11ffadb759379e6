"""Pages on the papers, the gallery of figures, and the versions of the protocol."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpbench.config import Paper, choices
from dpbench.config.registry import read_yaml
from dpbench.config.specs import Spec
from dpbench.grid import golden
from dpbench.report.export_file import Cell
from dpbench.report.site.boards import Board
from dpbench.report.site.documents import Checkout
from dpbench.report.site.rendering import Site

FOLDERS = ("figures", "tables")  # of the results of a paper
OTHERS = {  # the tables of a paper that no figure's name stands for
    "claims": "The claims of the paper",
    "statements": "The verdicts on the claims, by their number",
    "protocol": "The settings of the paper and ours",
    "datasets": "The data sets of the paper and ours",
    "runtimes": "The run times that the paper states, and ours",
}


@dataclass(frozen=True)
class Drawn:
    """A figure or table of a paper: what is committed of it, by the kind of file."""

    name: str
    title: str
    experiments: Sequence[str]
    picture: str | None
    numbers: Sequence[str]


def write_papers(site: Site, checkout: Checkout, papers: Sequence[Paper], boards: Sequence[Board]) -> None:
    """Write the page of each paper, and the gallery of the pictures that are committed."""
    gallery = []
    for paper in papers:
        page, drawn = f"papers/{paper.name}.md", list(_drawn(checkout, paper))
        gallery.append((paper, [one for one in drawn if one.picture]))
        site.render(
            page,
            "paper.md.j2",
            paper=paper,
            opening=_opening(checkout, paper.name, page),
            boards=[board for board in boards if board.paper.name == paper.name],
            drawn=drawn,
            manifest=manifest(checkout.root, paper)["experiments"],
            manifest_file=checkout.address(f"results/{paper.name}/manifest.json"),
        )
    site.render("gallery.md", "gallery.md.j2", gallery=[(paper, drawn) for paper, drawn in gallery if drawn])


def manifest(root: Path, paper: Paper) -> dict[str, Any]:
    """Where the results of a paper come from."""
    found: dict[str, Any] = json.loads((root / "results" / paper.name / "manifest.json").read_text(encoding="utf-8"))
    return found


def _opening(checkout: Checkout, name: str, page: str) -> str:
    """What the page of the docs on a paper says first: its first table and findings."""
    text = checkout.text(f"docs/{name}.md", page)
    return re.split(r"^## ", text, maxsplit=1, flags=re.MULTILINE)[0].strip()


def _drawn(checkout: Checkout, paper: Paper) -> Sequence[Drawn]:
    folder, found = checkout.root / "results" / paper.name, []
    specs: dict[str, Spec] = {str(spec["name"]): spec for spec in paper.report["figures"]}
    every = {path.stem for kind in FOLDERS for path in (folder / kind).glob("*.csv")}
    for name in [*specs, *sorted(every - set(specs))]:
        spec = specs.get(name, Spec())
        paths = [f"results/{paper.name}/{kind}/{name}" for kind in FOLDERS]
        numbers = [path for one in paths if (path := checkout.address(f"{one}.csv"))]
        picture = checkout.address(f"results/{paper.name}/figures/{name}.png")
        title = str(spec.get("title") or OTHERS.get(name) or name.replace("_", " "))
        found.append(Drawn(name, title, spec.get("experiments") or [], picture, numbers))
    return [one for one in found if one.picture or one.numbers]


def write_protocol(site: Site, checkout: Checkout, boards: Sequence[Board], exported: Sequence[Cell]) -> None:
    """Write the page on the protocols of the leaderboards, and on the versions of code behind the results."""
    known = choices("experiment")
    papers = {name: board.paper for board in boards for name in board.spec["experiments"]}
    texts = {name: known[name].read_text(encoding="utf-8") for name in papers}
    run = {name: manifest(checkout.root, paper)["experiments"].get(name) for name, paper in papers.items()}
    protocols = [
        (name, read_yaml(known[name]).get("protocol"), paper, texts[name], run[name])
        for name, paper in papers.items()
        if run[name]
    ]
    site.render("protocol.md", "protocol.md.j2", protocols=protocols, versions=_versions(exported))


def _versions(exported: Sequence[Cell]) -> list[tuple[str, int | None, Mapping[str, int]]]:
    """Each mechanism, its version today, and how many stored trials each of its versions made."""
    found: dict[str, Counter[str]] = {}
    for cell in exported:
        part = cell.key.release.mechanism
        found.setdefault(part.name, Counter())[str(part.version)] += cell.count
    today = {name: len(one.versions) for name, one in golden.stored().items()}
    return [(name, today.get(f"mechanism/{name}"), dict(sorted(made.items()))) for name, made in sorted(found.items())]
