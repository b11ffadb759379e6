"""The Python interface does what the command line does, and says what it says."""

import inspect
import math
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

import dpbench
from dpbench.cli import main
from dpbench.config.registry import declared
from dpbench.contracts import parameters_of
from dpbench.data.domain import Domain
from dpbench.errors import UserError
from dpbench.grid.own_checks import NOT_CHECKED
from dpbench.models.fit import Fit
from dpbench.targets import resolve

DOMAIN = {
    "age": {"bounds": [16, 100], "bins": 6, "unit": "years"},
    "sex": {"levels": ["f", "m"]},
    "grade": {"values": {"from": 1, "to": 5}},
}


@pytest.fixture(scope="module")
def table():
    """500 rows whose grade rises with age."""
    rng = np.random.default_rng(0)
    age = rng.integers(16, 100, 500)
    return pd.DataFrame({"age": age, "sex": rng.choice(["f", "m"], 500), "grade": 1 + (age - 16) // 17})


def test_importing_it_imports_no_library_and_says_what_there_is():
    code = (
        "import sys, dpbench; print(dir(dpbench)); print([m for m in ('numpy', 'pandas', 'hydra') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    names, heavy = done.stdout.splitlines()
    assert heavy == "[]"
    for name in ("run", "results", "release", "fit", "figure", "mechanisms", "UserError"):
        assert repr(name) in names
    with pytest.raises(AttributeError, match="no attribute 'runs'"):
        dpbench.runs  # noqa: B018


def test_the_package_of_mechanisms_lists_them_whenever_it_was_imported():
    """It has the name of the function."""
    code = "import dpbench\n{}\nprint(len(dpbench.mechanisms()), dpbench.mechanisms.ssp.ssp.__name__)"
    for first in ("import dpbench.mechanisms.ssp", "dpbench.mechanisms(); import dpbench.mechanisms.ssp"):
        line = [sys.executable, "-c", code.format(first)]
        done = subprocess.run(line, capture_output=True, text=True, check=True)
        assert done.stdout.split() == [str(len(declared("mechanism"))), "ssp"]


# --- grids ---------------------------------------------------------------------------------------------------------


def test_a_run_of_the_command_line_goes_on_here_and_the_other_way_round(bench, capsys):
    assert bench.run("mechanism=[exact,adassp]", "repetitions=2", "epsilon=[0.5]") == 0
    out = capsys.readouterr().out
    again = dpbench.run(bench.settings("jobs=1", "mechanism=[exact,adassp]", "repetitions=2", "epsilon=[0.5]"))
    assert (again.planned, again.ran, again.statuses) == (4, 0, {"done": 4})
    assert again.table in out and repr(again) == f"<Run of 4 trials in {bench.results / 'grid'}: 4 done; 0 ran now>"
    settings = dict(item.split("=", 1) for item in bench.settings("jobs=1", "repetitions=3"))
    more = dpbench.run({**settings, "mechanism": ["exact", "adassp"], "repetitions": 3, "epsilon": [0.5]})
    assert (more.planned, more.ran) == (6, 2)
    assert main(["run", str(more.folder), "--dry-run"]) == 0
    assert "6 planned, 6 stored here" in capsys.readouterr().out


def test_results_are_the_trials_that_export_writes_and_figures_those_that_figures_draws(bench, capsys):
    bench.has_run()
    folder = bench.results / "grid"
    found = dpbench.results(folder)
    assert main(["export", str(folder)]) == 0
    pd.testing.assert_frame_equal(found, pd.read_parquet(bench.results / "export" / "grid.parquet"), check_dtype=False)
    assert found["trial"].nunique() == 6 and set(found["mechanism"]) == {"exact", "adassp"}
    assert isinstance(dpbench.figure(folder), Figure)
    assert not (folder / "figures").exists()
    with pytest.raises(UserError, match=r"unknown figure of .*grid: 'msee'; did you mean 'mse'"):
        dpbench.figure(folder, "msee")


def test_figures_and_results_of_a_paper_are_those_of_its_exports():
    drawn = dpbench.figure("dd_ssp", "figure3a", other_code=True)
    assert [axes.get_title() for axes in drawn.axes][:1] == ["Adult"]
    assert set(dpbench.results("linreg_adult", other_code=True)["dataset"]) == {"adult"}


@pytest.mark.parametrize(
    ("call", "line"),
    [
        (lambda: dpbench.run([]), ["run"]),
        (lambda: dpbench.run("quickstart"), ["run", "quickstart"]),
        (lambda: dpbench.run({"experiment": "quickstrat"}), ["run", "experiment=quickstrat"]),
        (lambda: dpbench.run({"epsilon": -1, "mechanism": ["ssp"]}), ["run", "epsilon=-1", "mechanism=[ssp]"]),
        (lambda: dpbench.results("quickstart"), ["figures", "experiment=quickstart"]),
    ],
)
def test_what_is_wrong_is_said_as_on_the_command_line(tmp_path, monkeypatch, capsys, call, line):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(dpbench.UserError) as raised:
        call()
    with pytest.raises(SystemExit, match="2"):
        sys.exit(main(line))
    assert capsys.readouterr().err == f"dpbench: {raised.value}\n"


def test_a_source_that_is_nothing_is_told():
    with pytest.raises(UserError, match="unknown folder, paper or experiment 'dd_sp'; did you mean 'dd_ssp'"):
        dpbench.results("dd_sp")


def test_ones_own_folder_is_in_use_for_its_call_alone(tmp_path):
    (tmp_path / "mechanism").mkdir()
    (tmp_path / "mechanism" / "mine.yaml").write_text("# My own. It is short.\nmine: {_offers_: [rows]}\n")
    listed = dpbench.mechanisms(config_dir=tmp_path)
    assert listed.loc["mine"].to_list() == ["synthetic data", "add_remove", "rows", "My own"]
    assert list(dpbench.mechanisms().index) == [name for name in listed.index if name != "mine"]
    with pytest.raises(UserError, match="absent: no such folder"):
        dpbench.run(["experiment=quickstart"], config_dir=tmp_path / "absent")


# --- releases ------------------------------------------------------------------------------------------------------


def test_a_release_has_rows_marginals_and_its_cost_over_the_domain(table):
    made = dpbench.release(table, DOMAIN, mechanism="aim", epsilon=2, delta=1e-6, rows=300, rounds=3)
    assert len(made.rows) == 300 and set(made.rows["sex"]) <= {"f", "m"} and made.rows["grade"].between(1, 5).all()
    assert made.marginals["age", "sex"].shape == (6, 2)
    assert made.spent.delta == 1e-6 and 1.9 < made.spent.epsilon <= 2 * (1 + 1e-9)
    assert repr(made) == (
        "<Release of marginals, rows, distribution over 3 attributes: epsilon=2, delta=1e-06, add_remove>"
    )


def test_noise_is_fresh_unless_a_seed_is_given(table):
    def noisy(**given):
        return dpbench.release(table, DOMAIN, mechanism="gaussian_marginals", **given).marginals["age", "sex"]

    assert not np.array_equal(noisy(), noisy())
    assert np.array_equal(noisy(seed=1), noisy(seed=1)) and not np.array_equal(noisy(seed=1), noisy(seed=2))


def test_a_domain_may_be_a_file_or_an_object_and_a_value_outside_of_it_may_be_clipped(table, tmp_path):
    (tmp_path / "my.yaml").write_text("age: {bounds: [16, 50], bins: 6}\nsex: {levels: [f, m]}\ngrade: 6\n")
    with pytest.raises(UserError, match=r"is not a number in \[16, 50\]"):
        dpbench.release(table, tmp_path / "my.yaml", mechanism="mst")
    made = dpbench.release(table, str(tmp_path / "my.yaml"), mechanism="mst", outside_domain="clip")
    assert isinstance(made.domain, Domain) and made.domain["age"].bounds == (16, 50)
    assert dpbench.release(made.rows, made.domain, mechanism="mst").domain is made.domain


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"mechanism": "aimm"}, "unknown mechanism 'aimm'; did you mean 'aim'"),
        ({"workloads": 2}, "unknown parameter of mechanism.aim 'workloads'; did you mean 'workload'"),
        ({"alpha": "much"}, "mechanism.aim.alpha must be float"),
        ({"epsilon": 0}, "epsilon must be greater than 0"),
        ({"epsilon": math.inf}, "epsilon must be finite"),
        ({"delta": 2}, "delta must lie between 0 and 1"),
        ({"relation": "remove"}, "unknown relation"),
        ({"calibration": "loose"}, "unknown calibration 'loose'"),
        ({"mechanism": "gem"}, "gem is private under replace, and not proven to be under relation=add_remove"),
        ({"mechanism": "exact_table"}, "it releases the rows as they are"),
        ({"mechanism": "ssp"}, "ssp regresses: give the target, one of age, sex, grade"),
        ({"mechanism": "objpert", "target": "grade"}, "objpert is for a target of two levels"),
        ({"mechanism": "dpsgd_test_error", "target": "grade"}, "looks at test rows"),
        ({"public": pd.DataFrame({"sex": ["f"]})}, "aim takes no public rows"),
    ],
)
def test_a_release_that_cannot_be_made_is_told(table, given, message):
    with pytest.raises(UserError, match=message):
        dpbench.release(table, DOMAIN, **given)


