import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from dpbench.errors import UserError
from dpbench.report.claims.statements import compare
from dpbench.report.frames.frame import trial_frame
from dpbench.report.frames.settings import placed

from ..made_up import make_score, make_trial

BETTER = {"method": "aim/linear_marginals", "baseline": "adassp/linear_statistics", "relation": "better"}
MARGIN = {"part": 0.1, "of": "exact/linear_statistics"}
SPLITS = (0.0, 5.0, -3.0, 1.0, 2.0)  # what a split adds to every method's score


def trials_of(method, offsets, name="mse", direction="lower", level=10.0, **changes):
    """One trial per repetition, whose score is `level`, what its split adds, and the offset of the method."""
    mechanism, model = method.split("/")
    return [
        make_trial(
            mechanism, model, repetition=place, metrics=[name],
            scores=[make_score(name, level + SPLITS[place] + offset, direction)], **changes,
        )
        for place, offset in enumerate(offsets)
    ]  # fmt: skip


def verdicts(trials, metric="mse", **changes):
    return compare(trial_frame(trials), BETTER | changes, metric, MARGIN)


def test_differences_are_paired_by_repetition_with_students_interval():
    offsets = (1.0, 1.2, 0.8, 1.1, 0.9)
    trials = trials_of(BETTER["method"], [0] * 5) + trials_of(BETTER["baseline"], offsets)
    (row,) = verdicts(trials).to_dict("records")
    se = math.sqrt(0.025 / 5)  # the splits, which differ by 8, cancel
    assert row["difference"] == pytest.approx(1.0) and row["se"] == pytest.approx(se)
    assert row["low"] == pytest.approx(1.0 - 2.7764 * se, abs=1e-4), "t of 4 degrees of freedom"
    assert (row["pairs"], row["verdict"], row["margin"]) == (5, "agrees", 0)


