import numpy as np
import pandas as pd
import pytest

from dpbench.errors import UserError
from dpbench.report.kinds import draw_figure

from ..made_up import drawing

FITS = [
    {"degree": degree, "construction": name} for degree in (2, 4) for name in ("interpolation", "series")
]  # fmt: skip
SPEC = {"name": "fits", "kind": "polynomial", "title": "Fits", "radius": 6, "fits": FITS}


def test_curves_and_largest_errors_are_those_of_the_printed_range():
    figure, drawn = drawing(draw_figure(pd.DataFrame(), {}, SPEC))
    np.testing.assert_allclose(drawn["phi"], -np.log1p(np.exp(-drawn["s"])))
    r = 6 * np.cos(np.pi / 6)  # an interpolation of degree 2 meets phi at 0 and at +-r
    by_hand = -np.log(2) + drawn["s"] / 2 - np.log(np.cosh(r / 2)) * (drawn["s"] / r) ** 2
    np.testing.assert_allclose(drawn["degree 2, interpolation"], by_hand, atol=1e-12)
    inside = drawn[drawn["s"].abs() <= 6 + 1e-9]
    reported = " ".join(text.get_text() for text in figure.legends[0].get_texts()).replace("\n", " ")
    for fit in FITS:
        name = f"degree {fit['degree']}, {fit['construction']}"
        assert f"{name}: largest error {(inside[name] - inside['phi']).abs().max():.3f}" in reported
    assert inside["s"].iloc[[0, -1]].round(9).tolist() == [-6, 6] and drawn["s"].iloc[-1] == 8


def test_the_numbers_of_the_paper_are_shown_with_ours_and_its_own_polynomial_is_drawn():
    fits = [{"degree": 4, "construction": "bernstein", "iterations": 9}, {"degree": 4, "construction": "minimax"}]
    rows = [{"degree": 4, "construction": "minimax", "error": 0.061, "coefficients": [-0.71, 0.5, -0.1096, 0, 0.0015]}]
    spec = {
        **SPEC,
        "radius": 5,
        "distances": True,
        "fits": [*fits, fits[1] | {"as_published": True}],
        "published": {"rows": rows},
    }
    figure, drawn = drawing(draw_figure(pd.DataFrame(), {}, spec))
    reported = " ".join(text.get_text() for text in figure.legends[0].get_texts()).replace("\n", " ")
    assert "degree 4, Bernstein iterated 9 times: largest error 0.057 degree" in reported
    assert "degree 4, minimax: largest error 0.020 (paper: 0.061)" in reported
    assert "degree 4, minimax, as published: largest error 0.062 (paper: 0.061)" in reported
    np.testing.assert_allclose(drawn["degree 4, minimax, as published"][1200], -0.71)  # at s = 0
    distances = figure.axes[1]
    inside = drawn["s"].abs() <= 5 * (1 + 1e-12)
    shown = distances.lines[0].get_ydata()
    np.testing.assert_allclose(shown, (drawn["phi"] - drawn["degree 4, Bernstein iterated 9 times"])[inside][::4])


def test_an_unknown_construction_or_kind_lists_the_known_ones():
    with pytest.raises(UserError, match="interpolation"):
        draw_figure(pd.DataFrame(), {}, SPEC | {"fits": [{"degree": 2, "construction": "taylor"}]})
    with pytest.raises(UserError, match="did you mean 'polynomial'"):
        draw_figure(pd.DataFrame(), {}, SPEC | {"kind": "polynom"})


def test_a_fit_as_published_of_which_nothing_is_published_is_refused():
    with pytest.raises(UserError, match="degree 2, series is to be drawn as published, and nothing is published of it"):
        draw_figure(pd.DataFrame(), {}, SPEC | {"fits": [FITS[1] | {"as_published": True}]})
