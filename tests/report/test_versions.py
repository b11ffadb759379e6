"""What is reported of methods that several versions of their code made: of those alone that a figure or table shows."""

from dataclasses import replace

import pytest

from dpbench.config import compose
from dpbench.config.reports import OTHER_METRICS
from dpbench.report.build import build_report
from dpbench.report.frames.results import Results, several_versions

from .made_up import LABELS, REPORT, make_trial

METHODS = [("adassp", "linear_statistics"), *(("aim", model) for model in ("linear_rows", *"abcd"))]
MADE = "More than one version of the code made what is shown"


def versions(*mixed, **more):
    """An experiment in which these methods have trials of two versions of their code, the others of one."""
    trials = []
    for method in METHODS:
        for repetition in range(2):
            trial = make_trial(*method, repetition=repetition, calibration="paper", **more)
            key = trial.key
            made = replace(key.release.mechanism, version=str(repetition) if method in mixed else "0")
            key = replace(key, fit=replace(key.fit, release=replace(key.release, mechanism=made)))
            trials.append(replace(trial, id=key.id, key=key))
    experiment = compose(["experiment=quickstart"])
    return Results(replace(experiment, report={**experiment.report, **REPORT}), trials)


@pytest.mark.parametrize(
    ("mixed", "reported"),
    [
        ([], []),
        (METHODS[:2], [f"{MADE} of AIM-Synth (paper); AdaSSP (paper)"]),
        (METHODS[1:], [f"{MADE} of 5 of 6 methods"]),
        (METHODS, [MADE]),
    ],
)
def test_few_methods_are_named_and_many_counted(mixed, reported):
    assert several_versions([versions(*mixed)], dict(reversed(LABELS.items())), {}) == reported


def test_methods_are_named_only_where_they_are_shown():
    one = versions(*METHODS[:2])
    assert several_versions([one], LABELS, {"show": ["AIM-Synth"]}) == [MADE]
    assert several_versions([one], LABELS, {"show": ["DD-SSP"]}) == []
    assert several_versions([one], LABELS, {"epsilon": 7}) == []
    assert several_versions([one], LABELS, {"where": {"release.split.train_rows": 7}}) == []
    assert several_versions([one], LABELS, {"metric": "coverage"}) == []
    for metric in OTHER_METRICS:
        (reported,) = several_versions([one], LABELS, {"metric": metric})
        assert reported == f"{MADE} of AdaSSP (paper); AIM-Synth (paper)", "every trial has it"


def second(one):
    return replace(one, trials=[trial for trial in one.trials if trial.key.release.repetition])


def test_two_experiments_of_one_version_each_are_two_versions_where_they_share_a_data_set():
    one, other, elsewhere = versions(), second(versions(METHODS[0])), second(versions(METHODS[0], dataset="taxi"))
    assert several_versions([one], LABELS, {}) == several_versions([other], LABELS, {}) == []
    assert several_versions([one, elsewhere], LABELS, {}) == []
    assert several_versions([one, other], LABELS, {}) == [f"{MADE} of AdaSSP (paper)"]


def test_each_figure_and_table_has_the_note_on_its_own_methods(tmp_path):
    one = versions(METHODS[0])
    figures = [{"name": name, "metric": "mse", "title": name, "show": [name]} for name in ("AdaSSP", "AIM-Synth")]
    tables = [{**spec, "name": f"{spec['name']}_table", "kind": "comparison_table"} for spec in figures]
    figures += [{**table, "x": "release.budget.epsilon"} for table in tables]
    experiment = replace(one.experiment, report={**one.experiment.report, "figures": figures})
    build_report(replace(one, experiment=experiment), tmp_path)
    reported = {path.stem: MADE in path.read_text() for path in tmp_path.glob("tables/*_table.md")}
    assert reported == {"AdaSSP_table": True, "AIM-Synth_table": False}
