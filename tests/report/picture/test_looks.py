"""A method looks the same in every figure."""

import pytest

from dpbench.config import choices, paper_of
from dpbench.config.labels import labels, styles
from dpbench.errors import UserError
from dpbench.report.frames.series import Series
from dpbench.report.kinds import is_table
from dpbench.report.picture.looks import COLOURS, MARKERS, line_styles, reference_lines

from ..made_up import draw, lines_of, make_grid, make_trial


def one(name, calibration="", place=0):
    """The series of a method of this label."""
    return Series("m", calibration, "", "n", name, f"{name} {calibration}".strip(), place)


def test_one_colour_a_method_and_one_line_style_a_calibration():
    lines = lines_of(draw(make_grid())[0])
    assert lines["SSP (tight)"].get_color() == lines["SSP (paper)"].get_color() == COLOURS["grey"]
    assert lines["SSP (tight)"].get_linestyle() != lines["SSP (paper)"].get_linestyle()
    assert lines["SSP (paper)"].get_markerfacecolor() == "#ffffff"
    assert lines["DD-SSP"].get_color() != lines["AIM-Synth"].get_color()
    alone = lines_of(draw([make_trial("aim", "linear_marginals")])[0])
    assert alone["DD-SSP"].get_color() == lines["DD-SSP"].get_color()


def test_a_figure_of_another_kind_draws_a_method_alike():
    rows = [make_trial(rows=n, calibration=name) for n in (100, 1000) for name in ("tight", "paper")]
    by_rows = lines_of(draw(rows, kind="metric_by_setting", x="release.split.train_rows")[0])
    by_epsilon = lines_of(draw(make_grid())[0])
    for label in ("SSP (tight)", "SSP (paper)"):
        for look in ("color", "marker", "linestyle", "markerfacecolor"):
            assert getattr(by_rows[label], f"get_{look}")() == getattr(by_epsilon[label], f"get_{look}")()


def test_a_method_that_declares_its_style_has_it_and_no_other_method_takes_it():
    declared = styles()
    assert len(set(declared.values())) == len(declared) and set(declared) <= set(labels().values())
    strangers = line_styles([one(f"stranger {place}") for place in range(20)]).values()
    taken = {(COLOURS[colour], marker) for colour, marker in declared.values()}
    looks = [(style.colour, style.marker) for style in strangers]
    assert len(set(looks)) == 20 and not set(looks) & taken and {marker for _, marker in looks} <= set(MARKERS)
    assert line_styles([one("AIM-Synth")]).items() <= line_styles([*map(one, ("stranger", "AIM-Synth"))]).items()


FIGURES = {
    f"{name}/{spec['name']}": spec["show"]
    for name in choices("paper")
    for spec in paper_of(name).report["figures"]
    if not is_table(spec) and spec.get("show")
}


@pytest.mark.parametrize("figure", sorted(FIGURES))
def test_the_methods_of_a_figure_are_told_apart_by_colour_and_by_marker_and_its_references_by_dashes(figure):
    declared = styles()
    shown = [declared[label] for label in FIGURES[figure] if label in declared]
    methods = [look for look in shown if look[0] != "black"]
    references = [label for label in FIGURES[figure] if declared.get(label, ("",))[0] == "black"]
    if len(methods) < len(COLOURS):
        assert len({colour for colour, _ in methods}) == len({marker for _, marker in methods}) == len(methods), methods
    assert len(set(reference_lines(references))) == len(references), references


def test_a_reference_has_the_same_dashes_in_every_figure_and_others_take_those_left():
    alone, tree = reference_lines(["uniform"]), reference_lines(["Chow-Liu tree"])
    first, second, *more = reference_lines(["uniform", "Chow-Liu tree", "my mean", "my median"])
    assert [first, second] == [*alone, *tree]
    assert len({first, second, *more}) == 4


def test_more_methods_than_colours_and_markers_are_drawn():
    assert len(line_styles([one(f"stranger {place}") for place in range(200)])) == 200


def test_published_constants_are_hollow_also_where_they_stand_alone():
    known = [one("SSP", "tight"), one("SSP", "paper", 1), one("AdaSSP", "paper")]
    tight, paper, alone = line_styles(known).values()
    assert (tight.dashes, tight.fill) == ((), tight.colour)
    assert paper.dashes == alone.dashes != ()
    assert paper.fill == alone.fill == "#ffffff"


def test_an_unknown_colour_is_named_with_its_method(monkeypatch):
    monkeypatch.setattr("dpbench.report.picture.looks.styles", lambda: {"SSP": ("gray", "o")})
    with pytest.raises(UserError, match="unknown colour of SSP 'gray'; did you mean 'grey'"):
        line_styles([one("SSP")])
