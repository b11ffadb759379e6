"""Invalid input: one message, exit code 2, no traceback."""

import pytest

from dpbench.cli import main


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["mechanism=[adasp]"], "unknown mechanism 'adasp'; did you mean 'adassp'?"),
        (["experiment=linreg_adlt"], "did you mean 'linreg_adult'?"),
        (["dataset=adlt"], "unknown dataset 'adlt'"),
        (["epsilom=1"], "unknown setting 'epsilom'; did you mean 'epsilon'?"),
        (["mechanism.adassp.failrue=0.1"], "failrue"),
        (["+mechanism.adassp.failrue=0.1"], "did you mean 'failure'?"),
        (["mechanism.adassp.failure=much"], "must be float, not 'much'"),
        (["mechanism.adassp.failure=2"], "failure must lie between 0 and 1"),
        (["epsilon=0"], "epsilon must be greater than 0, not 0"),
        (["epsilon=[1,-2]"], "epsilon must be greater than 0, not -2"),
        (["epsilon=[1,1]"], "none twice"),
        (["epsilon=[]"], "at least one value"),
        (["epsilon=high"], "epsilon must be a number greater than 0, not 'high'"),
        (["delta=0"], "delta must be between 0 and 1"),
        (["delta=1"], "delta must be between 0 and 1"),
        (["repetitions=0"], "repetitions must be a whole number of at least 1"),
        (["repetitions=2.5"], "repetitions must be a whole number"),
        (["jobs=0"], "jobs must be a whole number of at least 1"),
        (["relation=remove"], "unknown relation 'remove'; did you mean 'add_remove'?"),
        (["relation=replace", "mechanism=[dpctgan]"], "not proven to be under relation=replace; mechanisms that are:"),
        (["repetitions=10000000"], "at most 100,000"),
        (["jobs=1000000"], "jobs must be a whole number of at least 1 and at most 1,024"),
        (["limits.memory_mb=1e18"], "limits.memory_mb must be greater than 0 and at most 100,000,000"),
        (["repetitions=100000", f"epsilon={[i / 10 for i in range(1, 30)]}"], "trials, and 2,000,000 at most"),
        (["+sweep.seed=" + str(list(range(600))).replace(" ", "")], "600 points, and 500 at most"),
        (["seed=" + "9" * 4500], "the settings cannot be read"),
        (["seed=0x" + "f" * 900], "seed"),
        (["limits.seconds=inf"], "limits.seconds must be a finite number"),
        (["limits=null"], "limits=null: a group takes the name of one of its configs, such as limits=full"),
        (["~slurm"], "the setting slurm is missing"),
        (["~report"], "the setting report is missing"),
        (["report=5"], "report must be mapping"),
        (
            ["report.figures=[{name:a,metric:msee}]"],
            "unknown metric of report.figures.0 (a) 'msee'; did you mean 'mse'?",
        ),
        (["report.figures=[{name:a,metric:mse,yscal:log}]"], "'yscal'; did you mean 'yscale'?"),
        (["report.figures=[{name:a,kind:pie}]"], "unknown kind of figure 'pie'"),
        (["report.figures=[{name:a}]"], "a metric_by_epsilon needs metric"),
        (["+mechanism.aim.alpha=0.5"], "mechanism.aim has settings, but aim is not in the grid: mechanism=[...,aim]"),
        (["mechanism.aim.alpha=0.5"], "is aim in the grid? mechanism=[...,aim] adds it"),
        (["as=paper,authors", "mechanism=[gem]"], "as takes the name of one config"),
        (["as=authors", "mechanism=[aim,mst]"], "as=authors sets nothing of this grid: it is for mwem, mwem_past"),
        (["mechanism.adassp._target_=os.system"], "'os.system' is not allowed"),
        (["mechanism.adassp._target_=[a]"], "must name a function"),
        (["mechanism.adassp._target_=dpbench.mechanisms.adassp"], "is module, not a function"),
        (["+mechanism.adassp._versions_=2"], "unknown reserved key of mechanism.adassp '_versions_'"),
        (["+slurm.x=5", "slurm.time='1\n#SBATCH --wrap=x'"], "slurm.time must be one line"),
        (["name='${title}'", "title='${name}'"], "is circular"),
        (["+epsilonn=1"], "unknown setting 'epsilonn'; did you mean 'epsilon'?"),
        (["+design.slope=1"], "unknown setting of design 'slope'"),
        (["calibration=[loose]"], "unknown calibration 'loose'; known: authors, paper, tight"),
        (["dataset.target=height"], "unknown target 'height'"),
        (["model=[logistic_statistics]"], "logistic_statistics: for a target of two levels, which 'grade' is not"),
        (["metric=[auc]"], "choose dataset.target among sex"),
        (
            ["mechanism=[adassp]", "model=[linear_rows]"],
            "none of the models given (linear_rows) reads what adassp releases (statistics)",
        ),
        (["mechanism=[aim]", "mechanism.aim.max_model_mb=1e-5"], "the limit is 1e-05 MB"),
        (["model=[]"], "at least one model"),
        (["design.categorical=dummy"], "unknown encoding 'dummy'"),
        (["design.slope=1"], "design.slope"),
        (["name=../escape"], "name must consist of"),
        (["sample.test_rows=400", "dataset.public=true"], "cannot be split"),
        (
            ["sample.test_rows=50"],
            "sample.test_rows=50: of a table that is not public each row is for testing by its own coin",
        ),
        (["sample.public_rows=5"], "sample.public_rows=5: the table is not public, and so none of its rows is"),
        (["sample.test_rows=-1"], "sample.test_rows must be a whole number of at least 0"),
        (["sample.test_rows=0"], "sample.test_rows=0 leaves mse, mse_unit, r2 without test rows"),
        (["sample.public_rows=-1"], "sample.public_rows must be a whole number of at least 0"),
        (["+sweep={sample.train_rows:100}"], "sweep must map settings to lists"),
        (["sample=null"], "sample=null: a group takes the name of one of its configs, such as sample=full"),
        (["mu=[0]"], "mu must be greater than 0"),
        (["delta=n**1"], "such as n**-1.1"),
        (["epsilon=[0.1"], "cannot be read"),
        (["--shard", "3/2"], "--shard takes I/N"),
        (["--config-dir", "nowhere"], "no such folder"),
    ],
)
def test_the_message_names_what_is_wrong(bench, capsys, settings, message):
    assert main(["run", *bench.settings("jobs=1", *settings)]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert "Traceback" not in error


def test_a_frozen_plan_has_its_own_settings(bench, capsys):
    line = ["run", "--plan", "none.jsonl", f"results={bench.results}", "jobs=1"]
    assert main(line) == 2
    assert "no such plan: none.jsonl" in capsys.readouterr().err
    assert main([*line, "limits=smoke", "sample.train_rows=10"]) == 2
    assert "limits, sample of this line would be left out" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["", "name: grid\n", "{}", "[1]", '{"format": 6}'])
