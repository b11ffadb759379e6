"""`dpbench data`: cards, checks and downloads."""

import json

from dpbench.cli import main
from dpbench.config import composed


def test_a_card_states_how_the_synthetic_copy_was_made(capsys):
    assert main(["data", "card", "adult_synth"]) == 0
    out = capsys.readouterr().out
    for word in ("AIM", "epsilon", "delta", "seed", "commit"):
        assert word in out


def test_check_holds_a_table_against_its_card(tmp_path, capsys):
    (tmp_path / "my.csv").write_text("a,b\n1,0\n0,1\n")
    (tmp_path / "sizes.json").write_text(json.dumps({"a": 2, "b": 2}))
    settings = [f"dataset.path={tmp_path}/my.csv", f"dataset.domain={tmp_path}/sizes.json", "dataset.target=a"]
    assert main(["data", "check", *settings]) == 0
    out = capsys.readouterr().out
    assert "2 rows x 2 attributes fit" in out and "sample.train_rows=1," in out
    (tmp_path / "my.csv").write_text("a,b\n1,0\n0,2\n")
    assert main(["data", "check", *settings]) == 2


def test_an_absent_download_names_file_places_command_and_alternative(monkeypatch, tmp_path, capsys):
    monkeypatch.delenv("DPBENCH_DATA_MIRRORS", raising=False)
    monkeypatch.setenv("DPBENCH_CACHE", str(tmp_path))
    assert main(["data", "fetch", "adult", "--offline"]) == 2
    error = capsys.readouterr().err
    for part in (
        "adult.data",
        str(tmp_path),
        "DPBENCH_DATA_MIRRORS",
        "dpbench data fetch adult",
        "dataset=adult_synth",
    ):
        assert part in error


def test_a_domain_that_is_nested_too_deep_is_refused(bench, capsys):
    for name, text in (("deep.yaml", "a: " + "[" * 20_000 + "]" * 20_000), ("deep.json", '{"a":' + "[" * 20_000)):
        (bench.folder / name).write_text(text)
        assert main(["data", "check", "dataset.path=my.csv", f"dataset.domain={name}"]) == 2
        assert "nested too deep" in capsys.readouterr().err


def test_a_config_that_ships_no_table_is_refused(capsys):
    assert main(["data", "check", "adult_synth", "dataset.shipped=null"]) == 2
    assert "shipped must name a table" in capsys.readouterr().err


def test_an_attribute_of_too_many_levels_is_named(bench, capsys):
    levels = [f"l{k}" for k in range(100_000)]
    (bench.folder / "many.json").write_text(json.dumps({"city": {"levels": levels}, "grade": {"values": [1, 2]}}))
    (bench.folder / "many.csv").write_text("city,grade\n" + "".join(f"l{k},{1 + k % 2}\n" for k in range(99)))
    own = [f"dataset.{name}" for name in ("path=many.csv", "domain=many.json", "target=grade")]
    assert main(["data", "check", *own]) == 0
    assert "city has 100,000 levels: more than 20,000 cannot be one-hot" in capsys.readouterr().out
    assert (
        main(["run", "dataset=csv", *own, "mechanism=[exact]", "repetitions=1", "sample.test_rows=0.2", "jobs=1"]) == 2
    )
    assert capsys.readouterr().err.endswith("merge levels, or leave it out (dataset.drop=[city])\n")
    assert not (bench.folder / "results").exists()  # with the plan, before any trial
    assert main(["run", "dataset=csv", *own, "mechanism=[mst]", "model=[released_answers]", "--dry-run",
                 "metric=[query_error_mean]", "metric.query_error_mean.workload=1"]) == 0  # fmt: skip


def test_many_attributes_are_said_to_have_many_pairs(bench, capsys):
    names = [f"x{k}" for k in range(202)]
    (bench.folder / "wide.yaml").write_text("".join(f"{name}: {{levels: [a, b]}}\n" for name in names))
    (bench.folder / "wide.csv").write_text(f"{','.join(names)}\n" + f"{','.join(['a'] * 202)}\n" * 20)
    own = ["dataset.path=wide.csv", "dataset.domain=wide.yaml"]
    said = "202 attributes have 20,301 pairs: mechanisms that look at each, such as mst and aim, take minutes or hours"
    assert main(["data", "check", *own]) == 0 and said in capsys.readouterr().out
    assert (
        main(["data", "check", *own, "dataset.drop=[x0]"]) == 0
        and "201 attributes have 20,100" in capsys.readouterr().out
    )
    assert main(["data", "check", *own, "dataset.drop=[x0,x1]"]) == 0 and "pairs" not in capsys.readouterr().out


def test_the_titles_that_are_listed_are_those_that_the_configs_make(tmp_path, capsys):
    (tmp_path / "dataset").mkdir()
    (tmp_path / "dataset" / "mine.yaml").write_text("defaults: [adult_income, _self_]\nname: mine\n")
    (tmp_path / "dataset" / "other.yaml").write_text("defaults: [adult, _self_]\nname: other\ncard: {title: Another}\n")
    assert main(["data", "list", "--config-dir", str(tmp_path)]) == 0
    listed = dict(line.split(": ", 1) for line in capsys.readouterr().out.splitlines())
    assert "csv" not in listed and len(listed) > 50
    for name in ("mine", "other", "adult", "adult_income", "loans_without_state"):
        config = composed([f"dataset={name}"], tmp_path)["dataset"]
        assert listed[config["name"]] == config["card"]["title"], name
