"""`python -m dpbench.report.site FOLDER`: write the pages, their assets and the settings of mkdocs into the folder.

It runs in the checkout, whose results, docs and README it reads. `make site` then makes HTML of it.
"""

from __future__ import annotations

import sys
from collections.abc import Collection
from pathlib import Path

from dpbench.config import Paper, choices, paper_of
from dpbench.errors import UserError
from dpbench.files import write_file
from dpbench.grid.audits import read_audits
from dpbench.report.export_file import exports_in
from dpbench.report.page.vega import bundle
from dpbench.report.site import hooks
from dpbench.report.site.boards import Board, boards_of, exports_of
from dpbench.report.site.datasets import datasets_of, write_datasets
from dpbench.report.site.documents import DOCS, PAGES, Checkout
from dpbench.report.site.leaderboards import Pages
from dpbench.report.site.methods import write_methods
from dpbench.report.site.papers import write_papers, write_protocol
from dpbench.report.site.reference import write_reference
from dpbench.report.site.rendering import TEMPLATES, Site, environment
from dpbench.report.site.speed import write_speed
from dpbench.report.site.submitted import entries_of, write_submissions
from dpbench.report.submissions import submissions_in

ASSETS = ("site.css", "site.js", "iframe-worker.js")


def write_site(root: Path, folder: Path, ranked: Collection[str] | None = None) -> Site:
    """Write all pages of the checkout `root` into `folder`/pages, with mkdocs.yml next to it.

    `ranked`: the papers whose trials are read, for leaderboards and counts; None for all.
    """
    if not (root / "docs").is_dir() or not (root / "results").is_dir():
        raise UserError(f"{root} has no docs and results: run it in a checkout of the project")
    site = Site(folder / "pages")
    checkout = Checkout(root, site)
    papers = [paper_of(name) for name in choices("paper") if exports_in(root / "results" / name)]
    read = [paper for paper in papers if ranked is None or paper.name in ranked]
    exports = {paper.name: exports_of(paper, root / "results") for paper in read}
    exported = [cell for own in exports.values() for cells in own.values() for cell in cells]
    boards = [board for paper in read for board in boards_of(paper, exports[paper.name])]
    audits, datasets = read_audits(root / "results"), datasets_of()
    submissions = submissions_in(root / "results")
    entries = [one for board in boards for each in submissions for one in entries_of(board, each, datasets, audits)]
    for board in boards:
        Pages(board, datasets, audits).write(site, [one for one in entries if one.board is board])
    write_submissions(site, submissions, entries)
    write_methods(site, checkout, boards, exported, audits)
    write_datasets(site, datasets, boards)
    write_papers(site, checkout, papers, boards)
    write_protocol(site, checkout, boards, exported)
    write_reference(site, checkout)
    write_speed(site, root)
    docs = [path.relative_to(root).as_posix() for folder in DOCS for path in sorted((root / folder).glob("*.md"))]
    for path, page in {**PAGES, **dict(zip(docs, docs, strict=True))}.items():
        site.write(page, checkout.text(path, page))
    _write_rest(site, folder, papers, boards, docs)
    return site


def _write_rest(site: Site, folder: Path, papers: list[Paper], boards: list[Board], docs: list[str]) -> None:
    """The list of leaderboards, the assets, and the settings of mkdocs."""
    site.render("boards/index.md", "boards.md.j2", boards=boards)
    for name in ASSETS:
        write_file(site.folder / "assets" / name, (TEMPLATES / name).read_bytes())
    write_file(site.folder / "assets" / "vega.js", bundle())
    settings = environment().get_template("mkdocs.yml.j2")
    text = settings.render(papers=papers, boards=boards, docs=docs, hooks=str(Path(hooks.__file__)))
    write_file(folder / "mkdocs.yml", text)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(f"{__doc__}")
    made = write_site(Path.cwd(), Path(sys.argv[1]))
    print(f"{len(made.pages)} pages in {made.folder}")
