"""The hours of an experiment by mechanism, those stored and those in full."""

from dataclasses import replace

import pytest

from dpbench.config import compose
from dpbench.grid.plan import make_plan
from dpbench.report.frames.frame import trial_frame
from dpbench.report.tables.costs import costs_table

from ..made_up import make_trial

SPEC = {"name": "costs", "kind": "costs_table", "title": "T", "experiments": ["quickstart"]}
RELEASE, FIT = 1.2, 0.03  # seconds of a made-up trial, with its scores


@pytest.fixture(scope="module")
def made():
    """Of three repetitions the first is stored, but for AIM, with two calibrations, at the last of three epsilons, and
    AdaSSP, with three.
    """
    stored = [
        replace(make_trial(), key=key, id=key.id, release_id=key.release.id, experiment="quickstart")
        for key in make_plan(compose(["experiment=quickstart"])).trials
        if key.release.repetition == 0
        and key.release.mechanism.name != "adassp"
        and (key.release.mechanism.name, key.release.budget.epsilon) != ("aim", 1.0)
    ]
    return costs_table(trial_frame(stored), {}, SPEC, {})


def test_a_release_counts_once_and_every_fit_to_it(made):
    aim = made.tidy.set_index("mechanism").loc["aim"]
    assert (aim["releases"], aim["declared_releases"]) == (4, 18)
    assert aim["release_hours"] == pytest.approx(4 * RELEASE / 3600)
    assert aim["hours"] == pytest.approx(4 * (RELEASE + 2 * FIT) / 3600), "two models"


def test_in_full_is_the_mean_times_what_is_declared_and_what_was_never_run_needs_the_mechanisms_mean(made):
    rows = made.tidy.set_index("mechanism")
    assert rows.loc["ssp", "predicted_hours"] == pytest.approx(3 * rows.loc["ssp", "hours"])
    aim = rows.loc["aim"]
    assert aim["predicted_hours"] == pytest.approx(18 * (RELEASE + 2 * FIT) / 3600)
    assert (aim["least_repetitions"], aim["most_repetitions"], aim["without_seconds"]) == (0, 1, 6)


def test_a_mechanism_that_was_not_run_has_no_prediction_and_the_sums_say_how_many_releases_lack_one(made):
    (adassp,) = (row for row in made.rows if row[1] == "adassp")
    assert adassp[3:6] == ["0 of 3", "0.00", ""] and adassp[2] == "0 of 27"
    total, everything = (row for row in made.tidy.to_dict("records") if row["mechanism"] == "all")
    assert (total["experiment"], everything["experiment"]) == ("quickstart", "all")
    methods = made.tidy[made.tidy["mechanism"] != "all"]
    for row in (total, everything):
        assert row["predicted_hours"] == pytest.approx(methods["predicted_hours"].sum())
        assert row["without_seconds"] == 6 + 27
