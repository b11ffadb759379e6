"""The footnotes of a figure: what was run, and all cautions for a reader."""

import math
from dataclasses import replace

import pytest

from dpbench.config import compose, declared_rows
from dpbench.report.export_file import Exported, load_export, write_export
from dpbench.report.footnotes import as_text, footnotes, sweep_footnotes
from dpbench.report.frames.frame import trial_frame
from dpbench.report.frames.results import Results, frame_of
from dpbench.report.frames.series import series_of

from .made_up import LABELS, draw, footnote, make_grid, make_trial


def reported(trials, make=footnotes, **changes):
    """The footnotes of the rows of one metric."""
    frame = trial_frame(trials)
    rows = frame[frame["metric"] == "mse"]
    return make(rows, series_of(frame, LABELS), **changes)


def test_footnote_reports_data_failures_overspending_and_notes():
    text = footnote(draw(make_grid(), notes="limits: smoke")[0])
    assert "adult: up to 50,000 training and 1,000 test rows. δ = 1e-05." in text
    assert "5 repetitions" in text
    assert "DD-SSP 2 of 5 at ε = 2" in text
    assert "Spent ε exceeds the target ε: SSP (paper) 0.08 at ε = 0.05" in text
    assert "limits: smoke" in text


def test_footnote_names_the_data_set_where_they_differ():
    trials = [make_trial(status="failed"), make_trial(dataset="taxi", status="failed")]
    assert "(failed, no estimate or not finite): SSP 1 of 1 at ε = 0.1." in footnote(draw(trials)[0])
    text = footnote(draw([*trials, make_trial("adassp", status="oom"), make_trial("adassp", dataset="taxi")])[0])
    assert "AdaSSP 1 of 1 at ε = 0.1 on adult." in text


def test_footnote_reports_nonprivate_inputs():
    used = replace(make_trial("adassp", epsilon=1.0), nonprivate_inputs=("bounds",))
    assert "Non-private inputs: bounds (AdaSSP)" in reported([make_trial(epsilon=0.1), used])


def test_a_semicolon_does_not_divide_an_input():
    equal = "3 of 9 public rows equal a private row; 2 of 9 private rows equal another one"
    used = replace(make_trial("adassp"), nonprivate_inputs=(equal,))
    assert f"Non-private inputs: {equal} (AdaSSP)" in reported([make_trial(), used])


def test_footnote_groups_data_sets_and_what_was_taken_from_them():
    trials = [make_trial(), make_trial("adassp"), replace(make_trial(dataset="taxi"), nonprivate_inputs=("bounds",))]
    trials += [replace(make_trial("adassp", dataset="taxi"), nonprivate_inputs=("bounds", "settings"))]
    trials += [make_trial(repetition=1), make_trial(epsilon=1.0)]
    text = footnote(draw(trials)[0])
    assert "Each data set: up to 50,000 training" in text
    assert "1 to 2 repetitions (adult) and 1 repetition (taxi)" in text
    assert "Non-private inputs: bounds (every private method on taxi); settings (AdaSSP on taxi)" in text


def test_inputs_that_differ_in_their_numbers_alone_are_one_with_their_range():
    counts = (("ssp", 495), ("ssp", 1474), ("ssp", 508), ("adassp", 495))
    trials = [
        replace(make_trial(name, repetition=k), nonprivate_inputs=(f"{count:,} of 3,000 public rows",))
        for k, (name, count) in enumerate(counts)
    ]
    inputs = "Non-private inputs: 495 to 1,474 of 3,000 public rows (SSP); 495 of 3,000 public rows (AdaSSP)"
    assert inputs in reported(trials)


def test_nothing_is_reported_of_what_did_not_happen():
    trials = [make_trial(repetition=place) for place in range(2)]
    assert reported(trials) == [
        "adult: up to 50,000 training and 1,000 test rows", "δ = 1e-05", "Neighbours: add/remove",
        "Mean ± standard error of 2 repetitions",
    ]  # fmt: skip
    assert reported(trials, notes="limits: smoke")[-1] == "limits: smoke"


def test_without_a_private_method_there_is_no_delta_and_no_neighbour():
    said = reported([make_trial("exact", epsilon=math.inf)])
    assert said == ["adult: up to 50,000 training and 1,000 test rows", "1 repetition"]


@pytest.mark.parametrize(("spent", "over"), [(0.1, False), (0.10009, False), (0.1002, True)])
def test_overspending_is_reported_beyond_the_rounding_of_accountants(spent, over):
    said = as_text(reported([make_trial(spent=spent)]))
    assert ("Spent ε exceeds the target ε: SSP 0.1 at ε = 0.1." in said) == over


