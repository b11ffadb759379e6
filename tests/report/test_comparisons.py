"""Two sets of trials: what differs, how sure that is, and what a tolerance makes of it."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import ttest_ind, ttest_rel

from dpbench.errors import UserError
from dpbench.metrics.evaluation import Score
from dpbench.report.comparisons import BROKEN, DIFFERS, EQUAL, GONE, HELD, IMPRECISE, MIXED, ROUNDED, compare_trials
from tests.report.made_up import make_trial

RNG = np.random.default_rng(5)
FAILED = [make_trial(repetition=place, status="failed", metrics=["mse"]) for place in range(8)]
FIRST, CHANGE = RNG.normal(1.0, 0.1, 8), RNG.normal(0.0, 0.01, 8)


def trials(values, **settings):
    """One repetition per value of the one metric."""
    scores = [[Score("mse", float(value), "", "lower")] for value in values]
    return [make_trial(scores=one, metrics=["mse"], repetition=r, **settings) for r, one in enumerate(scores)]


def only(comparison):
    (cell,) = comparison.cells.to_dict("records")
    return cell


def test_differences_of_the_same_repetitions_are_paired():
    cell = only(compare_trials(trials(FIRST), trials(FIRST + CHANGE)))
    interval = ttest_rel(FIRST + CHANGE, FIRST).confidence_interval(0.95)
    assert (cell["low"], cell["high"]) == pytest.approx((interval.low, interval.high))
    assert cell["pairs"] == 8 and cell["difference"] == pytest.approx(CHANGE.mean()) and cell["verdict"] == DIFFERS
    assert (cell["dataset"], cell["mechanism"], cell["epsilon"]) == ("adult", "ssp", 0.1)


def seeded(values):
    """Trials of another seed."""
    keys = [replace(one.key, fit=replace(one.key.fit, release=replace(one.key.release, seed=1))) for one in values]
    return [replace(one, key=key, id=key.id) for one, key in zip(values, keys, strict=True)]


def test_those_of_two_seeds_are_not():
    second = RNG.normal(1.0, 0.2, 6)
    cell = only(compare_trials(trials(FIRST), seeded(trials(second))))
    interval = ttest_ind(second, FIRST, equal_var=False).confidence_interval(0.95)
    assert (cell["low"], cell["high"]) == pytest.approx((interval.low, interval.high)) and cell["pairs"] == 0


def test_what_is_the_same_is_equal_and_failures_are_no_difference():
    assert only(compare_trials(trials(FIRST), trials(FIRST), 0.0))["verdict"] == EQUAL
    assert only(compare_trials(FAILED, FAILED))["verdict"] == EQUAL


@pytest.mark.parametrize(
    ("second", "verdict"),
    [
        (FIRST * 1.001, HELD),
        (FIRST * 1.5, BROKEN),
        (FIRST * 0.5, BROKEN),
        (FIRST + 30 * CHANGE, IMPRECISE),
        (FIRST[:1] * 1.5, IMPRECISE),  # one pair has no interval
    ],
)
def test_a_tolerance_is_held_or_broken_by_the_whole_interval(second, verdict):
    assert only(compare_trials(trials(FIRST), trials(second), 0.05))["verdict"] == verdict


@pytest.mark.parametrize(("factor", "verdict"), [(1.001, HELD), (1.5, BROKEN), (0.5, BROKEN)])
def test_a_tolerance_is_a_part_of_the_size_of_a_negative_mean(factor, verdict):
    """An R^2 may be below 0."""
    assert only(compare_trials(trials(-FIRST), trials(-FIRST * factor), 0.05))["verdict"] == verdict


def test_values_without_spread_are_compared_as_they_are():
    assert only(compare_trials(trials([1.0] * 5), seeded(trials([1.2] * 5)), 0.05))["verdict"] == BROKEN


def test_a_cell_that_lost_values_is_named_however_well_the_others_agree():
    cell = only(compare_trials(trials(FIRST), [*trials(FIRST[:2]), *FAILED[2:]], 0.05))
    assert cell["verdict"] == GONE and cell["pairs"] == 2


def test_a_score_that_is_not_finite_is_no_value():
    lost = np.where(np.arange(8) < 2, math.inf, FIRST)
    assert only(compare_trials(trials(lost), trials(lost), 0.05))["verdict"] == EQUAL
    cell = only(compare_trials(trials(FIRST), trials(lost), 0.05))
    assert cell["pairs"] == 6 and cell["difference"] == 0 and cell["verdict"] == GONE


def test_a_cell_that_lost_all_its_values_is_named():
    cell = only(compare_trials(trials(FIRST), FAILED, 0.05))
    assert cell["verdict"] == GONE and math.isnan(cell["difference"])
    assert only(compare_trials(FAILED, trials(FIRST), 0.05))["verdict"] != GONE


def test_cells_of_one_set_alone_are_counted_and_none_in_common_is_an_error():
    both, alone = trials(FIRST), trials(FIRST, epsilon=2.0)
    found = compare_trials([*both, *alone], [*both, *trials(FIRST, dataset="taxi"), *trials(FIRST, dataset="fire")])
    assert (found.first_only, found.second_only) == (1, 2) and only(found)["epsilon"] == 0.1
    with pytest.raises(UserError, match="no cell in common"):
        compare_trials(both, alone)


def test_trials_of_common_cells_without_a_partner_are_counted_for_each_set():
    assert compare_trials(trials(FIRST), trials(FIRST)).unpaired == (0, 0)
    two = [make_trial(repetition=r) for r in (0, 1)], [make_trial(repetition=r) for r in (1, 2, 3)]
    assert compare_trials(*two).unpaired == (1, 2)  # of two metrics, each trial counts once
    assert compare_trials(trials(FIRST), [*trials(FIRST), *trials(FIRST, epsilon=2.0)]).unpaired == (0, 0)
    assert compare_trials(trials(FIRST), seeded(trials(FIRST[:3]))).unpaired == (8, 3)
    assert compare_trials(FAILED, trials(FIRST[:6])).unpaired == (2, 0)


def recoded(made):
    """The trials by another version of the mechanism."""
    found = []
    for trial in made:
        key, mechanism = trial.key, replace(trial.key.release.mechanism, version="another")
        other = replace(key, fit=replace(key.fit, release=replace(key.release, mechanism=mechanism)))
        found.append(replace(trial, key=other, id=other.id))
    return found


def test_other_code_answers_the_same_question():
    assert only(compare_trials(trials(FIRST), recoded(trials(FIRST + CHANGE))))["pairs"] == 8


@pytest.mark.parametrize("tolerance", [None, 0.5])
def test_several_versions_of_the_code_in_one_set_are_reported_and_not_averaged(tolerance):
    old, new = trials(FIRST), recoded(trials(FIRST + CHANGE))
    for mixed in ([*old, *new], [*old[:4], *new[4:]]):  # of the same repetitions, and of others
        for given in ((mixed, trials(FIRST)), (trials(FIRST), mixed)):
            cell = only(compare_trials(*given, tolerance))
            assert cell["verdict"] == MIXED and math.isnan(cell["first"]) and math.isnan(cell["difference"])
    same = [*old[:4], *recoded(old)[4:]]
    assert only(compare_trials(same, trials(FIRST), tolerance))["verdict"] == EQUAL


def test_what_another_processor_rounds_otherwise_is_named_as_rounding():
    rounded = FIRST * (1 + 1e-15)
    assert only(compare_trials(trials(FIRST), trials(rounded)))["verdict"] == ROUNDED
    assert only(compare_trials(trials(FIRST), trials(rounded), 0.0))["verdict"] == BROKEN
    rounded[3] = FIRST[3] * (1 + 1e-8)  # one pair differs by more
    assert only(compare_trials(trials(FIRST), trials(rounded)))["verdict"] == DIFFERS
