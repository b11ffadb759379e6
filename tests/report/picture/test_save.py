"""The files of a figure: their bytes depend on nothing but the figure."""

import numpy as np
import pandas as pd
import pytest
from matplotlib import rcParams
from matplotlib.figure import Figure
from PIL import Image, ImageColor

from dpbench.report.picture.canvas import PNG_COLOURS, PNG_DPI
from dpbench.report.picture.looks import COLOURS
from dpbench.report.picture.own_figure import own_picture
from dpbench.report.picture.save import save_figure

from ..made_up import make_grid, picture


def test_the_users_settings_do_not_matter_and_are_left_alone(tmp_path):
    trials = make_grid(repetitions=2)
    before = [path.read_bytes() for path in save_figure(picture(trials), tmp_path / "a", "f", pdf=True)]
    rcParams["font.size"] = 20
    try:
        after = [path.read_bytes() for path in save_figure(picture(trials), tmp_path / "b", "f", pdf=True)]
        assert rcParams["font.size"] == 20
    finally:
        rcParams["font.size"] = 10
    assert before == after


@pytest.mark.parametrize("colour", COLOURS.values())
def test_a_small_point_keeps_its_colour_in_a_png_of_few_colours(tmp_path, colour):
    """Beside many other colours, which are rounded."""
    figure = Figure(figsize=(3, 2))
    axes = figure.add_subplot()
    axes.imshow(np.linspace(0, 1, 3000).reshape(50, 60), cmap="viridis")
    axes.plot([30], [20], "o", color=colour, markersize=4)
    png, _ = save_figure(own_picture(figure, pd.DataFrame(), "", ""), tmp_path, "f")
    pixels = np.asarray(Image.open(png).convert("RGB"))
    inside = np.pi * (4 / 72 * PNG_DPI / 2 - 1) ** 2  # pixels of the point, but for its edge
    assert (pixels == ImageColor.getrgb(colour)).all(axis=2).sum() > inside
    assert len(np.unique(pixels.reshape(-1, 3), axis=0)) <= PNG_COLOURS