def test_a_file_that_is_no_plan_is_told_without_the_error_of_its_reader(bench, capsys, text):
    (file := bench.folder / "my.yaml").write_text(text)
    for path, told in ((file, "is not a plan as dpbench slurm writes it"), (bench.folder, "cannot be read: Is a dir")):
        assert main(["run", "--plan", str(path), f"results={bench.results}", "jobs=1"]) == 2
        error = capsys.readouterr().err
        assert f"{path} {told}" in error and "Error" not in error


@pytest.mark.parametrize(
    ("csv", "message"),
    [
        ("age,sex\n20,f\n", "grade"),
        ("age,sex,grade,height\n20,f,1,170\n", "height"),
        ("age,sex,grade\n20,x,1\n", "'x'"),
        ("age,sex,grade\n" + "20,f,1\n" * 60 + "101,f,1\n", "61"),
        ("age,sex,grade\n" + "20,f,1\n" * 60 + "old,f,1\n", "old"),
    ],
)
def test_a_table_outside_its_domain_is_reported_before_anything_runs(bench, capsys, csv, message):
    (bench.folder / "my.csv").write_text(csv)
    assert bench.run() == 2
    assert message in capsys.readouterr().err
    assert not bench.trials()


def test_a_target_of_three_levels_is_refused(bench, capsys):
    card = bench.folder / "my.yaml"
    card.write_text(card.read_text().replace("[f, m]", "[f, m, x]"))
    assert bench.run("dataset.target=sex") == 2
    assert "numeric target" in capsys.readouterr().err


