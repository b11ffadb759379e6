"""The pictures of the pages on concepts: `python -m dpbench.report.site.concepts` draws them into docs/concepts.

They are SVG of a few boxes, arrows and bars, and show numbers of the committed results or of the code where they have
any.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

from dpbench.files import write_file
from dpbench.privacy.accounting import gaussian_mu, spent
from dpbench.privacy.events import Gaussian
from dpbench.privacy.ledger import Ledger
from dpbench.privacy.sensitivity import of_marginal
from dpbench.report.picture.looks import COLOURS
from dpbench.report.text import number

FOLDER, WIDTH, LINE = "docs/concepts", 640, 17  # pixels of a line of text
PALE, GREY = "#eef2f9", COLOURS["grey"]
BLUE, RED, GREEN = (COLOURS[name] for name in ("blue", "vermillion", "green"))


@dataclass
class Sketch:
    """A picture as it is drawn: `height` in pixels."""

    title: str
    height: int
    parts: list[str] = field(default_factory=list)

    def text(self, x: float, y: float, text: str, anchor: str = "middle", colour: str = "#222") -> None:
        """A line of text, whose middle is at y."""
        self.parts.append(f'<text x="{x:g}" y="{y + 4:g}" text-anchor="{anchor}" fill="{colour}">{escape(text)}</text>')

    def rectangle(self, x: float, y: float, width: float, height: float, fill: str, edge: str = "none") -> None:
        """A filled one."""
        shape = f'x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}"'
        self.parts.append(f'<rect {shape} fill="{fill}" stroke="{edge}"/>')

    def box(self, x: float, y: float, width: float, *lines: str, edge: str = BLUE) -> None:
        """Lines of text in a frame, whose upper left corner is at (x, y)."""
        self.rectangle(x, y, width, LINE * len(lines) + 14, PALE, edge)
        for place, line in enumerate(lines):
            self.text(x + width / 2, y + 7 + LINE * (place + 0.5), line)

    def arrow(self, x: float, y: float, to_x: float, to_y: float, colour: str = GREY) -> None:
        """From a point to another."""
        angle = math.atan2(to_y - y, to_x - x)
        ends = [(to_x - 9 * math.cos(angle + turn), to_y - 9 * math.sin(angle + turn)) for turn in (0.4, -0.4)]
        head = " ".join(f"L{one:.1f} {two:.1f}" for one, two in ends)
        path = f"M{x:g} {y:g}L{to_x:g} {to_y:g}M{to_x:g} {to_y:g}{head}Z"
        self.parts.append(f'<path d="{path}" stroke="{colour}" fill="{colour}" stroke-width="1.5"/>')

    def rule(self, x: float, y: float, to_x: float, to_y: float, colour: str = RED) -> None:
        """A dashed line."""
        line = f'x1="{x:g}" y1="{y:g}" x2="{to_x:g}" y2="{to_y:g}"'
        self.parts.append(f'<line {line} stroke="{colour}" stroke-width="1.5" stroke-dasharray="5 4"/>')

    def svg(self) -> str:
        """The file."""
        size = f'viewBox="0 0 {WIDTH} {self.height}" width="{WIDTH}" height="{self.height}"'
        head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" font-family="sans-serif" font-size="13">'
        white = f'<rect width="{WIDTH}" height="{self.height}" fill="#fff"/>'
        return "\n".join([head, f"<title>{escape(self.title)}</title>", white, *self.parts, "</svg>\n"])


def ledger(root: Path) -> Sketch:
    """What a mechanism draws is recorded, and the cost follows from the record."""
    made = Sketch("Each draw of noise adds an event to the ledger, of which an accountant computes the cost", 190)
    events = [Gaussian("X'X", 2.0, math.sqrt(2) / gaussian_mu(1.0, 1e-5))] * 2
    made.box(10, 20, 130, "mechanism", "(train, budget, rng)")
    made.arrow(140, 44, 200, 44)
    made.text(170, 30, "noise")
    made.box(200, 20, 110, "privacy.noise", "draws, records")
    made.arrow(310, 44, 365, 44)
    made.text(337, 30, "event")
    said = [f"gaussian, sensitivity 2, multiplier {number(round(one.multiplier, 2))}" for one in events]
    made.box(365, 20, 270, "ledger", *said)
    made.arrow(500, 85, 500, 125)
    made.box(
        370,
        125,
        260,
        f"accountant: spent epsilon = {spent(Ledger(events), 1e-5).epsilon:.4g} of 1",
        "at delta = 1e-5",
        edge=GREEN,
    )
    made.arrow(370, 149, 310, 149)
    made.box(150, 125, 160, "stored, if spent", "is at most the budget", edge=GREEN)
    return made


def filters(root: Path) -> Sketch:
    """Rounds with growing costs, and the one that a filter refuses."""
    made, costs = Sketch("A filter refuses the draw whose cost would exceed the limit", 190), [1, 1, 2, 2, 4, 4, 4]
    limit, scale, total = 16, 8, 0
    for place, cost in enumerate(costs):
        refused = total + cost > limit
        made.rectangle(60 + 70 * place, 160 - scale * total - scale * cost, 46, scale * cost, RED if refused else BLUE)
        made.rectangle(60 + 70 * place, 160 - scale * total, 46, scale * total, PALE)
        made.text(83 + 70 * place, 174, f"round {place + 1}")
        total += cost * (not refused)
    made.rule(50, 160 - scale * limit, 560, 160 - scale * limit)
    made.text(566, 160 - scale * limit, "limit", "start", RED)
    made.text(566, 160 - scale * (limit + 1) - 8, "refused", "start", RED)
    made.text(10, 12, "sum of the costs so far (mu² or rho)", "start")
    return made


def relation(root: Path) -> Sketch:
    """Neighbours under the two relations, and how far they move the counts of a marginal."""
    made = Sketch("Neighbouring tables under add_remove and replace", 200)
    for left, name, other, fill in ((20, "add_remove", 4, None), (340, "replace", 5, RED)):
        made.text(left + 140, 14, name)
        for column, (count, at) in enumerate(((5, 0), (other, 170))):
            made.text(left + at + 55, 34, ("a table", "a neighbour")[column])
            for row in range(count):
                changed = fill if column and row == 4 else BLUE
                made.rectangle(left + at, 46 + 20 * row, 110, 15, str(changed))
        made.arrow(left + 116, 96, left + 164, 96)
        l1, l2 = of_marginal(name)
        made.text(left + 140, 164, "n is private" if fill is None else "n is public")
        made.text(left + 140, 184, f"counts move by {number(l1)} (l1), {number(round(l2, 3))} (l2)")
    return made


def calibrations(root: Path) -> Sketch:
    """What AdaSSP spends of epsilon 1 under each calibration, by the committed results."""
    with (root / "results/dd_ssp/figures/adassp_lead.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["panel"] == "adult" and row["x"] == "1"]
    spent = {row["calibration"]: float(row["spent_epsilon_max"]) for row in rows if row["mechanism"] == "adassp"}
    made = Sketch("What AdaSSP spends of epsilon = 1 on Adult under each calibration", 160)
    for place, name in enumerate(("tight", "paper", "authors")):
        made.text(90, 50 + 36 * place, name, "end")
        made.rectangle(100, 38 + 36 * place, 420 * spent[name], 24, BLUE if name == "tight" else COLOURS["sky"])
        made.text(106 + 420 * spent[name], 50 + 36 * place, f"{spent[name]:.3g}", "start")
    made.rule(520, 24, 520, 146)
    made.text(520, 12, "asked: epsilon = 1", colour=RED)
    return made


def splits(root: Path) -> Sketch:
    """A coin for each record: a record more moves no other."""
    made = Sketch("A secret coin for each record decides whether it is for testing", 210)
    for top, name, rows in ((20, "a table", "abcde"), (115, "with one record more", "abxcde")):
        made.text(10, top, name, "start")
        for place, row in enumerate(rows):
            test = row in "bd"
            edge = GREEN if row == "x" else RED if test else BLUE
            made.box(10 + 100 * place, top + 14, 90, f"record {row}", "test" if test else "train", edge=edge)
    made.text(10, 200, "All others keep their coin: the training tables differ by at most this one record", "start")
    return made


def seeds(root: Path) -> Sketch:
    """What each generator depends on."""
    made = Sketch("What the split, the noise and the draws of a model depend on", 200)
    sources = (("data, seed,", "repetition"), ("settings of", "the release"), ("settings of", "the trial"))
    for place, (lines, axis) in enumerate(zip(sources, ("split", "noise", "draws of a model"), strict=True)):
        made.box(190 + 150 * place, 20, 130, *lines)
        made.arrow(255 + 150 * place, 68, 255 + 150 * place, 130)
        made.box(190 + 150 * place, 130, 130, axis, "generator", edge=GREEN)
    made.box(10, 75, 130, "secret salt", "(your tables alone)", edge=RED)
    made.arrow(140, 99, 190, 140, RED)
    made.arrow(140, 99, 338, 135, RED)
    return made


def identity(root: Path) -> Sketch:
    """What an identity is a digest of, and what it leaves out."""
    made = Sketch("An identity is a digest of what was asked, and of versions", 200)
    kept = ("checksums and domain of the data", "split, seed, repetition", "mechanism, parameters, version", "budget")
    made.box(10, 20, 250, *kept)
    made.arrow(260, 61, 310, 61)
    made.text(285, 47, "sha256")
    made.box(310, 40, 110, "release", "16 hex digits", edge=GREEN)
    made.arrow(420, 61, 480, 61)
    made.text(450, 47, "sha256")
    made.box(480, 40, 150, "trial", "16 hex digits", edge=GREEN)
    made.box(480, 130, 150, "model, metrics,", "design, versions")
    made.arrow(555, 130, 555, 90)
    made.box(
        10, 130, 410, "not in it: paths, host, time, workers, messages, comments", "results of other parts", edge=RED
    )
    return made


PICTURES: tuple[Callable[[Path], Sketch], ...] = (ledger, filters, relation, calibrations, splits, seeds, identity)


def draw(root: Path, folder: Path) -> list[Path]:
    """Draw all pictures for the checkout `root` into the folder; their paths."""
    return [write_file(folder / f"{one.__name__}.svg", one(root).svg()) for one in PICTURES]


if __name__ == "__main__":
    for path in draw(Path.cwd(), Path(FOLDER)):
        print(path)
