"""`dpbench list` and `dpbench show`: what the config folders hold."""

import pytest

from dpbench.cli import main
from dpbench.config import choices


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


@pytest.mark.parametrize("mechanism", sorted(choices("mechanism")))
def test_show_gives_source_privacy_and_parameters(capsys, mechanism):
    assert main(["show", f"mechanism={mechanism}"]) == 0
    out = capsys.readouterr().out
    for part in ("**Source**", "**Privacy**", "**Shapes**", "offers "):
        assert part in out, part


def test_show_names_a_parameter_as_it_is_set(capsys):
    main(["show", "mechanism=aim"])
    assert "mechanism.aim.max_model_mb=80" in capsys.readouterr().out
