"""The numbers in docs/ are in the results, and its links exist."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

ROOT = Path(__file__).parents[1]
PAIR = re.compile(r"(-?\d+(?:\.(\d+))?) ± (\d+(?:\.(\d+))?)")
VALUES, ERRORS = ("mean", "median"), ("se", "half")
ELSEWHERE = {  # pairs that no table has: what they are
    "arena": {
        "0.011 ± 0.010", "0.007 ± 0.007",  # paired differences from 1,000 real rows
    },
    "dd_ssp": {
        "0.0047 ± 0.0031",  # a paired difference between two experiments
        "0.59 ± 0.04", "0.44 ± 0.03", "0.45 ± 0.02",  # pooled over releases
    },
    "excess_risk": {
        "0.046 ± 0.013",  # a paired difference between two epsilons
        "0.0037 ± 0.0021", "0.0028 ± 0.0020",  # a cost with indicators minus that with codes
    },
}  # fmt: skip
LINK = re.compile(r"\]\((?!http)([^)#]+)")
DOCS = sorted(path.stem for path in (ROOT / "docs").glob("*.md") if (ROOT / "results" / path.stem).is_dir())


def drawn(paper):
    """Means or medians, and standard errors or halves of intervals (n, 2), of all tables and figures of a paper."""
    found = []
    for path in (ROOT / "results" / paper).glob("*/*.csv"):
        table = pd.read_csv(path, low_memory=False)
        if {"low", "high"} <= set(table):
            table["half"] = (table["high"] - table["low"]) / 2
        for value in table.columns.intersection(VALUES):
            found += [table[[value, error]].dropna().to_numpy(float) for error in table.columns.intersection(ERRORS)]
    return np.concatenate(found)


def as_written(values, digits):
    """Which numbers, or percentages of them, are within half a unit of the last digit."""
    return np.abs(values) <= 0.5 * 10.0**-digits * (1 + 1e-9)


@pytest.mark.parametrize("paper", DOCS)
def test_every_number_with_an_error_stands_in_a_table_or_figure_of_the_paper(paper):
    found = drawn(paper)
    text = re.sub(r"\s+", " ", (ROOT / "docs" / f"{paper}.md").read_text().replace(" %", ""))
    unknown = set()
    for match in PAIR.finditer(text):
        value, digits, error, error_digits = match.groups()
        stands = [
            as_written(np.abs(scale * found[:, 0]) - abs(float(value)), len(digits or ""))
            & as_written(scale * found[:, 1] - float(error), len(error_digits or ""))
            for scale in (1, 100)
        ]
        if not np.any(stands):
            unknown.add(match.group())
    assert unknown <= ELSEWHERE.get(paper, set())


@pytest.mark.parametrize(
    "page", [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md"))], ids=lambda page: page.stem
)
def test_links_to_files_lead_to_files(page):
    links = LINK.findall(re.sub(r"\s+", " ", page.read_text()))
    assert [link for link in links if not (page.parent / link).exists()] == []
