"""The logistic log-likelihood and polynomials near it (DD-SSP, Figure 2; excess risk, Figure 1). It needs no trials."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import cycle

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dpbench.config.specs import Fit, Spec
from dpbench.data.domain import Floats
from dpbench.errors import UserError
from dpbench.report.figures.style import (
    COLOURS,
    LINES,
    REFERENCE_COLOUR,
    LineStyle,
    add_footnote,
    add_legend,
    empty_figure,
    style,
)

BEYOND = 4 / 3  # range of the axis, as a multiple of the radius: the polynomial is not a fit outside it
POINTS = 2401  # an odd number, so that 0 is among them


def polynomial(
    frame: pd.DataFrame, labels: Mapping[str, str], spec: Spec, notes: str = ""
) -> tuple[Figure, pd.DataFrame]:
    """Draw phi(s) = -log(1 + exp(-s)) and its fits over [-`radius`, `radius`]; `frame` and `labels` are not used.

    `spec` has name, title, radius and fits: [{degree, construction, iterations}] (see `models.polynomials`). The legend
    gives the largest distance |phi - fit| within the radius; with `distances`, a second panel shows phi - fit there.
    The paper's numbers (`published`) are rows of a fit, its `error` and perhaps its `coefficients`; a fit with
    `as_published` uses these. Returns the figure and the curves, one row per point.
    """
    from dpbench.models.logistic import phi

    radius = float(spec["radius"])
    s = np.linspace(-BEYOND * radius, BEYOND * radius, POINTS)
    inside = np.abs(s) <= radius * (1 + 1e-12)
    curves: dict[str, np.ndarray] = {"s": s, "phi": phi(s)}
    with style():
        figure, (axes, *below) = empty_figure(2 if spec.get("distances") else 1)
        axes.plot(s, curves["phi"], color=REFERENCE_COLOUR, linewidth=2.0, label="φ(s) = −log(1 + exp(−s))")
        for place, (fit, colour) in enumerate(zip(spec["fits"], cycle(COLOURS.values()), strict=False), start=1):
            paper = _published(fit, spec)
            name, b = _fitted(fit, radius, paper)
            curves[name] = np.polynomial.polynomial.polyval(s, b)
            distance = (curves["phi"] - curves[name])[inside]
            published_error = f" (paper: {paper['error']:.3f})" if paper else ""
            look: LineStyle = {"color": colour, "linestyle": LINES[place % len(LINES)]}
            label = f"{name}:\nlargest error {np.abs(distance).max():.3f}{published_error}"
            axes.plot(s, curves[name], label=label, **look)
            for one in below:
                one.plot(s[inside], distance, **look)
        _finish(axes, below, radius, curves)
        title = spec.get("title") or spec["name"]
        figure.suptitle(title, x=0.012, ha="left") if below else axes.set_title(title)
        add_legend(figure, [axes], axes.get_legend_handles_labels()[1])
        caption = f"Dashed: ±{radius:g}, the range of the fits and of the largest error |φ − fit|."
        add_footnote(figure, f"{caption} {notes}".rstrip())
    return figure, pd.DataFrame(curves)


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


def _finish(axes: Axes, below: list[Axes], radius: float, curves: Mapping[str, Floats]) -> None:
    """Limits, the ends of the interval, and the axis labels."""
    s = curves["s"]
    low, high = curves["phi"].min(), curves["phi"].max()
    for one in (axes, *below):
        for edge in (-radius, radius):
            one.axvline(edge, color="#777777", linestyle="--", linewidth=0.8)
        one.set(xlim=(s[0], s[-1]), xlabel="s = y ⟨x, θ⟩")
    axes.set(ylim=(low - 0.1 * (high - low), high + 0.25 * (high - low)), ylabel="log-likelihood of a row")
    for one in below:
        one.set(ylabel="φ(s) − fit")
