"""`dpbench figures` draws what is stored, and only that; the same trials give the same bytes."""

import json
import shutil

import pytest

from dpbench.cli import main
from dpbench.grid.store import sealed

SETTINGS = [
    "experiment=quickstart",
    "limits=smoke",
    "mechanism=[exact,adassp]",
    "repetitions=2",
    "epsilon=[0.5,1]",
]


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    assert main(["run", *SETTINGS, "jobs=1", f"results={folder}"]) == 0
    return folder


def drawn(folder):
    names = ("figures/quickstart.pdf", "figures/quickstart.png", "figures/quickstart.csv")
    names += tuple(f"tables/quickstart.{kind}" for kind in ("csv", "md", "tex"))
    return {name: (folder / "quickstart" / name).read_bytes() for name in (*names, "trials.jsonl")}


def test_figures_are_drawn_from_trials_and_again_from_the_export_alone(results, tmp_path, capsys):
    assert main(["figures", *SETTINGS, f"results={results}"]) == 0
    from_trials = drawn(results)
    assert "limits: smoke" in from_trials["tables/quickstart.md"].decode()
    (tmp_path / "quickstart").mkdir()
    shutil.copy(results / "quickstart" / "trials.jsonl", tmp_path / "quickstart")
    assert main(["figures", *SETTINGS, f"results={tmp_path}"]) == 0
    assert drawn(tmp_path) == from_trials


def test_other_settings_do_not_mix_with_what_is_stored(results, capsys):
    assert main(["figures", *SETTINGS, "delta=1e-6", f"results={results}"]) == 2
    assert "holds no trial of this plan" in capsys.readouterr().err


def test_an_unfinished_plan_is_labelled(results, tmp_path):
    shutil.copytree(results, tmp_path / "copy")
    trials = sorted((tmp_path / "copy" / "quickstart" / "trials").glob("*.json"))
    trials[0].unlink()
    assert main(["figures", *SETTINGS, f"results={tmp_path}/copy"]) == 0
    text = (tmp_path / "copy" / "quickstart" / "tables" / "quickstart.md").read_text()
    assert f"{len(trials) - 1} of {len(trials)} planned trials" in text


def test_a_failed_trial_is_counted_in_its_cell(results, tmp_path):
    shutil.copytree(results, tmp_path / "copy")
    for path in (tmp_path / "copy" / "quickstart" / "trials").glob("*.json"):
        trial = json.loads(path.read_text())
        if trial["key"]["release"]["mechanism"]["name"] == "adassp" and trial["key"]["release"]["repetition"] == 1:
            error = {"type": "RuntimeError", "message": "", "traceback": ""}
            del trial["checksum"]
            path.write_text(sealed({**trial, "status": "failed", "phase": "model", "scores": [], "error": error}))
    assert main(["figures", *SETTINGS, f"results={tmp_path}/copy"]) == 0
    assert "1 failed" in (tmp_path / "copy" / "quickstart" / "tables" / "quickstart.md").read_text()


def test_nothing_stored_is_a_clear_message(tmp_path, capsys):
    assert main(["figures", f"results={tmp_path}"]) == 2
    assert "dpbench run experiment=quickstart" in capsys.readouterr().err


PAPER = """
title: A small paper
report:
  panels: {adult_synth: Synthetic Adult}
  labels: {exact/linear_statistics: public, adassp/linear_statistics: AdaSSP}
  figures:
    - {name: both, metric: mse, title: Both, experiments: [quickstart, linreg_adult_all_attributes]}
"""


@pytest.fixture
def config_dir(tmp_path):
    (tmp_path / "conf" / "paper").mkdir(parents=True)
    (tmp_path / "conf" / "paper" / "small.yaml").write_text(PAPER)
    return tmp_path / "conf"


def test_a_paper_is_drawn_from_the_experiments_that_have_results(results, tmp_path, config_dir, capsys):
    shutil.copytree(results, tmp_path / "copy")
    settings = [*SETTINGS[1:], f"results={tmp_path}/copy", "--config-dir", str(config_dir)]
    assert main(["figures", "paper=small", *settings]) == 0
    assert f"{tmp_path}/copy/small/figures/both.png" in capsys.readouterr().out
    text = (tmp_path / "copy" / "small" / "tables" / "both.md").read_text().replace("\\", "")
    assert "Experiments not run: linreg_adult_all_attributes. limits: smoke." in text
    assert not (tmp_path / "copy" / "small" / "tables" / "statements.md").exists(), "it has no published file"


def test_without_a_name_papers_with_results_are_drawn_too(results, tmp_path, config_dir, capsys):
    shutil.copytree(results, tmp_path / "copy")
    settings = [*SETTINGS[1:], f"results={tmp_path}/copy", "--config-dir", str(config_dir)]
    assert main(["figures", *settings]) == 0
    out = capsys.readouterr().out
    assert out.index("copy/quickstart/figures/quickstart.png") < out.index("copy/small/figures/both.png")
    assert "dd_ssp" not in out


def test_a_paper_of_other_settings_says_that_nothing_of_them_was_run(results, tmp_path, config_dir, capsys):
    shutil.copytree(results, tmp_path / "copy")
    settings = [*SETTINGS[1:], "delta=1e-6", f"results={tmp_path}/copy", "--config-dir", str(config_dir)]
    assert main(["figures", "paper=small", *settings]) == 0
    assert not (tmp_path / "copy" / "small" / "figures").exists()
    assert "both is not drawn" in capsys.readouterr().out


def test_a_paper_beside_an_experiment_or_unknown_is_a_clear_message(capsys):
    assert main(["figures", "paper=dd_ssp", "experiment=quickstart"]) == 2
    assert "either paper=" in capsys.readouterr().err
    assert main(["figures", "paper=dd_sp"]) == 2
    assert "did you mean 'dd_ssp'" in capsys.readouterr().err