def test_public_rows_are_handed_over_and_told(table):
    given = {"mechanism": "pmw_pub", "relation": "replace", "rounds": 2}
    made = dpbench.release(table, DOMAIN, public=table[:100], **given)
    assert any("public data" in text for text in made.nonprivate_inputs)
    with pytest.raises(UserError, match="these have no grade"):
        dpbench.release(table, DOMAIN, public=table[["sex", "age"]], **given)
    with pytest.raises(UserError, match="pmw_pub needs public rows"):
        dpbench.release(table, DOMAIN, **given)


def test_a_mechanism_of_ones_own_is_held_to_its_budget_and_named_as_not_checked(table, tmp_path):
    (tmp_path / "mechanism").mkdir()
    for name, share in (("honest", 1), ("greedy", 2)):
        (tmp_path / "mechanism" / f"{name}.yaml").write_text(
            f"{name}: {{_target_: mine.noisy, _offers_: [marginals], share: {share}}}"
        )
    (tmp_path / "mine.py").write_text(
        "from dpbench.privacy.ledger import Ledger\n"
        "from dpbench.privacy.noise import laplace\n"
        "from dpbench.releases import Marginals, Release\n\n\n"
        "def noisy(train, budget, rng, *, share: float):\n"
        "    ledger, sex = Ledger(), train.marginal(('sex',))\n"
        "    given = {'sensitivity': 1.0, 'multiplier': 1 / (share * budget.epsilon), 'label': 'sex'}\n"
        "    noisy = laplace(rng, ledger, sex, **given)\n"
        "    return Release(train.domain, budget, ledger, (Marginals({('sex',): noisy}),))\n"
    )
    made = dpbench.release(table, DOMAIN, mechanism="honest", config_dir=tmp_path)
    assert made.nonprivate_inputs == (NOT_CHECKED,) and made.spent.epsilon == pytest.approx(1, rel=1e-4)
    with pytest.raises(Exception, match=r"spent epsilon = 1.99\d+, the budget was 1"):
        dpbench.release(table, DOMAIN, mechanism="greedy", config_dir=tmp_path)


