"""The logistic log-likelihood and polynomials near it (DD-SSP, Figure 2; excess risk, Figure 1). It needs no trials."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import cycle

import numpy as np
import pandas as pd

from dpbench.config.specs import Fit, Spec
from dpbench.data.domain import Floats
from dpbench.errors import UserError
from dpbench.report.picture.looks import COLOURS, DASHED, DASHES, Look
from dpbench.report.picture.picture import Axis, Levels, Panel, Picture, Points, around, titled

BEYOND = 4 / 3  # range of the axis, as a multiple of the radius: the polynomial is not a fit outside it
POINTS = 2401  # an odd number, so that 0 is among them
THIN = 4  # of the points, those that are drawn
PHI = "φ(s) = −log(1 + exp(−s))"


def polynomial(frame: pd.DataFrame, labels: Mapping[str, str], spec: Spec, notes: str = "") -> Picture:
    """phi(s) = -log(1 + exp(-s)) and its fits over [-`radius`, `radius`]; `frame` and `labels` are not used.

    `spec` has name, title, radius and fits: [{degree, construction, iterations}] (see `models.polynomials`). The legend
    gives the largest distance |phi - fit| within the radius; with `distances`, a second panel shows phi - fit there.
    The paper's numbers (`published`) are rows of a fit, its `error` and perhaps its `coefficients`; a fit with
    `as_published` uses these. The data drawn are the curves, one row per point.
    """
    from dpbench.models.logistic import phi

    radius = float(spec["radius"])
    s = np.linspace(-BEYOND * radius, BEYOND * radius, POINTS)
    inside = np.abs(s) <= radius * (1 + 1e-12)
    curves: dict[str, Floats] = {"s": s, "phi": phi(s)}
    looks = {PHI: Look(width=2.0), "_ends": Look(COLOURS["grey"], DASHED, width=0.8)}
    lines, distances = [_curve(PHI, s, curves["phi"])], []
    for place, (fit, colour) in enumerate(zip(spec["fits"], cycle(COLOURS.values()), strict=False), start=1):
        paper = _published(fit, spec)
        name, b = _fitted(fit, radius, paper)
        curves[name] = np.polynomial.polynomial.polyval(s, b).astype(np.float64)
        distance = (curves["phi"] - curves[name])[inside]
        published_error = f" (paper: {paper['error']:.3f})" if paper else ""
        label = f"{name}:\nlargest error {np.abs(distance).max():.3f}{published_error}"
        looks[label] = Look(colour, DASHES[place % len(DASHES)])
        lines.append(_curve(label, s, curves[name]))
        distances.append(_curve(label, s[inside], distance))
    low, high = float(curves["phi"].min()), float(curves["phi"].max())
    limits = low - 0.1 * (high - low), high + 0.25 * (high - low)
    panels = [_panel(pd.concat(lines), "log-likelihood of a row", radius, limits)]
    if spec.get("distances"):
        shown = pd.concat(distances)
        panels.append(_panel(shown, "φ(s) − fit", radius, around(shown["value"])))
    caption = f"Dashed: ±{radius:g}, the range of the fits and of the largest error |φ − fit|."
    return titled(spec, panels, looks, f"{caption} {notes}".rstrip(), [pd.DataFrame(curves)], list(curves))


def _published(fit: Fit, spec: Spec) -> Fit | None:
    """The paper's numbers for this fit, if it has any."""
    published = spec.get("published")
    rows: list[Fit] = published.get("rows", []) if isinstance(published, dict) else []
    return next((row for row in rows if _key(row) == _key(fit)), None)


def _key(fit: Fit) -> tuple[int, str, int]:
    return int(fit["degree"]), str(fit["construction"]), int(fit.get("iterations", 1))


def _fitted(fit: Fit, radius: float, paper: Fit | None) -> tuple[str, Floats]:
    """The name of a fit and its coefficients."""
    from dpbench.models.logistic import phi
    from dpbench.models.polynomials import polynomial_coefficients

    degree, construction, iterations = _key(fit)
    by = "Bernstein" if construction == "bernstein" else construction
    name = f"degree {degree}, {by}" + (f" iterated {iterations} times" if iterations > 1 else "")
    if fit.get("as_published"):
        if paper is None:
            raise UserError(f"the {name} is to be drawn as published, and nothing is published of it")
        return f"{name}, as published", np.array(paper["coefficients"], dtype=np.float64)
    return name, polynomial_coefficients(phi, degree, radius, construction, iterations)


def _curve(label: str, s: Floats, values: Floats) -> pd.DataFrame:
    return pd.DataFrame({"series": label, "s": s[::THIN], "value": values[::THIN]})


def _panel(curves: pd.DataFrame, label: str, radius: float, limits: tuple[float, float]) -> Panel:
    """The curves, and the ends of the interval."""
    x = Axis("s = y ⟨x, θ⟩", (-BEYOND * radius, BEYOND * radius))
    ends = Levels(pd.DataFrame({"series": "_ends", "s": [-radius, radius]}), "s", "x", bars=False)
    return Panel("", x, Axis(label, limits), [Points(curves, "s", "value", bars=None), ends])