def test_clipping_and_dropping_are_offered_and_work(bench, capsys):
    (bench.folder / "my.csv").write_text("age,sex,grade\n" + "20,f,1\n30,m,4\n" * 60 + "101,f,1\n")
    assert bench.run() == 2
    assert "dataset.outside" in capsys.readouterr().err
    assert bench.run("dataset.outside=clip") == 0
    assert bench.run("dataset.outside=drop") == 0


def test_debug_shows_the_traceback(bench):
    from dpbench.errors import UserError

    with pytest.raises(UserError):
        bench.run("--debug", "epsilon=0")


OWN = {
    "yaml": ("experiment/own.yaml", "# @package _global_\na: [", "own.yaml, line "),
    "package": ("experiment/own.yaml", "name: own", 'must begin with the line "# @package _global_"'),
    "override": ("experiment/own.yaml", "# @package _global_\ndefaults:\n  - dataset: adult", "override /dataset: "),
    "folder": (
        "experiment/own.yaml",
        "# @package _global_\ndefaults:\n  - linreg_adult",
        "must say '- /experiment/dd_ssp/linreg_adult'",
    ),
    "bomb": (
        "experiment/own.yaml",
        "a: &a [1, 1]\n"
        + "".join(f"a{k}: &a{k} [{', '.join(['*a' + (str(k - 1) if k else '')] * 9)}]\n" for k in range(9)),
        "too large for a configuration",
    ),
}


@pytest.mark.parametrize("case", OWN)
def test_what_is_wrong_in_a_file_of_ones_own(bench, capsys, case):
    name, text, message = OWN[case]
    path = bench.folder / "own" / name
    path.parent.mkdir(parents=True)
    path.write_text(text)
    assert main(["run", "experiment=own", "--dry-run", "--config-dir", str(bench.folder / "own")]) == 2
    error = capsys.readouterr().err
    assert message in error and len(error.splitlines()) < 5


def test_a_data_file_calls_nothing_outside(bench, capsys, monkeypatch):
    folder = bench.folder / "own" / "dataset"
    folder.mkdir(parents=True)
    (folder / "evil.yaml").write_text(
        "_target_: dpbench.data.tabular.load_csv\nname: evil\ntarget: y\npath: x.csv\n"
        "attributes: {_target_: subprocess.run, args: [touch, called]}\n"
    )
    for line in (["run", "--dry-run", "dataset=evil"], ["data", "card", "evil"], ["figures", "dataset=evil", "name=a"]):
        assert main([*line, "--config-dir", str(bench.folder / "own")]) == 2
        assert "'subprocess.run' is not allowed" in capsys.readouterr().err


def test_threads_must_be_a_number(bench, capsys, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "abc")
    assert bench.run() == 2
    assert "OMP_NUM_THREADS must be a whole number from 1 to 1024, not 'abc'" in capsys.readouterr().err


def test_an_unknown_option_or_command_is_refused(capsys):
    for line in (["run", "--forec"], ["rum"], ["list", "cars"], ["run", "adult"]):
        with pytest.raises(SystemExit) as stop:
            main(line)
        assert stop.value.code == 2
