"""What is stored is what was computed: by the code, from the rows and under the salt that the plan names."""

import json
import lzma
from pathlib import Path

import numpy as np
import pytest

from dpbench.cli import main
from dpbench.config import compose
from dpbench.data.dataset import Dataset
from dpbench.data.encode import Design
from dpbench.data.load import load_dataset
from dpbench.data.secret_split import coin_splitter
from dpbench.data.table import split
from dpbench.grid import seeds
from dpbench.grid.code import code_of
from dpbench.grid.plan import make_plan
from dpbench.grid.records import ReleaseKey
from dpbench.grid.releases import read_release
from dpbench.grid.store import Store

OWN = '''
import numpy as np
from dpbench.data.secret_split import coin_splitter
from dpbench.data.encode import Design
from dpbench.releases import Release
from dpbench.mechanisms.ssp import ssp

def mine(train, budget, rng, *, design: Design) -> Release:
    """SSP, by the code of now."""
    return ssp(train, budget, rng, design=design)
'''


@pytest.fixture
def own(bench):
    folder = bench.folder / "own"
    (folder / "mechanism").mkdir(parents=True)
    (folder / "own_code.py").write_text(OWN)
    (folder / "mechanism" / "mine.yaml").write_text("mine:\n  _target_: own_code.mine\n  _offers_: [statistics]\n")
    return folder


def edit(own):
    """One more statistic that costs budget: other code, and other results."""
    (own / "own_code.py").write_text(OWN.replace("design=design)", "design=design, intervals=True)"))


def run(bench, own, *more):
    return bench.run("--config-dir", str(own), "mechanism=[mine]", "--unchecked", *more)


def releases_of(bench, mechanism):
    """The record and the arrays of each stored release of a mechanism."""
    store = Store(bench.results, "grid")
    for identity, entry in sorted(store.releases.scan().items()):
        stored = read_release(store, identity, entry.place)
        if stored.record["key"]["mechanism"]["name"] == mechanism:
            data, arrays = stored.release.to_parts()
            yield {**stored.record, "release": data}, arrays


def release_of(bench, mechanism):
    """The first of them."""
    return next(releases_of(bench, mechanism))


def recovered(bench, generator, record, arrays):
    """X'X of an AdaSSP release less the noise that this generator would have added."""
    statistics, p = record["release"]["statistics"], len(arrays["statistics.xty"])
    generator.normal()  # of the smallest eigenvalue
    noise = np.zeros((p, p))
    upper = np.triu_indices(p)
    noise[upper] = generator.normal(0.0, statistics["xtx_sd"], size=len(upper[0]))
    return arrays["statistics.xtx"] - noise - np.triu(noise, 1).T


def true_moments(bench, record):
    config = {"_target_": "dpbench.data.tabular.load_csv", "name": "csv", "path": f"{bench.folder}/my.csv"}
    table = load_dataset(Dataset.of({**config, "domain": f"{bench.folder}/my.yaml"}))
    key = record["key"]
    if "coins" in key["split"]:
        name = seeds.canonical([key["dataset"]["name"], key["seed"], key["repetition"]])
        sizes = key["split"]["test_rows"], key["split"]["coins"]
        train = coin_splitter(table, seeds.secret_key("split"))(name, *sizes).train
    else:
        source = {part: key["dataset"][part] for part in ("name", "sources")}
        rng = seeds.generator("split", [source, key["seed"], key["repetition"]])
        train = split(table, rng, **key["split"]).train
    X, _ = Design(table.domain, "grade").encode(train)
    return X.T @ X


@pytest.mark.parametrize("public", [True, False])
def test_the_noise_of_a_private_release_cannot_be_subtracted(bench, public):
    """From what is stored anybody can do this for public rows, whose noise is reproducible; for private ones nobody
    who lacks the salt."""
    assert bench.run("mechanism=[adassp]", f"dataset.public={str(public).lower()}", "repetitions=1") == 0
    record, arrays = release_of(bench, "adassp")
    code = None if public else code_of("dpbench.mechanisms.adassp.adassp")
    seed = ReleaseKey.from_dict(record["key"]).noise_seed(code)
    attacked = recovered(bench, seeds.noise_generator(seed, public=True), record, arrays)
    assert np.allclose(attacked, true_moments(bench, record), atol=1e-6) == public
    mine = recovered(bench, seeds.noise_generator(seed, public=public), record, arrays)
    assert np.allclose(mine, true_moments(bench, record), atol=1e-6)  # the attack is right, the salt is what it lacks


@pytest.mark.parametrize("public", [True, False])
def test_two_versions_of_the_code_share_their_noise_on_public_rows_alone(bench, own, public):
    """Who has the same noise at two scales has the statistics without any."""
    settings = (f"dataset.public={str(public).lower()}", "repetitions=1")
    assert run(bench, own, *settings) == 0
    edit(own)  # the statistic more leaves less of the budget to the others
    assert run(bench, own, *settings) == 0
    records, arrays = zip(*releases_of(bench, "mine"), strict=True)
    (one, other), (s, t) = (
        [array["statistics.xtx"] for array in arrays],
        [r["release"]["statistics"]["xtx_sd"] for r in records],
    )
    assert s != t
    assert np.allclose((t * one - s * other) / (t - s), true_moments(bench, records[0]), atol=1e-6) == public


