import math
from dataclasses import replace

import pytest

from dpbench.metrics.evaluation import Score
from dpbench.privacy.accounting import gaussian_mu
from dpbench.report.frames.frame import trial_frame
from dpbench.report.frames.settings import leaves_of, note_of, placed, setting_of, settings_of, variants

from ..made_up import make_trial


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("release.split.train_rows", 50000),
        ("release.mechanism.parameters.ratio", "1:3"),
        ("release.mechanism.parameters.ratio.1", 3),
        ("release.mechanism.parameters.absent", None),
        ("design.target", "education-num"),
    ],
)
def test_a_path_names_a_setting_of_a_trial(path, value):
    assert setting_of(make_trial(parameters={"ratio": [1, 3]}).key, path) == value


def test_a_reference_has_neither_a_budget_nor_a_protocol():
    paths = ("release.budget.epsilon", "release.split.protocol")
    values = [
        [setting_of(trial.key, path) for path in paths]
        for trial in (make_trial(), make_trial(protocol="authors"), make_trial("exact", epsilon=math.inf))
    ]
    assert values == [[0.1, "split"], [0.1, "authors"], [math.inf, None]]


def test_mu_is_that_of_the_budget():
    mu = setting_of(make_trial(epsilon=1.0, delta=1e-5).key, "release.budget.mu")
    assert mu == pytest.approx(gaussian_mu(1.0, 1e-5), rel=1e-3)


def test_notes_of_a_fit_are_read_by_path():
    assert note_of(make_trial(notes={"bins": 7}), "bins") == 7


def test_trials_of_one_cell_that_differ_in_a_setting_are_distinguished():
    keys = [make_trial(parameters={"theta": theta}).key for theta in (1, 2)]
    assert variants(keys, [leaves_of(key) for key in keys], ()) == ["theta=1", "theta=2"]
    keys = [make_trial(parameters=given).key for given in ({}, {"noise": "discrete"})]
    assert variants(keys, [leaves_of(key) for key in keys], ()) == ["noise=continuous", "noise=discrete"]
    same = [make_trial(repetition=i).key for i in range(2)]
    assert variants(same, [leaves_of(key) for key in same], ()) == ["", ""]


@pytest.mark.parametrize(
    ("settings", "labels"),
    [
        ([{"rows": 100}, {"rows": 1000}], ["sample.train_rows=100", "sample.train_rows=1000"]),
        ([{}, {"protocol": "authors"}], ["sample.protocol=split", "sample.protocol=authors"]),
        ([{}, {"fixed": True}], ["sample.split=fresh", "sample.split=fixed"]),
    ],
)
def test_settings_have_the_names_and_values_that_a_user_writes(settings, labels):
    keys = [make_trial(**given).key for given in settings]
    assert variants(keys, [leaves_of(key) for key in keys], ()) == labels


def test_the_relation_of_neighbours_is_reported_as_a_user_writes_it():
    release = (key := make_trial().key).release
    other = replace(key.fit, release=replace(release, budget=replace(release.budget, relation="replace")))
    keys = [key, replace(key, fit=other)]
    assert variants(keys, [leaves_of(one) for one in keys], ()) == ["relation=add_remove", "relation=replace"]


def test_a_figure_has_its_own_columns_for_what_it_shows():
    spec = {"x": "release.split.train_rows", "panel": "release.mechanism.parameters.theta", "metric": "mse"}
    assert settings_of(spec) == [spec["x"], spec["panel"]]
    trials = [make_trial(rows=rows, parameters={"theta": 3}, epsilon=0.5) for rows in (100, 200)]
    frame = placed(trial_frame(trials, settings_of(spec)), spec)
    assert sorted(set(frame["x"])) == [100, 200]
    assert set(frame["panel"]) == {"3"}
    assert set(frame["epsilon"]) == {0.5} and set(frame["dataset"]) == {"adult"}


@pytest.mark.parametrize(("direction", "best"), [("lower", {0.1: 20, 1.0: 10}), ("higher", {0.1: 10, 1.0: 20})])
def test_of_each_methods_settings_the_best_mean_at_each_epsilon_is_shown(direction, best):
    values = {(30, 0.1): (0.0,), (30, 1.0): (9.0,)}  # a setting that was run less often is not compared
    values |= {(10, 0.1): (0.3, 0.5), (20, 0.1): (0.1, 0.6), (10, 1.0): (0.1, 0.1), (20, 1.0): (0.2, 0.1)}
    trials = [
        make_trial(epsilon=at, repetition=i, parameters={"rounds": n}, scores=[Score("mse", value, "", direction)])
        for (n, at), those in values.items()
        for i, value in enumerate(those)
    ]
    shown = placed(trial_frame(trials), {"metric": "mse", "best_setting": True})
    assert set(shown["variant"]) == {""}
    found = {epsilon: tuple(own["value"]) for epsilon, own in shown.groupby("epsilon")}
    assert found == {epsilon: values[rounds, epsilon] for epsilon, rounds in best.items()}
