"""Series look in a chart as in the figure."""

from dpbench.report.figures.style import COLOURS
from dpbench.report.page.charts import looks_of

from ..made_up import draw, make_grid


def test_series_look_as_in_the_figure():
    looks = looks_of(draw(make_grid())[0])
    assert list(looks)[:3] == ["public", "SSP (tight)", "SSP (paper)"]
    assert looks["public"].colour == COLOURS["black"] and not looks["public"].marker
    tight, paper = looks["AdaSSP (tight)"], looks["AdaSSP (paper)"]
    assert tight.colour == paper.colour == tight.fill and paper.fill == "#ffffff"
    assert not tight.dashes and paper.dashes and tight.marker == paper.marker
