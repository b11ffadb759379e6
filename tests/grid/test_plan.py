"""Plans: the axes, identities, seeds and shards."""

import json
import subprocess
import sys

import numpy as np
import pytest

from dpbench.config import compose
from dpbench.errors import UserError
from dpbench.grid.plan import make_plan, read_plan
from dpbench.grid.records import TrialKey
from dpbench.grid.seeds import generator
from dpbench.privacy.accounting import gaussian_mu

LINREG = ["experiment=linreg_adult"]


def plan(*overrides: str):
    return make_plan(compose([*LINREG, *overrides]))


def test_the_main_job_has_the_papers_axes():
    made = plan("repetitions=5")
    methods = [(item.key.mechanism.name, item.key.budget.epsilon) for item in made.releases]
    assert methods.count(("exact", float("inf"))) == 5
    for epsilon in (0.05, 0.1, 0.5, 1.0, 2.0):
        assert methods.count(("adassp", epsilon)) == 15  # and that of the public code
        for name in ("ssp", "aim", "mst", "aim_mixture"):
            assert methods.count((name, epsilon)) == 10  # both calibrations x 5 repetitions
        for name in ("dpsgd", "dpsgd_optimistic", "dpsgd_advanced", "dpsgd_accountant", "dpsgd_random"):
            assert methods.count((name, epsilon)) == 5
    assert {item.key.budget.delta for item in made.releases} == {1e-5}
    assert len(made.trial_ids) == len(set(made.trial_ids)) == 555


def test_metrics_that_no_release_of_a_mechanism_can_have_are_left_out():
    (item,) = plan("mechanism=[dpsgd]", "epsilon=1", "repetitions=1").releases
    assert [metric.name for metric in item.trials[0].metrics] == ["coefficient_distance", "mse", "mse_unit", "r2"]


def test_one_aim_release_serves_both_of_its_models():
    (item,) = plan("mechanism=[aim]", "epsilon=1", "repetitions=1", "calibration=tight").releases
    assert [trial.fit.model.name for trial in item.trials] == ["linear_marginals", "linear_rows"]


def test_a_release_that_takes_no_design_is_shared_by_targets():
    one, two = (
        {item.key.id for item in plan("mechanism=[aim]", f"dataset.target={target}").releases}
        for target in ("education-num", "age")
    )
    assert one == two
    one, two = (
        {item.key.id for item in plan("mechanism=[adassp]", f"dataset.target={target}").releases}
        for target in ("education-num", "age")
    )
    assert not one & two


def test_what_the_parameters_of_a_mechanism_took_from_a_data_set_is_named_on_that_data_set():
    named = {}
    for dataset, name in (("adult", "adult"), ("adult", "renamed"), ("fire", "fire")):
        settings = [
            f"dataset={dataset}",
            f"dataset.name={name}",
            "mechanism=[dpsgd,adassp]",
            "model=[released_coefficients,linear_statistics]",
            "epsilon=[1]",
            "repetitions=1",
        ]
        for item in make_plan(compose(settings)).releases:
            named[name, item.key.mechanism.name] = item.nonprivate_inputs
    assert "chosen on adult_synth" in named.pop(("adult", "dpsgd"))[0]
    assert "chosen on adult_synth" in named.pop(("renamed", "dpsgd"))[0]
    assert set(named.values()) == {()}


def test_what_changes_a_result_changes_the_identity_and_nothing_else_does():
    base = set(plan().trial_ids)
    for same in ("jobs=2", "results=elsewhere", "limits.seconds=7", "title=other", "shards=3"):
        assert set(plan(same).trial_ids) == base, same
    for other in ("seed=1", "delta=1e-6", "sample.train_rows=2000", "design.intercept=false"):
        assert not set(plan(other).trial_ids) & base, other
    assert base < set(plan("repetitions=21").trial_ids)
    assert base > set(plan("epsilon=[0.1,1]").trial_ids)


def test_discrete_noise_is_a_parameter_of_private_mechanisms_and_continuous_noise_of_none():
    """What was stored before there was a choice keeps its identity."""
    chosen = ("mechanism=[exact,ssp]", "epsilon=1", "repetitions=1", "calibration=tight")
    plain, same, other = (plan(*chosen, *more).releases for more in ((), ("noise=continuous",), ("noise=discrete",)))
    assert plain == same
    assert [item.key.mechanism.parameters for item in plain] == [{}, {"calibration": "tight"}]
    assert other[0] == plain[0]
    assert other[1].key.mechanism.parameters == {**plain[1].key.mechanism.parameters, "noise": "discrete"}
    assert len({item.key.id for item in (*plain, *other)}) == 3


