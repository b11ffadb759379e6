"""What docs/own_table.md shows works: its files are written, and its commands and its script are run."""

import re
import shlex

import numpy as np
import pandas as pd
import pytest

from dpbench.cli import main
from dpbench.resources import PACKAGE

PAGE = (PACKAGE.parent / "docs" / "own_table.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


@pytest.fixture
def loans(tmp_path, monkeypatch):
    """The page's declaration and a table with dates, money, percents and missing values that fits it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DPBENCH_SALT", str(tmp_path / "state" / "salt"))
    (declaration,) = (text for language, text in BLOCKS if language == "yaml")
    (tmp_path / "loans.yaml").write_text(declaration)
    rng, n = np.random.default_rng(0), 600
    debt = [f"{share:.1f}%" if share < 150 else "NA" for share in rng.uniform(0, 200, n)]
    table = pd.DataFrame({"granted": pd.to_datetime("2023-01-01") + pd.to_timedelta(rng.integers(0, 730, n), "D")})
    table["amount"] = [f"${amount}" for amount in rng.integers(0, 50_001, n)]
    table["debt"], table["reason"] = debt, rng.choice(["home", "car", "debts", ""], n)
    table["children"], table["repaid"] = rng.integers(0, 7, n), rng.choice(["no", "yes"], n)
    table.to_csv("loans.csv", index=False)
    return tmp_path


def test_the_page_from_the_first_command_to_the_last_line(loans, capsys):
    for language, text in BLOCKS:
        for line in text.replace("\\\n", " ").splitlines() if language == "sh" else ():
            assert main(shlex.split(line)[1:]) == 0, line
    said = capsys.readouterr().out
    assert "loans.csv: 2 releases" in said and "limit: epsilon = 3" in said
    for script in (text for language, text in BLOCKS if language == "python"):
        exec(script, {})
    assert "own_estimate" in capsys.readouterr().out
    rows = pd.read_csv(loans / "rows" / "synthetic.csv")
    assert rows["amount"].dtype == rows["children"].dtype == int and rows["debt"].isna().any()
    assert pd.to_datetime(rows["granted"], format="%Y-%m-%d").between("2023-01-01", "2024-12-31").all()
    assert "$ for one unit of a feature" in (loans / "coefficients" / "coefficients.md").read_text()


def test_the_page_is_short_and_names_what_there_is():
    assert len(PAGE.splitlines()) <= 120
    for name in ("synthetic.csv", "coefficients.csv", "statement.md", "ledger.json", "odometer.jsonl"):
        assert name in PAGE