def test_no_part_has_a_parameter_that_the_interface_would_take_for_its_own():
    """But PATE, whose `delta` is that of the budget if it is not set."""
    taken = {}
    for group, function in (("mechanism", dpbench.release), ("model", dpbench.fit)):
        own = {one.name for one in inspect.signature(function).parameters.values() if one.kind is one.KEYWORD_ONLY}
        for name, node in declared(group).items():
            taken[name] = own & set(parameters_of(group, resolve(group, node["_target_"])))
    assert {name: found for name, found in taken.items() if found} == {"pate": {"delta"}, "pate_laplace": {"delta"}}


# --- fits ----------------------------------------------------------------------------------------------------------


def test_a_fit_of_a_release_is_near_that_of_the_rows_and_predicts_in_the_targets_unit(table):
    made = dpbench.release(table, DOMAIN, mechanism="gaussian_marginals", epsilon=50, seed=0)
    private = dpbench.fit(made, model="linear_marginals", target="grade")
    real = dpbench.fit(table, model="linear_rows", target="grade", domain=DOMAIN)
    assert list(private.coefficients.index) == ["age", "sex=m", "(intercept)"] and private.coefficients.name == "grade"
    assert np.abs(private.coefficients - real.coefficients).max() < 0.1
    rows = pd.DataFrame({"sex": ["f", "m"], "age": [20, 95]}, index=[7, 8])
    assert real.predict(rows).to_dict() == pytest.approx({7: 1, 8: 5}, abs=0.5)
    assert repr(private) == "<linear_marginals of grade on 3 features>" and isinstance(private.fit, Fit)
    with pytest.raises(UserError, match="linear_marginals gives no intervals"):
        private.intervals  # noqa: B018
    with pytest.raises(UserError, match="declared but missing: age"):
        real.predict(rows[["sex"]])


def test_a_target_of_two_levels_is_predicted_by_a_score(table):
    fitted = dpbench.fit(table, model="logistic_rows", target="sex", domain=DOMAIN)
    scores = fitted.predict(table)
    assert len(scores) == len(table) and scores.name == "sex"


def test_intervals_stand_by_feature(table):
    made = dpbench.release(table, DOMAIN, mechanism="ssp_intervals", target="grade", epsilon=20, seed=0)
    intervals = dpbench.fit(made, model="linear_statistics_intervals", target="grade").intervals
    assert list(intervals.columns) == ["lower", "upper"] and (intervals["lower"] < intervals["upper"]).all()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"model": "linear_row", "domain": DOMAIN}, "did you mean 'linear_rows'"),
        ({"model": "linear_rows"}, "a data frame needs its domain"),
        ({"model": "linear_marginals", "domain": DOMAIN}, "reads marginals, and here are rows; models .* linear_rows"),
        ({"model": "logistic_rows", "domain": DOMAIN}, "logistic_rows is for a target of two levels"),
        ({"model": "linear_rows", "domain": DOMAIN, "penalty": 1}, "unknown parameter of model.linear_rows 'penalty'"),
    ],
)
def test_a_fit_that_cannot_be_made_is_told(table, given, message):
    with pytest.raises(UserError, match=message):
        dpbench.fit(table, target="grade", **given)