def test_identities_do_not_depend_on_the_process():
    code = "from dpbench.config import compose; from dpbench.grid.plan import make_plan; "
    code += "print(make_plan(compose(['experiment=linreg_adult'])).trial_ids)"
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout
        for seed in ("1", "2")
    }
    assert outputs == {f"{plan().trial_ids}\n"}


def test_keys_hold_no_path(tmp_path):
    (tmp_path / "my.csv").write_text("a,b\n1,0\n")
    (tmp_path / "my.json").write_text('{"a": 2, "b": 2}')
    (tmp_path / "my.yaml").write_text("a: {values: [0, 1]}\nb: {levels: ['0', '1']}\n")
    settings = [
        "dataset=csv",
        f"dataset.path={tmp_path}/my.csv",
        f"dataset.domain={tmp_path}/my.yaml",
        "dataset.target=a",
    ]
    made = make_plan(compose(settings))
    assert str(tmp_path) not in str(made.releases)


def test_a_plan_comes_back_from_its_file(tmp_path):
    made = plan("sample=smoke", "limits=smoke")
    (tmp_path / "plan.jsonl").write_text("".join(made.lines()))
    assert read_plan(tmp_path / "plan.jsonl") == made


@pytest.mark.parametrize("text", ["", "{}\n", "not a plan", '{"format": 99}\n'])
def test_a_file_that_is_no_plan_is_refused(tmp_path, text):
    (tmp_path / "plan.jsonl").write_text(text)
    with pytest.raises(UserError, match=r"plan\.jsonl"):
        read_plan(tmp_path / "plan.jsonl")


def test_shards_part_the_plan():
    made = plan()
    shards = [made.shard(i, 4) for i in range(1, 5)]
    assert sorted(identity for shard in shards for identity in shard.trial_ids) == sorted(made.trial_ids)
    assert max(len(shard.releases) for shard in shards) - min(len(shard.releases) for shard in shards) <= 1


def test_what_is_left_of_a_plan_is_the_same_as_release_by_release():
    made = plan("mechanism=[exact,adassp,aim]", "epsilon=[0.1,1]", "calibration=tight", "repetitions=4")
    gone = set(made.trial_ids[::3]) | {trial.id for trial in made.releases[2].trials}
    left = [(item.key.id, [trial.id for trial in item.trials if trial.id not in gone]) for item in made.releases]
    rest = made.without(gone)
    assert [(item.key.id, [trial.id for trial in item.trials]) for item in rest.releases] == [
        (identity, trials) for identity, trials in left if trials
    ]
    assert rest.trial_ids == [key.id for key in rest.trials] == [key.id for key in made.keys(lambda i: i not in gone)]
    assert made.of(rest.releases) == rest
    assert [TrialKey.from_dict(key.to_dict()).id for key in rest.trials] == rest.trial_ids
    assert [made.shard(2, 3).releases, made.shard(9, 50).releases] == [made.releases[1::3], made.releases[8::50]]
    assert not made.without(made.trial_ids).groups


@pytest.mark.parametrize("repetitions", [[], ["0"], [1.5], None, {"0": 1}])
def test_a_plan_with_repetitions_that_are_none_is_refused(bench, repetitions):
    header, line = make_plan(compose(bench.settings("mechanism=[adassp]", "repetitions=1"))).lines()
    path = bench.folder / "plan.jsonl"
    path.write_text(header + json.dumps({**json.loads(line), "repetitions": repetitions}) + "\n")
    with pytest.raises(UserError, match="is damaged"):
        read_plan(path)


def test_generators_differ_by_axis_and_value_only():
    def draw(axis, value):
        return generator(axis, value).random()

    assert draw("split", {"a": 1, "b": 2}) == draw("split", {"b": 2, "a": 1})
    assert len({draw("split", 1), draw("noise", 1), draw("split", 2)}) == 3
    assert isinstance(generator("split", 1), np.random.Generator)


def test_a_sweep_adds_up_the_grids_of_its_points():
    whole = compose([*LINREG, "mechanism=[adassp]", "+sweep={sample.train_rows:[100,200],dataset:[adult,adult_synth]}"])
    parts = [
        plan("mechanism=[adassp]", f"sample.train_rows={rows}", f"dataset={name}", "dataset.target=education-num")
        for rows in (100, 200)
        for name in ("adult", "adult_synth")
    ]
    made = make_plan(whole)
    assert made.trial_ids == [identity for part in parts for identity in part.trial_ids]
    assert [setting.dataset["name"] for setting in made.settings] == ["adult", "adult_synth"] * 2
    assert {item.key.split["train_rows"] for item in made.releases} == {100, 200}