def test_a_sweep_reports_ranges_in_place_of_lists_and_counts_what_is_lost():
    trials = [make_trial(rows=n, delta=1 / n, epsilon=3.0, spent=3.0) for n in (100, 1000)]
    trials += [make_trial(calibration="paper", rows=n, delta=1 / n, epsilon=3.0, spent=6.0) for n in (100, 1000)]
    trials += [
        make_trial(
            "aim", "linear_marginals", 3.0, place, rows=100, delta=0.01, status="no_estimate" if place else "done"
        )
        for place in range(3)
    ]
    assert reported(trials, sweep_footnotes) == [
        "No value (failed, no estimate or not finite): DD-SSP 2 of 3",
        "Spent ε exceeds the target ε: SSP (paper) by up to 2 times",
        "100 to 1,000 training rows at most, 1,000 test rows",
        "ε = 3, δ = 0.001 to 0.01",
        "1 to 3 repetitions",  # of a method on a data set
    ]


def test_a_sweep_counts_scores_that_are_not_finite_as_lost():
    trials = [make_trial(repetition=place, mse=None if place else 0.1) for place in range(3)]
    assert "No value (failed, no estimate or not finite): SSP 2 of 3" in reported(trials, sweep_footnotes)


def test_sentences_become_one_paragraph():
    assert as_text(["One", "", "Two."]) == "One. Two." and as_text([]) == ""


def test_footnotes_say_that_a_mechanism_saw_the_rows_of_its_test():
    trials = [make_trial(), make_trial(dataset="taxi", protocol="authors")]
    assert "adult: up to 50,000 training and 1,000 test rows" in reported(trials)
    leaked = "1,000 test rows, which the mechanism used too (protocol: authors)"
    assert f"taxi: up to 50,000 training and {leaked}" in reported(trials)
    assert f"50,000 training rows at most, 1,000 test rows or {leaked}" in reported(trials, sweep_footnotes)


def test_footnotes_say_that_errors_over_one_split_hold_the_noise_alone():
    trials = [make_trial(), make_trial(dataset="taxi", fixed=True)]
    shared = "1,000 test rows, one split for all repetitions, so that the errors reflect the noise alone (split: fixed)"
    assert {"adult: up to 50,000 training and 1,000 test rows", f"taxi: up to 50,000 training and {shared}"} <= set(
        reported(trials)
    )


ENDED = "Integer programmes stopped by their time limit, with the best solution so far"


@pytest.mark.parametrize("recorded", [{}, {"unfinished": 0}, {"unfinished": "text of a plug-in"}])
def test_nothing_is_said_of_integer_programmes_that_were_not_ended(recorded):
    trials = [make_trial(notes={"rank": 3, **recorded})]
    assert ENDED not in as_text([*reported(trials), *reported(trials, sweep_footnotes)])


def test_footnotes_count_the_integer_programmes_that_were_ended():
    trials = [make_trial(repetition=place, notes={"unfinished": place}) for place in range(4)]
    trials += [make_trial(epsilon=1.0), make_trial("adassp", notes={"unfinished": 7})]
    trials += [make_trial("adassp", dataset="taxi")]
    said = f"{ENDED}: SSP 6 in 3 of 4 trials at ε = 0.1 on adult; AdaSSP 7 in 1 of 1 trials at ε = 0.1 on adult"
    assert said in reported(trials)
    assert f"{ENDED}: SSP 6 in 3 of 5 trials, AdaSSP 7 in 1 of 2 trials" in reported(trials, sweep_footnotes)


def test_an_export_keeps_what_its_footnotes_say_of_integer_programmes(tmp_path):
    trials = [
        make_trial(repetition=place, notes={"rank": 3} | ({"unfinished": 2} if place else {})) for place in range(2)
    ]
    trials += [make_trial("adassp", notes={"rank": place}, repetition=place) for place in range(2)]
    cells = load_export(write_export(trials, tmp_path))
    exported = Exported([(cell, range(cell.count)) for cell in cells])
    assert reported(exported) == reported(trials)
    assert f"{ENDED}: SSP 2 in 1 of 2 trials at ε = 0.1" in reported(exported)


def test_the_training_rows_are_those_that_there_are_after_the_test_rows():
    experiment = compose(["experiment=quickstart", "dataset=adult_synth", "sample.train_rows=50000"])
    frame = frame_of([Results(experiment, [make_trial(dataset="adult_synth")])], {})
    rows = declared_rows(experiment.dataset) - 1000
    assert frame["training_rows"].unique() == [rows]
    assert f"{rows:,} training rows at most" in as_text(sweep_footnotes(frame, series_of(frame, {})))
