"""Figures for an article: their width, their letters, and what is in the caption in place of the figure."""

import re
import warnings

import pytest
from matplotlib.text import Text

from dpbench.errors import UserError
from dpbench.report.frames.frame import trial_frame
from dpbench.report.kinds import draw_figure
from dpbench.report.picture.save import article_figure, check_width, save_for_article

from ..made_up import LABELS, SPEC, make_trial


def picture_of(datasets):
    stored = [
        make_trial(mechanism, repetition=place, mse=0.1 + 0.01 * place, dataset=name, epsilon=epsilon)
        for name in datasets
        for mechanism in ("ssp", "adassp")
        for epsilon in (0.1, 1.0)
        for place in range(2)
    ]
    return draw_figure(trial_frame(stored), LABELS, SPEC, "A note on the data.")


def saved(picture, folder, width):
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a layout that collapsed warns
        pdf, caption = save_for_article(picture, folder, "mse", width)
    box = re.search(rb"/MediaBox \[ ?0 0 ([\d.]+) ([\d.]+)", pdf.read_bytes())
    return float(box[1]) / 72, float(box[2]) / 72, caption.read_text()


@pytest.mark.parametrize(("width", "rows"), [(3.4, 4), (7.0, 2)])
def test_it_is_as_wide_as_a_column_and_its_letters_have_one_size(tmp_path, width, rows):
    picture = picture_of(["adult", "fire", "taxi", "law"])
    wide, high, caption = saved(picture, tmp_path, width)
    figure = article_figure(picture, width)
    assert wide == pytest.approx(width, abs=0.01) and high > 1.2 * rows
    assert len({axes.get_subplotspec().get_gridspec().nrows for axes in figure.axes} | {rows}) == 1
    assert {text.get_fontsize() for text in figure.findobj(Text) if text.get_text()} == {8.0}
    assert caption.startswith("Linear regression on Adult\n\n") and "A note on the data." in caption


def test_the_title_and_the_note_are_in_the_caption_alone(tmp_path):
    picture = picture_of(["adult"])
    _, _, caption = saved(picture, tmp_path, 3.4)
    figure = article_figure(picture, 3.4)
    shown = " ".join(text.get_text() for text in figure.findobj(Text))
    assert "Linear regression on Adult" in caption and "Linear regression" not in shown
    assert "A note on the data." not in shown
    assert {"SSP", "AdaSSP"} <= {text.get_text() for text in figure.legends[0].get_texts()}


@pytest.mark.parametrize("width", [0.0, 1.0, 86.0, float("nan")])
def test_a_width_in_other_units_is_refused(width):
    with pytest.raises(UserError, match=r"--width is in inches, .* 3.4 for one column"):
        check_width(width)
