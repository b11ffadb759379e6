"""The logistic log-likelihood and its Chebyshev polynomials (paper 0, Figure 2). It needs no trials."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from dpbench.report.style import COLOURS, LINES, REFERENCE_COLOUR, add_footnote, add_legend, empty_figure, style

BEYOND = 4 / 3  # how far the axis goes, as a multiple of the radius: a polynomial says nothing outside of it
POINTS = 2401  # an odd number, so that 0 is among them


def polynomial(
    frame: pd.DataFrame, labels: Mapping[str, str], spec: Mapping[str, Any], notes: str = ""
) -> tuple[Figure, pd.DataFrame]:
    """Draw phi(s) = -log(1 + exp(-s)) and its fits over [-`radius`, `radius`]; `frame` and `labels` are not used.

    `spec` has name, title, radius and fits: [{degree, construction}] (see `models.chebyshev`). The legend tells the
    largest distance |phi - fit| within the radius. Returns the figure and the curves, one row a point.
    """
    from dpbench.models.chebyshev import chebyshev_coefficients
    from dpbench.models.logistic import phi

    radius = float(spec["radius"])
    s = np.linspace(-BEYOND * radius, BEYOND * radius, POINTS)
    inside = np.abs(s) <= radius * (1 + 1e-12)
    curves: dict[str, Any] = {"s": s, "phi": phi(s)}
    with style():
        figure, (axes,) = empty_figure(1)
        axes.plot(s, curves["phi"], color=REFERENCE_COLOUR, linewidth=2.0, label="φ(s) = −log(1 + exp(−s))")
        for place, fit in enumerate(spec["fits"], start=1):
            degree, construction = int(fit["degree"]), str(fit["construction"])
            b = chebyshev_coefficients(phi, degree, radius, construction)
            curve = np.polynomial.polynomial.polyval(s, b)
            curves[f"degree {degree}, {construction}"] = curve
            error = np.abs(curve - curves["phi"])[inside].max()
            look = {"color": COLOURS[place % len(COLOURS)], "linestyle": LINES[place % len(LINES)]}
            axes.plot(s, curve, label=f"degree {degree}, {construction}:\nlargest error {error:.3f}", **look)
        for edge in (-radius, radius):
            axes.axvline(edge, color="#777777", linestyle="--", linewidth=0.8)
        low, high = curves["phi"].min(), curves["phi"].max()
        axes.set(xlim=(s[0], s[-1]), ylim=(low - 0.1 * (high - low), high + 0.25 * (high - low)))
        axes.set(xlabel="s = y ⟨x, θ⟩", ylabel="log-likelihood of a row", title=spec.get("title") or spec["name"])
        add_legend(figure, [axes], axes.get_legend_handles_labels()[1])
        told = f"Dashed: ±{radius:g}, the range of the fits and of the largest error |φ − fit|."
        add_footnote(figure, f"{told} {notes}".rstrip())
    return figure, pd.DataFrame(curves)