@pytest.mark.parametrize(
    ("relation", "offset", "verdict"),
    [
        ("better", 0.3, "agrees"), ("better", -0.3, "disagrees"), ("better", 0.0, "cannot tell"),
        ("not_worse", -0.5, "agrees"), ("not_worse", -1.0, "cannot tell"), ("not_worse", -1.5, "disagrees"),
        ("similar", 0.5, "agrees"), ("similar", -0.5, "agrees"), ("similar", 1.0, "cannot tell"),
        ("similar", 1.5, "disagrees"), ("similar", -1.5, "disagrees"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("direction", ["lower", "higher"])
def test_verdicts_of_each_relation_with_a_margin_of_one(relation, offset, verdict, direction):
    small = np.array([0.1, -0.1, 0.05, -0.05, 0.0])
    sign = 1 if direction == "higher" else -1
    trials = trials_of(BETTER["method"], sign * (offset + small), direction=direction)
    trials += trials_of(BETTER["baseline"], [0] * 5, direction=direction)
    trials += trials_of(MARGIN["of"], [-1] * 5, direction=direction, epsilon=math.inf)  # its mean is 10
    (row,) = verdicts(trials, relation=relation).to_dict("records")
    assert row["verdict"] == verdict
    assert row["difference"] == pytest.approx(offset, abs=1e-12)
    assert row["margin"] == pytest.approx(0 if relation == "better" else 1.0)


def test_each_calibration_of_the_baseline_is_compared_on_its_own():
    trials = trials_of(BETTER["method"], [0] * 5)
    trials += trials_of(BETTER["baseline"], [-0.9, -1, -1.1, -1, -1], calibration="tight")
    trials += trials_of(BETTER["baseline"], [0.9, 1, 1.1, 1, 1], calibration="paper")
    rows = verdicts(trials)
    assert dict(zip(rows["calibration"], rows["verdict"], strict=True)) == {"tight": "disagrees", "paper": "agrees"}
    turned = verdicts(trials, method=BETTER["baseline"], baseline=BETTER["method"])
    assert list(turned["verdict"]) == ["agrees"], "of a method with both, the tight calibration is compared"


def test_a_calibration_that_a_panel_lacks_was_not_run_there():
    trials = []
    for dataset, calibrations in (("adult", ("tight", "paper")), ("taxi", ("tight",))):
        trials += trials_of(BETTER["method"], [0] * 5, dataset=dataset)
        for name in calibrations:
            trials += trials_of(BETTER["baseline"], [0.9, 1, 1.1, 1, 1], dataset=dataset, calibration=name)
    rows = verdicts(trials)
    found = {(row["panel"], row["calibration"]): row["verdict"] for row in rows.to_dict("records")}
    assert found["taxi", "tight"] == "agrees" and found["taxi", "paper"] == "not run"


def test_a_repetition_counts_where_both_have_a_value():
    trials = trials_of(BETTER["method"], [0] * 5) + trials_of(BETTER["baseline"], [1, 1.1, 0.9, 1, 1])
    trials[-3:] = [replace(trial, status="oom", scores=()) for trial in trials[-3:]]
    trials[0] = replace(trials[0], scores=(replace(trials[0].scores[0], value=math.nan),))
    (row,) = verdicts(trials).to_dict("records")
    assert (row["pairs"], row["verdict"]) == (1, "cannot tell")


def test_what_was_not_run_is_said_for_each_epsilon_asked():
    trials = trials_of(BETTER["method"], [0, 0], epsilon=0.1) + trials_of(BETTER["baseline"], [1, 2], epsilon=0.5)
    rows = verdicts(trials, at=[0.1, 0.5, 1])
    assert list(rows["x"]) == [0.1, 0.5, 1.0] and set(rows["verdict"]) == {"not run"}
    assert verdicts([]).empty


def test_a_margin_whose_reference_was_not_run_decides_nothing():
    trials = trials_of(BETTER["method"], [0] * 3) + trials_of(BETTER["baseline"], [0.1, 0, 0.1])
    (row,) = verdicts(trials, relation="similar").to_dict("records")
    assert math.isnan(row["margin"]) and row["verdict"] == "cannot tell"


def with_value(trial, value):
    return replace(trial, scores=(replace(trial.scores[0], value=value),))


@pytest.mark.parametrize("lost", [math.inf, math.nan])
def test_a_margin_is_of_the_finite_values_of_its_reference(lost):
    trials = trials_of(BETTER["method"], [0] * 5) + trials_of(BETTER["baseline"], [0.1, -0.1, 0, 0.1, -50])
    reference = trials_of(MARGIN["of"], [-1] * 5, epsilon=math.inf)
    mixed = [with_value(reference[0], lost), *(with_value(trial, 10.0) for trial in reference[1:])]
    (row,) = verdicts(trials + mixed, relation="similar").to_dict("records")
    assert row["margin"] == pytest.approx(1.0) and row["verdict"] == "cannot tell"
    (row,) = verdicts(trials + [with_value(trial, lost) for trial in reference], relation="similar").to_dict("records")
    assert math.isnan(row["margin"]) and row["verdict"] == "cannot tell"


def test_an_endless_margin_decides_nothing():
    trials = trials_of(BETTER["method"], [0] * 3) + trials_of(BETTER["baseline"], [0.1, 0, 0.1])
    rows = compare(trial_frame(trials), BETTER | {"relation": "similar"}, "mse", {"absolute": math.inf})
    assert list(rows["verdict"]) == ["cannot tell"]


def test_a_margin_is_of_one_calibration_of_its_reference():
    """The one that is compared, or the tight one."""
    trials = trials_of(BETTER["method"], [0] * 3)
    for calibration, level in (("tight", 10.0), ("paper", 30.0)):
        trials += trials_of(BETTER["baseline"], [0] * 3, calibration=calibration)
        reference = trials_of("mst/linear_marginals", [0] * 3, calibration=calibration)
        trials += [with_value(trial, level) for trial in reference]
    margin = {"part": 0.1, "of": "mst/linear_marginals"}
    rows = compare(trial_frame(trials), BETTER | {"relation": "similar"}, "mse", margin)
    assert dict(zip(rows["calibration"], rows["margin"], strict=True)) == pytest.approx({"tight": 1.0, "paper": 3.0})
    rows = compare(trial_frame(trials), BETTER | {"relation": "similar", "baseline": BETTER["method"]}, "mse", margin)
    assert list(rows["margin"]) == pytest.approx([1.0])


def test_a_reference_without_epsilon_is_compared_with_each_and_a_margin_may_be_a_number():
    trials = trials_of("exact/linear_statistics", [0] * 4, epsilon=math.inf)
    trials += trials_of(BETTER["method"], [3, 2.9, 3.1, 3], epsilon=0.1)
    trials += trials_of(BETTER["method"], [0.2, 0.1, 0.3, 0.2], epsilon=1)
    changes = {"baseline": "exact/linear_statistics", "relation": "not_worse"}
    rows = compare(trial_frame(trials), BETTER | changes, "mse", {"absolute": 0.5})
    assert list(rows["x"]) == [0.1, 1.0] and list(rows["verdict"]) == ["disagrees", "agrees"]
    assert list(rows["difference"]) == pytest.approx([-3, -0.2]) and set(rows["margin"]) == {0.5}


def test_a_method_may_be_compared_with_itself_at_one_x():
    """Paired by repetition: the splits, which differ by 8, cancel."""
    trials = []
    for epsilon, errors in ((0.1, [3, 3.1, 2.9]), (0.5, [1, 1.1, 0.9]), (1.0, [3.2, 3.3, 3.1])):
        trials += trials_of(BETTER["method"], errors, epsilon=epsilon)
    rows = verdicts(trials, baseline=BETTER["method"], baseline_at=0.1)
    assert list(rows["x"]) == [0.5, 1.0] and list(rows["difference"]) == pytest.approx([2, -0.2])
    assert list(rows["verdict"]) == ["agrees", "disagrees"]
    assert list(verdicts(trials, baseline=BETTER["method"], baseline_at=2.0)["verdict"]) == ["not run"] * 3


def test_a_panel_is_compared_where_it_has_trials():
    trials = trials_of(BETTER["method"], [0] * 3, epsilon=0.1) + trials_of(BETTER["baseline"], [1] * 3, epsilon=0.1)
    frame = trial_frame(trials)
    both = pd.concat([frame.assign(panel="one"), frame.assign(panel="two", x=0.5)])
    rows = compare(both, BETTER, "mse", MARGIN)
    assert list(zip(rows["panel"], rows["x"], strict=True)) == [("one", 0.1), ("two", 0.5)]


def test_a_margin_is_a_part_of_the_method_where_it_stands_and_of_its_mean_where_it_was_not_run():
    trials = []
    for epsilon, level in ((0.1, 20.0), (0.5, 16.0), (1.0, 10.0)):
        for method in (BETTER["method"], BETTER["baseline"]):
            trials += trials_of(method, [0] * 5, epsilon=epsilon)
        if epsilon != 0.5:
            trials += trials_of(MARGIN["of"], [-1] * 5, level=level, epsilon=epsilon)
    assert [round(margin, 9) for margin in verdicts(trials, relation="similar")["margin"]] == [2.0, 1.5, 1.0]


def test_methods_with_several_settings_and_unknown_relations_are_refused():
    trials = trials_of(BETTER["method"], [0] * 2, parameters={"rounds": 1})
    trials += trials_of(BETTER["method"], [0] * 2, parameters={"rounds": 2}) + trials_of(BETTER["baseline"], [1] * 2)
    with pytest.raises(UserError, match="several settings"):
        verdicts(trials)
    with pytest.raises(UserError, match="did you mean 'better'"):
        verdicts(trials, relation="bettr")


@pytest.mark.parametrize(
    ("relation", "shift"),
    [
        ("better", 0.0),
        pytest.param("not_worse", -1.0, marks=pytest.mark.slow),
        pytest.param("similar", 1.0, marks=pytest.mark.slow),
        ("similar", -1.0),
    ],
)
def test_a_claim_that_fails_by_its_margin_is_called_right_in_one_of_forty(relation, shift):
    """2,000 comparisons: the count of 'agrees' is binomial of 0.025, and within 5 standard deviations (p < 1e-6)."""
    rng = np.random.default_rng(7)
    cells = pd.MultiIndex.from_product([np.arange(1.0, 2001), range(5)], names=["x", "repetition"])
    method, baseline = pd.DataFrame(index=cells).reset_index(), pd.DataFrame(index=cells).reset_index()
    method = method.assign(mechanism="aim", model="linear_marginals", value=10 + shift + rng.normal(0, 0.1, 10_000))
    baseline = baseline.assign(mechanism="adassp", model="linear_statistics", value=10.0)
    reference = {"x": np.inf, "repetition": 0, "mechanism": "exact", "model": "linear_statistics", "value": 10.0}
    frame = pd.concat([method, baseline, pd.DataFrame([reference])])
    frame = frame.assign(panel="adult", metric="auc", direction="higher", calibration="", status="done")
    found = compare(frame, BETTER | {"relation": relation}, "auc", MARGIN)
    agreed = (found["verdict"] == "agrees").sum()
    assert abs(agreed - 0.025 * 2000) < 5 * math.sqrt(0.025 * 0.975 * 2000)


def test_a_method_is_ahead_in_the_repetitions_that_it_wins_whatever_the_size_of_an_error():
    """It wins 9 of 10, and loses the other by far: the mean says the opposite of what happened."""
    trials = [make_trial("aim", "linear_marginals", repetition=k, mse=1.0 if k else 1e6) for k in range(10)]
    trials += [make_trial("adassp", "linear_statistics", repetition=k, mse=2.0) for k in range(10)]
    (row,) = verdicts(trials, relation="ahead").to_dict("records")
    assert (row["pairs"], row["difference"], row["verdict"]) == (10, 0.9, "agrees")
    assert (row["low"], row["high"]) == pytest.approx((0.5550, 0.9975), abs=1e-4), "Clopper and Pearson, 9 of 10"
    assert list(verdicts(trials)["verdict"]) == ["cannot tell"]


def test_a_missing_estimate_is_behind_one_that_there_is_and_a_failure_counts_for_neither():
    aim = [make_trial("aim", "linear_marginals", repetition=k, mse=1.0) for k in range(10)]
    other = [make_trial("adassp", "linear_statistics", repetition=k, mse=2.0) for k in range(10)]
    lost = [replace(trial, status="no_estimate", scores=()) for trial in aim]
    (row,) = verdicts(lost + other, relation="ahead").to_dict("records")
    assert (row["pairs"], row["difference"], row["verdict"]) == (10, 0.0, "disagrees")
    neither = [replace(trial, status="no_estimate", scores=()) for trial in other[:4]]
    (row,) = verdicts(lost[:4] + aim[4:] + neither + other[4:], relation="ahead").to_dict("records")
    assert (row["pairs"], row["difference"]) == (6, 1.0)
    failed = [replace(trial, status="oom", scores=()) for trial in aim]
    (row,) = verdicts(failed + other, relation="ahead").to_dict("records")
    assert (row["pairs"], row["verdict"]) == (0, "cannot tell")


def test_models_with_one_label_are_one_method_by_their_mean_which_a_failure_loses():
    names = {"aim/svr": "AIM, ML", "aim/mlp": "AIM, ML"}
    trials = trials_of(BETTER["baseline"], [0] * 4)
    svr, mlp = (trials_of(f"aim/{model}", [shift] * 4) for model, shift in (("svr", -3.0), ("mlp", 1.0)))
    mlp[2] = replace(mlp[2], status="no_estimate", scores=())  # the other model alone
    mlp[3] = replace(mlp[3], status="oom", scores=())
    claim = BETTER | {"method": "AIM, ML"}
    (row,) = compare(trial_frame(trials + svr + mlp), claim, "mse", {}, names).to_dict("records")
    assert row["pairs"] == 3 and row["difference"] == pytest.approx((1.0 + 1.0 + 3.0) / 3)


@pytest.mark.parametrize(
    ("relation", "level", "verdict", "difference"),
    [
        ("similar", 0.94, "agrees", 0.01),
        ("similar", 0.80, "disagrees", 0.15),
        ("lower", 0.80, "agrees", 0.15),
        ("higher", 0.80, "disagrees", -0.15),
    ],
)
def test_a_method_may_be_compared_with_a_number(relation, level, verdict, difference):
    trials = [
        make_trial("aim", "linear_marginals", repetition=k, scores=[make_score("coverage", value, "none")])
        for k, value in enumerate([level - 0.001, level, level + 0.001])
    ]
    claim = BETTER | {"baseline": 0.95, "relation": relation}
    (row,) = compare(trial_frame(trials), claim, "coverage", {"absolute": 0.02}).to_dict("records")
    assert row["verdict"] == verdict and row["difference"] == pytest.approx(difference)


def test_each_panel_may_have_its_own_values_of_x_and_a_note_of_the_fit_may_be_compared():
    path = "release.mechanism.parameters.theta"
    trials = [
        make_trial(
            "aim", "linear_marginals", repetition=k, dataset=name, parameters={"theta": theta}, notes={"bins": n}
        )
        for name, found in {"adult": {0: 5, -70: 9, -90: 1}, "taxi": {0: 5, -70: 1, -90: 8}}.items()
        for theta, n in found.items()
        for k in range(3)
    ]
    frame = placed(trial_frame(trials, [path, "notes.bins"]), {"x": path})
    claim = BETTER | {"baseline": BETTER["method"], "baseline_at": 0, "at": {"adult": [-70], "taxi": [-90]}}
    rows = compare(frame, claim | {"relation": "higher"}, "notes.bins", {})
    found = [(row["panel"], row["x"], row["difference"]) for row in rows.to_dict("records")]
    assert found == [("adult", -70.0, 4.0), ("taxi", -90.0, 3.0)]


def test_what_always_holds_is_refuted_by_one_repetition_or_by_chains_that_did_not_converge():
    always = {"relation": "always", "baseline": 2.0}
    aim = [make_trial("aim", "linear_marginals", repetition=k, mse=1.0) for k in range(10)]
    (row,) = verdicts(aim, **always).to_dict("records")
    assert (row["pairs"], row["difference"], row["margin"], row["verdict"]) == (10, 1.0, 1.0, "agrees")
    assert row["low"] == pytest.approx(0.025**0.1), "Clopper and Pearson, 10 of 10"
    assert list(verdicts(aim[:1], **always)["verdict"]) == ["cannot tell"]
    worse = make_trial("aim", "linear_marginals", repetition=0, mse=3.0)
    apart = replace(aim[0], status="unconverged", scores=())
    for one in (worse, apart):
        (row,) = verdicts([one, *aim[1:]], **always).to_dict("records")
        assert (row["pairs"], row["difference"], row["verdict"]) == (10, 0.9, "disagrees")
    (row,) = verdicts([apart, *aim[1:]], **always | {"relation": "ahead"}).to_dict("records")
    assert (row["pairs"], row["difference"]) == (9, 1.0), "counts for neither there"
    crashed = replace(aim[0], status="failed", scores=())
    assert list(verdicts([crashed, *aim[1:]], **always)["pairs"]) == [9]