def test_nothing_stored_holds_the_salt_or_the_plain_checksum_of_private_rows(bench):
    assert bench.run("repetitions=1") == 0
    import hashlib

    secrets = [seeds.salt_file().read_text(), hashlib.sha256((bench.folder / "my.csv").read_bytes()).hexdigest()]
    for path in bench.results.rglob("*"):
        if path.is_file():
            assert not any(secret in path.read_text(errors="replace") for secret in secrets), path


def test_another_salt_is_other_data(bench, monkeypatch, capsys):
    bench.has_run()
    monkeypatch.setenv(seeds.SALT, str(bench.folder / "another"))
    assert bench.run() == 0
    assert "6 ran now" in capsys.readouterr().out.splitlines()[-1]


def test_rows_that_changed_after_the_plan_was_frozen_are_not_computed(bench, capsys):
    assert main(["slurm", "--print", *bench.settings("shards=1")]) == 0
    (plan,) = bench.results.glob("grid/slurm/*/shard-1.jsonl")
    csv = bench.folder / "my.csv"
    csv.write_text(csv.read_text().replace("\n20,", "\n21,", 1) + "30,f,1\n")
    capsys.readouterr()
    assert main(["run", "--plan", str(plan), f"results={bench.results}", "jobs=1"]) == 2
    assert "its sources changed after the plan was made" in capsys.readouterr().err
    assert not bench.trials()


def test_code_that_changed_after_the_plan_was_frozen_is_not_run(bench, own, capsys):
    line = ["--config-dir", str(own)]
    assert main(["slurm", "--print", *bench.settings(*line, "mechanism=[mine]", "metric=[r2]", "shards=1")]) == 0
    (plan,) = bench.results.glob("grid/slurm/*/shard-1.jsonl")
    edit(own)
    capsys.readouterr()
    assert main(["run", "--plan", str(plan), f"results={bench.results}", "jobs=1", *line]) == 1
    told = capsys.readouterr()
    assert "the code of mine" in told.err
    assert "r2" in told.out and "mse" not in told.out  # the table is of a metric of the plan
    assert {trial["status"] for trial in bench.trials().values()} <= {"failed"}


def test_results_of_an_edited_mechanism_are_not_averaged_with_those_before(bench, own, capsys):
    assert run(bench, own, "repetitions=2") == 0
    edit(own)
    capsys.readouterr()
    assert main(["status", "--config-dir", str(own), f"results={bench.results}"]) == 0
    assert run(bench, own, "repetitions=3") == 0
    assert "3 ran now" in capsys.readouterr().out
    assert len(bench.trials()) == 5
    assert main(["status", "--config-dir", str(own), f"results={bench.results}"]) == 0
    assert "3 done, 0 left" in capsys.readouterr().out


def test_status_names_results_of_other_code_and_an_option_accepts_them(bench, own, capsys):
    assert run(bench, own, "repetitions=2") == 0
    edit(own)
    settings = bench.settings("--config-dir", str(own), "mechanism=[mine]", "repetitions=3", "jobs=1")
    assert main(["run", *settings, "--dry-run"]) == 0
    assert "3 planned, 0 stored here" in capsys.readouterr().out
    assert main(["run", *settings, "--other-code"]) == 0
    out = capsys.readouterr().out
    assert "1 ran now" in out
    assert "2 of them are by other versions of the code" in out
    assert main(["status", "--config-dir", str(own), f"results={bench.results}"]) == 0
    assert "2 of those left are stored by other versions of the code" in capsys.readouterr().out
    assert main(["figures", *settings[:-1], "name=grid", "--other-code"]) == 0
    tables = "".join(path.read_text() for path in (bench.results / "grid" / "tables").glob("*.md"))
    assert "2 trials are by other versions of the code" in tables
    assert "More than one version of the code" in tables


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"id": 1}', "\0" * 500])
def test_a_damaged_trial_is_told_and_computed_again(bench, capsys, caplog, content):
    bench.has_run()
    expected = bench.trials()
    victim = bench.edit_trial(lambda line: f"{content}\n")
    assert main(["status", f"results={bench.results}"]) == 0
    assert "1 left" in capsys.readouterr().out
    assert bench.run() == 0
    assert "1 ran now" in capsys.readouterr().out
    assert f"{victim.name} is damaged" in caplog.text
    assert bench.trials() == expected


def test_a_trial_that_was_damaged_is_told_until_it_is_computed_again(bench, caplog):
    bench.has_run()
    bench.edit_trial(lambda line: line.replace('"done"', '"fine"'))
    assert main(["status", f"results={bench.results}"]) == 0
    assert "is damaged" in caplog.text
    assert bench.run() == 0
    caplog.clear()
    assert main(["status", f"results={bench.results}"]) == 0
    assert not caplog.text


