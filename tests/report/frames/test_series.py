import pytest

from dpbench.errors import UserError
from dpbench.report.frames.frame import trial_frame
from dpbench.report.frames.series import mark_series, of_calibrations, ordered, series_of, shown

from ..made_up import LABELS, make_trial


def frame_of(*trials):
    return trial_frame(trials)


def test_series_stand_in_the_order_of_the_labels_with_those_without_a_label_last():
    frame = frame_of(make_trial("zz"), make_trial("aim", "linear_rows"), make_trial("ssp"))
    assert [one.label for one in series_of(frame, LABELS)] == ["SSP", "AIM-Synth", "zz / linear_statistics"]


def test_the_calibration_is_in_the_label_where_there_are_several_or_it_is_the_papers():
    both = frame_of(make_trial(calibration="tight"), make_trial(calibration="paper"))
    assert [(one.label, one.place) for one in series_of(both, LABELS)] == [("SSP (tight)", 0), ("SSP (paper)", 1)]
    assert [one.label for one in series_of(frame_of(make_trial(calibration="tight")), LABELS)] == ["SSP"]
    assert [one.label for one in series_of(frame_of(make_trial(calibration="paper")), LABELS)] == ["SSP (paper)"]


def test_a_report_shows_the_methods_it_names_and_says_which_are_absent():
    frame = frame_of(make_trial("ssp"), make_trial("adassp"))
    rows, absent = shown(frame, LABELS, ["AdaSSP", "DD-SSP"])
    assert (set(rows["mechanism"]), absent) == ({"adassp"}, ["DD-SSP"])
    assert shown(frame, LABELS, None)[1] == []


def test_labels_are_put_in_the_order_that_is_asked_for():
    assert list(ordered(LABELS, ["DD-SSP", "SSP"]).values())[:2] == ["DD-SSP", "SSP"]
    with pytest.raises(UserError, match=r"AdaSPP.*AdaSSP"):
        ordered(LABELS, ["AdaSPP"])


def test_rows_are_marked_with_the_label_of_their_series():
    frame = frame_of(make_trial("ssp"), make_trial("adassp"))
    marked = mark_series(frame, series_of(frame, LABELS))
    assert dict(zip(marked["mechanism"], marked["series"], strict=True)) == {"ssp": "SSP", "adassp": "AdaSSP"}


def test_of_a_mechanism_with_the_calibrations_asked_for_no_other_one_is_drawn():
    trials = [make_trial(calibration=name) for name in ("tight", "paper", "authors")]
    frame = frame_of(*trials, make_trial("adassp", calibration="tight"), make_trial("exact"))
    kept = of_calibrations(frame, ["paper", "authors"])
    pairs = set(zip(kept["mechanism"], kept["calibration"], strict=True))
    assert pairs == {("ssp", "paper"), ("ssp", "authors"), ("adassp", "tight"), ("exact", "")}