def test_points_share_the_releases_that_do_not_depend_on_the_setting():
    made = plan(
        "mechanism=[exact,adassp]",
        "epsilon=1",
        "repetitions=1",
        "calibration=[tight,paper]",
        "+sweep={mechanism.adassp.failure:[0.1,0.2]}",
    )
    assert [item.key.mechanism.name for item in made.releases] == [
        "exact",
        "adassp",
        "adassp",
        "adassp",
        "adassp",
    ]


def test_a_setting_on_the_line_pins_the_axis_of_a_sweep():
    pinned = plan("mechanism=[adassp]", "+sweep={sample.train_rows:[100,200]}", "sample.train_rows=300")
    assert pinned.trial_ids == plan("mechanism=[adassp]", "sample.train_rows=300").trial_ids


def test_mu_and_a_power_of_n_stand_for_epsilon_and_delta():
    (item,) = plan("mechanism=[adassp]", "calibration=tight", "repetitions=1", "mu=1", "delta=n**-1.1").releases
    budget = item.key.budget
    assert budget.delta == pytest.approx(47842**-1.1)  # of the 48,842 rows 1,000 are for testing
    assert gaussian_mu(budget.epsilon, budget.delta) == pytest.approx(1, abs=1e-8)
    (item,) = plan("mechanism=[exact]", "repetitions=1", "delta=n**-1", "sample.train_rows=1000").releases
    assert item.key.budget.delta == 0.001
    (item,) = plan(
        "mechanism=[exact]", "repetitions=1", "delta=n**-1", "sample.test_rows=0.2", "metric=[rel_mse]"
    ).releases
    assert item.key.budget.delta == pytest.approx(1 / 39073, rel=1e-9)


def test_a_target_of_several_levels_is_for_classifiers_that_say_so():
    settings = ("dataset.target=race", "+design.classes=true", "mechanism=[exact_table,aim]")
    some = ("model=[logistic_lbfgs,xgboost_classifier]", "metric=[accuracy,row_marginals_error]")
    assert plan(*settings, *some).releases
    with pytest.raises(UserError, match="linear_rows, auc: "):
        plan(*settings, "model=[logistic_lbfgs,linear_rows]", "metric=[accuracy,auc]")
    with pytest.raises(UserError, match="binagg: "):
        plan("dataset.target=race", "+design.classes=true", "mechanism=[binagg]", *some)


def test_points_of_other_targets_or_models_have_their_own_trials_on_a_release_that_they_share():
    settings = ("mechanism=[aim]", "model=[linear_rows]", "epsilon=1", "repetitions=1", "calibration=tight")
    (both,) = plan(*settings, "+sweep={dataset.target:[education-num,age]}").releases
    (one,), (two,) = (plan(*settings, f"dataset.target={target}").releases for target in ("education-num", "age"))
    assert [trial.id for trial in both.trials] == [one.trials[0].id, two.trials[0].id]
    (same,) = plan(*settings, "+sweep={limits.seconds:[7,8]}").releases
    assert len(same.trials) == 1


def test_balanced_parts_hold_each_release_once_and_take_about_as_long():
    made = plan("mechanism=[adassp]", "calibration=tight", "epsilon=1", "repetitions=7")
    place = {item.key.id: n for n, item in enumerate(made.releases)}
    seconds = [3.0, 5.0, 4.0, 3.0, 5.0, 4.0, 3.0]
    parts = [[place[item.key.id] for item in part.releases] for part in made.balanced(3, seconds)]
    assert sorted(n for part in parts for n in part) == list(range(7))
    assert max(sum(seconds[n] for n in part) for part in parts) == 11, "the least is 9: the case of Graham's bound"
    assert all(part.releases for part in made.balanced(7, [0.0] * 6 + [1.0])), "no task is without work"


@pytest.mark.parametrize("setting", ["a", 1, -1, None, [0]])
def test_a_plan_whose_release_has_a_setting_that_is_not_there_is_refused(bench, setting):
    header, line = make_plan(compose(bench.settings("mechanism=[adassp]", "repetitions=1"))).lines()
    path = bench.folder / "plan.jsonl"
    path.write_text(header + json.dumps({**json.loads(line), "setting": setting}) + "\n")
    with pytest.raises(UserError, match="is damaged"):
        read_plan(path)


def test_a_plan_of_a_later_format_is_not_called_an_earlier_one(bench):
    path = bench.folder / "plan.jsonl"
    path.write_text('{"format": 99}\n')
    with pytest.raises(UserError, match="of another version"):
        read_plan(path)
