"""The pages that are written by hand, with their links turned into addresses of the site."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from dpbench.files import write_file
from dpbench.report.site.rendering import Site

LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?:|#|mailto:)([^)\s]+)\)")
FENCE = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
PAGES = {"README.md": "index.md", "CONTRIBUTING.md": "docs/contributing.md", "CHANGELOG.md": "docs/changelog.md"}
DOCS = ("docs", "docs/concepts")  # folders of pages
SHOWN = (".png", ".svg", ".csv", ".json", ".md")  # shown by a browser under their own names; others as text


@dataclass(frozen=True)
class Checkout:
    """The files of the project, `root`, of which the site has copies as far as its pages link to them."""

    root: Path
    site: Site

    def text(self, path: str, page: str) -> str:
        """A Markdown file of the project as the text of `page`."""
        parts = FENCE.split((self.root / path).read_text(encoding="utf-8"))
        return "".join(part if part.startswith("```") else self._linked(part, path, page) for part in parts)

    def _linked(self, text: str, path: str, page: str) -> str:
        def replaced(found: re.Match[str]) -> str:
            image, shown, target = found.groups()
            file, _, anchor = target.partition("#")
            to = self.address(os.path.normpath(os.path.join(os.path.dirname(path), file)))
            if to is None:
                return shown if "`" in shown else f"`{shown}`"
            where = os.path.relpath(to, os.path.dirname(page) or ".") + (f"#{anchor}" if anchor else "")
            return f"{image}[{shown}]({where})"

        return LINK.sub(replaced, text)

    def address(self, path: str) -> str | None:
        """The address in the site of a file of the project, which is copied if it is no page; of the results of a paper
        its page; None for other folders, which have none.
        """
        here = self.root / path
        if path in PAGES:
            return PAGES[path]
        if os.path.dirname(path) in DOCS and here.suffix == ".md":
            return path
        if path.startswith("results/") and (here / "manifest.json").is_file():
            return f"papers/{here.name}.md"
        if not here.is_file():
            return None
        to = path if here.suffix in SHOWN else f"{path}.txt"
        to = to if to.startswith("results/") else f"files/{to}"
        if not (self.site.folder / to).exists():
            write_file(self.site.folder / to, here.read_bytes())
        return to
