"""`dpbench list` and `dpbench show`: what the config folders hold."""

import re

import pytest

from dpbench.cli import main
from dpbench.config import choices
from dpbench.config.catalogue import TASKS


@pytest.mark.parametrize(
    ("group", "names"),
    [
        ("datasets", ["adult", "adult_synth", "csv"]),
        ("mechanisms", ["adassp", "aim", "exact", "ssp"]),
        ("models", ["linear_marginals", "linear_rows", "linear_statistics"]),
        ("as", ["authors", "paper"]),
        ("experiments", ["linreg_adult", "linreg_adult_all_attributes", "quickstart"]),
    ],
)
def test_list_names_the_group(capsys, group, names):
    assert main(["list", group]) == 0
    listed = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert set(names) <= set(listed)


def test_experiments_are_listed_by_paper_and_without_their_bases(capsys):
    assert main(["list", "experiments"]) == 0
    words = [line.split() for line in capsys.readouterr().out.splitlines()]
    papers = {word[0]: word[1] for word in words}
    assert papers["linreg_adult"] == "dd_ssp" and papers["binagg_table1"] == "binagg"
    assert not [name for name in papers if name.startswith("_")]


def test_mechanisms_are_listed_by_privacy_task_and_relation(capsys):
    assert main(["list", "mechanisms"]) == 0
    lines = [re.split(" {2,}", line)[:3] for line in capsys.readouterr().out.splitlines()]
    listed = {name: (task, privacy) for name, task, privacy in lines}
    assert listed["adassp"] == ("regression", "add_remove, replace") and listed["gem"] == ("synthetic data", "replace")
    assert listed["pate"][0] == "classification" and listed["residual_planner"][0] == "marginals"
    assert listed["exact"] == ("regression", "not private")
    order = [(privacy == "not private", TASKS.index(task), privacy, name) for name, task, privacy in lines]
    assert order == sorted(order) and len(order) == len(choices("mechanism"))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("experiment=linreg_adult", ["(dd_ssp)", "dataset=adult\n", "mechanism=[exact,", "figure linreg_adult"]),
        ("experiment=binagg_ratio", ["over "]),
        ("paper=dd_ssp", ["arXiv 2405.15002", "linreg_adult", "figure figure3a: Linear regression"]),
        ("dataset=adult", ["rows are public", "age", "sha256"]),
        ("limits=smoke", ["model_mb"]),
        ("mechanism=[ssp,mst]", ["mechanism ssp ", "mechanism mst "]),
    ],
)
def test_show_takes_what_list_names(capsys, given, said):
    assert main(["show", given]) == 0
    out = capsys.readouterr().out
    for text in said:
        assert text in out, text


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ([], "say what to show, such as dpbench show mechanism=aim"),
        (["paper=dd_sp"], "did you mean 'dd_ssp'"),
        (["limits=smok"], "did you mean 'smoke'"),
        (["epsilon=1"], "unknown setting to show 'epsilon'"),
    ],
)
def test_what_cannot_be_shown_is_told(capsys, line, said):
    assert main(["show", *line]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("mechanism", sorted(choices("mechanism")))
def test_show_gives_source_privacy_and_parameters(capsys, mechanism):
    assert main(["show", f"mechanism={mechanism}"]) == 0
    out = capsys.readouterr().out
    for part in ("**Source**", "**Privacy**", "**Shapes**", "offers "):
        assert part in out, part


def test_show_names_a_parameter_as_it_is_set(capsys):
    main(["show", "mechanism=aim"])
    assert "mechanism.aim.max_model_mb=80" in capsys.readouterr().out
