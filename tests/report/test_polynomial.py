import numpy as np
import pandas as pd
import pytest

from dpbench.errors import UserError
from dpbench.report.figures import draw_figure

FITS = [
    {"degree": degree, "construction": name} for degree in (2, 4) for name in ("interpolation", "series")
]  # fmt: skip
SPEC = {"name": "fits", "kind": "polynomial", "title": "Fits", "radius": 6, "fits": FITS}


def test_curves_and_largest_errors_are_those_of_the_printed_range():
    figure, drawn = draw_figure(pd.DataFrame(), {}, SPEC)
    np.testing.assert_allclose(drawn["phi"], -np.log1p(np.exp(-drawn["s"])))
    r = 6 * np.cos(np.pi / 6)  # an interpolation of degree 2 meets phi at 0 and at +-r
    by_hand = -np.log(2) + drawn["s"] / 2 - np.log(np.cosh(r / 2)) * (drawn["s"] / r) ** 2
    np.testing.assert_allclose(drawn["degree 2, interpolation"], by_hand, atol=1e-12)
    inside = drawn[drawn["s"].abs() <= 6 + 1e-9]
    told = " ".join(text.get_text() for text in figure.legends[0].get_texts()).replace("\n", " ")
    for fit in FITS:
        name = f"degree {fit['degree']}, {fit['construction']}"
        assert f"{name}: largest error {(inside[name] - inside['phi']).abs().max():.3f}" in told
    assert inside["s"].iloc[[0, -1]].round(9).tolist() == [-6, 6] and drawn["s"].iloc[-1] == 8


def test_an_unknown_construction_or_kind_lists_the_known_ones():
    with pytest.raises(UserError, match="interpolation"):
        draw_figure(pd.DataFrame(), {}, SPEC | {"fits": [{"degree": 2, "construction": "taylor"}]})
    with pytest.raises(UserError, match="did you mean 'polynomial'"):
        draw_figure(pd.DataFrame(), {}, SPEC | {"kind": "polynom"})