def test_edited_scores_are_rejected(bench, capsys):
    bench.has_run()
    expected = bench.trials()

    def edit(line):
        trial = json.loads(line)
        trial["scores"][0]["value"] = 0.001
        return json.dumps(trial, sort_keys=True) + "\n"

    bench.edit_trial(edit)
    assert bench.run() == 0
    assert bench.trials() == expected


def test_a_release_that_stands_in_anothers_place_is_not_read(bench, caplog):
    bench.has_run()
    store = Store(bench.results, "grid")
    (one, entry), (other, _), *_ = store.releases.scan().items()
    assert read_release(store, one, entry.place) is not None
    assert read_release(store, other, entry.place) is None
    assert "is not the release of its name" in caplog.text


def test_what_was_not_paid_for_stands_in_the_release(bench):
    declared = "+dataset.unpaid=the levels that occur"
    assert bench.run("+dataset.bounds=data", declared, "delta=n**-1.1", "mechanism=[adassp]", "repetitions=1") == 0
    record, _ = release_of(bench, "adassp")
    inputs = record["release"]["nonprivate_inputs"]
    assert "the levels that occur" in inputs
    assert any("bounds of the attributes" in text for text in inputs)
    assert any("delta" in text and "n**-1.1" in text for text in inputs)
    (trial,) = bench.trials().values()
    assert trial["nonprivate_inputs"] == inputs


def test_a_trial_on_a_release_of_another_experiment_names_what_its_own_settings_took(bench):
    """The release was made for a delta that was given; then one that is taken from the number of rows comes to it."""
    one = ["mechanism=[adassp]", "repetitions=1"]
    delta = make_plan(compose(bench.settings(*one, "delta=n**-1.1"))).releases[0].key.budget.delta
    assert bench.run(*one, f"delta={delta!r}") == 0
    assert bench.run(*one, "delta=n**-1.1", "name=other") == 0
    assert len(list(releases_of(bench, "adassp"))) == 1
    (given,), (taken,) = bench.trials().values(), bench.trials("other").values()
    assert given["nonprivate_inputs"] == [] and "n**-1.1" in taken["nonprivate_inputs"][0]


@pytest.mark.parametrize("order", [[0, 1], [1, 0]])
def test_a_release_of_two_points_of_a_sweep_names_what_the_settings_of_either_took(bench, order):
    one = ["mechanism=[adassp]", "repetitions=1"]
    delta = make_plan(compose(bench.settings(*one, "delta=n**-1.1"))).releases[0].key.budget.delta
    values = [("n**-1.1", repr(delta))[k] for k in order]
    (item,) = make_plan(compose(bench.settings(*one, f"+sweep={{delta: [{','.join(values)}]}}"))).releases
    assert "n**-1.1" in item.nonprivate_inputs[0]


def test_a_setting_chosen_on_a_release_of_the_same_table_is_named():
    def inputs(dataset):
        plan = make_plan(compose(["experiment=linreg_adult", f"dataset={dataset}", "mechanism=[dpsgd]"]))
        return plan.releases[0].nonprivate_inputs

    assert any("adult_synth" in text for text in inputs("adult"))
    assert not inputs("adult_synth")


def test_the_export_of_private_results_holds_no_text_of_errors(bench, own, capsys):
    (own / "own_code.py").write_text(OWN.replace("return ssp", "raise ValueError('the row of Alice'); return ssp"))
    assert run(bench, own, "repetitions=1") == 1
    settings = bench.settings("--config-dir", str(own), "mechanism=[mine]", "repetitions=1")
    assert main(["figures", *settings, "name=grid"]) == 0
    export = lzma.decompress((bench.results / "grid" / "trials.jsonl.xz").read_bytes()).decode()
    assert "ValueError" in export
    assert "Alice" not in export
    assert str(Path(bench.folder)) not in export


METRIC = '''
from dpbench.metrics.evaluation import Evaluation, Score

def powered(evaluation: Evaluation, *, power: float = 2.0) -> Score:
    """The mean of a power of the absolute error on the test rows."""
    X, y = evaluation.reference.test
    return Score("powered", float((abs(y - evaluation.fit.predict(X)) ** power).mean()), "", "lower")
'''


def test_a_metrics_parameters_belong_to_what_it_measures(bench, capsys):
    folder = bench.folder / "own"
    (folder / "metric").mkdir(parents=True)
    (folder / "own_metric.py").write_text(METRIC)
    (folder / "metric" / "powered.yaml").write_text("powered:\n  _target_: own_metric.powered\n  power: 2.0\n")
    own = ["--config-dir", str(folder), "metric=[mse,powered]", "mechanism=[exact]", "repetitions=2"]
    assert bench.run(*own) == 0
    assert bench.run(*own, "metric.powered.power=1.0") == 0
    assert "2 ran now" in capsys.readouterr().out.splitlines()[-1]
    values = {
        (trial["key"]["metrics"]["powered"]["parameters"]["power"], score["name"]): score["value"]
        for trial in bench.trials().values()
        for score in trial["scores"]
        if trial["key"]["release"]["repetition"] == 0
    }
    assert values[2.0, "powered"] == values[2.0, "mse"] == values[1.0, "mse"] != values[1.0, "powered"]
