"""`dpbench data`: cards, checks and downloads."""

import json

from dpbench.cli import main


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
