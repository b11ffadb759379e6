"""`dpbench data declare --private`: bounds and levels that are paid for, and are on record."""

import json
import re

import numpy as np
import pandas as pd
import pytest

from dpbench.cli import main
from dpbench.commands import declare as command
from dpbench.data.declare import read_domain_file


@pytest.fixture(autouse=True)
def own(tmp_path, monkeypatch):
    monkeypatch.setenv("DPBENCH_SALT", str(tmp_path / "state" / "salt"))
    monkeypatch.chdir(tmp_path)
    rng, n = np.random.default_rng(0), 2000
    days = pd.to_datetime("2023-01-01") + pd.to_timedelta(rng.integers(0, 730, n), "D")
    table = pd.DataFrame({"day": days, "grade": rng.integers(1, 9, n), "region": rng.choice(["01", "02", "03"], n)})
    table["income"] = [f"${value:.2f}" if value > 20 else "NA" for value in rng.uniform(0, 200, n)]
    table["group"], table["email"] = rng.choice(["1", "2", "many"], n, p=[0.2, 0.2, 0.6]), "a@example.org"
    table.loc[0, ["grade", "region", "group"]] = [900, "99", "secret"]
    table.to_csv("my.csv", index=False)


def declared(*more, out="my.yaml", epsilon="2"):
    return main(["data", "declare", "my.csv", "--private", epsilon, "--out", out, *more])


def history(capsys, *more):
    capsys.readouterr()
    assert main(["release", "--history", "dataset=csv", "dataset.path=my.csv", *more]) == 0
    return capsys.readouterr().out


def test_bounds_and_levels_are_those_of_many_rows_and_the_table_then_fits(tmp_path, capsys):
    assert declared() == 0
    domain = read_domain_file(tmp_path / "my.yaml")
    text = "".join(re.findall(r"^[^#].*", (tmp_path / "my.yaml").read_text(), re.MULTILINE))
    assert domain["grade"].values == tuple(range(1, 11)) and domain["income"].bounds[1] == 200
    assert domain["income"].missing and domain["income"].unit == "$" and domain["income"].decimals is None
    assert domain["region"].levels == ("01", "02", "03") and domain["group"].levels == ("1", "2", "many")
    assert [domain["day"].text(day) for day in domain["day"].bounds] == ["2023-01-01", "2024-12-31"]
    for value in ("900", "99", "secret", "example"):
        assert value not in text
    line = ["data", "check", "dataset.path=my.csv", "dataset.domain=my.yaml", "dataset.drop=[email]"]
    assert main([*line, "dataset.outside=drop", "sample.test_rows=0"]) == 0


def test_the_odometer_has_it_and_a_release_adds_to_it(tmp_path, capsys):
    assert declared(epsilon="0.5") == 0
    about = json.loads((tmp_path / "my.ledger.json").read_text())
    assert about["spent"]["epsilon"] == pytest.approx(0.5) and len(about["ledger"]) == 2 * 5
    assert re.search(r"data declare +0\.5 +1e-05 +0\.5\n", history(capsys))
    (tmp_path / "own.yaml").write_text("grade: {values: {from: 1, to: 8}}\nregion: {levels: ['01', '02', '03']}\n")
    line = ["release", "dataset=csv", "dataset.path=my.csv", "dataset.domain=own.yaml", "mechanism=mst", "epsilon=1"]
    assert main([*line, "dataset.drop=[day,income,group,email]", "dataset.outside=drop", "--out", "out"]) == 0
    said = (tmp_path / "out" / "statement.md").read_text()
    assert "together spent ε = 1.5" in said and "but for what a release named data declare above paid for" in said


def test_what_would_exceed_the_limit_is_refused_before_its_noise(tmp_path, capsys, monkeypatch):
    history(capsys, "--limit", "1")
    assert declared(epsilon="0.7", out="one.yaml") == 0
    monkeypatch.setattr(command, "stable_histograms", None)  # is not reached
    assert declared(epsilon="0.7", out="two.yaml") == 2
    assert "would exceed the limit of 1" in capsys.readouterr().err and not list(tmp_path.glob("two*"))
    assert "1 releases" in history(capsys)


def test_it_is_on_record_before_its_noise_is_drawn(capsys, monkeypatch):
    def dies(rng, *given):
        assert "1 releases" in history(capsys)
        rng.random()
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "stable_histograms", dies)
    assert declared() == 130
    assert "not finished: counts in full" in history(capsys)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--from-public", "my.csv"], "give one"),
        (["relation=replace"], "adding or removing a row"),
        (["--private", "inf"], "finite epsilon"),
        (["--private", "-1"], "epsilon must be greater than 0"),
        (["dataset.drop=[day,grade,region,income,group]"], "declare them by hand"),
        (["--out", "my.csv"], "it is kept"),
    ],
)
def test_what_cannot_be_is_said_and_nothing_begins(capsys, more, said):
    assert declared(*more) == 2 and said in capsys.readouterr().err
    assert "0 releases" in history(capsys)


def test_it_needs_a_place(capsys):
    assert main(["data", "declare", "my.csv", "--private", "1"]) == 2 and "give --out" in capsys.readouterr().err
