"""Keys and trials: identities, seeds, and what stands in a file."""

import json
from dataclasses import replace

import pytest

from dpbench.grid.records import Failure, FitKey, PartKey, ReleaseKey, Runtime, Trial, TrialKey
from dpbench.grid.seeds import digest
from dpbench.metrics.evaluation import Score
from dpbench.privacy.accounting import Spent
from dpbench.privacy.budget import Budget

PINNED_SEEDS = ("329bddb1aac60d14", "bb2a77d615bdbd96")
PINNED_IDS = ("b01f7d99dc630c6a", "7d51d0ba0254a795", "6c7b1a0b528b02ec")
DESIGN = {"target": "y", "intercept": True}


def release_key(version="1", **more):
    dataset = {"name": "adult", "sources": {"a": "00"}, "parameters": {}}
    mechanism = PartKey("aim", "m.aim", {"rounds": None, "alpha": 0.9}, version)
    given = {"seed": 0, "repetition": 2, "budget": Budget(1.0), **more}
    return ReleaseKey(dataset, {"train_rows": 100, "test_rows": [0.2, 10]}, mechanism=mechanism, **given)


def trial_key(version="1", draw=0, **more):
    fit = FitKey(release_key(version, **more), PartKey("rows", "m.rows", {}, version), DESIGN, draw)
    return TrialKey(fit, (PartKey("mse", "s.mse", {}, version), PartKey("power", "s.power", {"p": 2.0}, version)))


def test_identities_and_seeds_are_those_of_the_committed_results():
    """A change of a noise or sampler seed would make every committed result irreproducible."""
    key = trial_key()
    assert digest(key.release.noise_seed()) == digest(
        {
            "dataset": {"name": "adult", "sources": {"a": "00"}, "parameters": {}},
            "split": {"train_rows": 100, "test_rows": [0.2, 10]},
            "seed": 0,
            "repetition": 2,
            "mechanism": {
                "name": "aim",
                "target": "m.aim",
                "parameters": {"rounds": None, "alpha": 0.9},
                "version": 1,
            },
            "budget": {"epsilon": 1.0, "delta": 1e-5, "relation": "add_remove"},
        }
    )
    assert digest(key.fit.sampler_seed()) == digest(
        {
            "release": digest(key.release.noise_seed()),
            "model": {"name": "rows", "target": "m.rows", "parameters": {}, "version": 1},
            "design": DESIGN,
        }
    )
    assert (digest(key.release.noise_seed()), digest(key.fit.sampler_seed())) == PINNED_SEEDS
    assert (key.release.id, key.fit.id, key.id) == PINNED_IDS


def test_an_infinite_epsilon_has_a_name_in_json():
    key = release_key(budget=Budget(float("inf")))
    assert key.to_dict()["budget"]["epsilon"] == "inf"
    assert ReleaseKey.from_dict(json.loads(json.dumps(key.to_dict()))) == key


@pytest.mark.parametrize("key", [trial_key(), trial_key(draw=3), trial_key(design=DESIGN)])
def test_a_key_comes_back_from_its_json_with_its_identity(key):
    back = TrialKey.from_dict(json.loads(json.dumps(key.to_dict())))
    assert back == key
    assert (back.id, back.fit.id, back.release.id) == (key.id, key.fit.id, key.release.id)
    assert FitKey.from_dict(json.loads(json.dumps(key.fit.to_dict()))) == key.fit


def test_a_version_belongs_to_the_identity_but_not_to_the_question_or_the_seeds():
    one, two = trial_key("1"), trial_key("2")
    assert one.id != two.id
    assert one.unversioned().id == two.unversioned().id != trial_key("1", seed=1).unversioned().id
    assert one.release.noise_seed() == two.release.noise_seed()
    assert one.release.noise_seed("a") != one.release.noise_seed("b") != one.release.noise_seed()
    assert one.fit.sampler_seed() == two.fit.sampler_seed()


def test_another_draw_is_another_fit_of_the_same_release():
    one, two = trial_key(), trial_key(draw=1)
    assert one.release.id == two.release.id
    assert one.fit.id != two.fit.id
    assert one.fit.sampler_seed() != two.fit.sampler_seed()


def test_the_metrics_do_not_belong_to_the_fit():
    key = trial_key()
    other = replace(key, metrics=key.metrics[:1])
    assert other.id != key.id
    assert other.fit.id == key.fit.id


@pytest.mark.parametrize("ended", ["done", "failed"])
def test_a_trial_comes_back_from_its_json(ended):
    key = trial_key()
    trial = Trial(key.id, key.release.id, key, "grid", ended)
    if ended == "done":
        scores = (Score("mse", float("inf"), "", "lower"), Score("power", 0.5, "", "lower", {"counts": [1, 2]}))
        spent = Spent(epsilon=float("inf"), delta=1e-5, rho=0.1, mu=None)
        trial = replace(trial, scores=scores, spent=spent, notes={"rank": 3}, runtime=Runtime(1.0, peak_mb=3.0))
    else:
        trial = replace(trial, phase="model", error=Failure("ValueError", "no"), nonprivate_inputs=("bounds",))
    assert Trial.from_dict(json.loads(json.dumps(trial.to_dict(), allow_nan=False))) == trial
