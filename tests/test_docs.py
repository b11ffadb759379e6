"""The numbers in docs/ are in the results, and its links exist."""

import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

from dpbench.report.site.concepts import PICTURES, draw

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
PAPERS = ("dd_ssp", "binagg", "bayesian_glm", "excess_risk", "query_release")
VERBS = {"agree": "agrees", "disagree": "disagrees", "differ": "differs"}  # plural -> singular
AS_PRINTED = "~claim.str.contains('without the')"  # BinAgg's correction as published, not left out
# page -> row of its first table -> what its counts are of, in order: tables, their rows, the column of verdicts
COUNTS = {
    "dd_ssp": {
        "Table 1": [("datasets", "~experiments.str.contains('coverage_adult|degree4|all_attributes|poisson')")],
        "Figure 3a": [
            ("statements", "figure == 'figure3a' and metric != 'seconds' and calibration == 'paper'"),
            ("statements", "figure == 'figure3a' and metric != 'seconds' and calibration == 'authors'"),
            ("statements", "figure == 'figure3a' and metric != 'seconds' and calibration == 'tight'"),
            ("statements", "figure == 'figure3a' and metric != 'seconds' and calibration.isna()"),
        ],
        "Figure 3b": [
            ("statements", "figure == 'figure3b' and metric != 'seconds' and calibration == 'paper'"),
            ("statements", "figure == 'figure3b' and metric != 'seconds' and calibration == 'tight'"),
            ("statements", "figure == 'figure3b' and metric != 'seconds' and calibration.isna()"),
        ],
        "G.3 and G.4": [
            ("statements", "claim.str.contains('run time') and figure != 'model_size'"),
            ("statements", "claim.str.contains('demands')"),
            ("statements", "claim.str.contains('MST is faster')"),
            ("statements", "figure == 'model_size'"),
        ],
        "Figure 5 (linear)": [
            ("statements", "figure == 'figure5_top' and metric != 'seconds' and calibration == 'paper'"),
            ("statements", "figure == 'figure5_top' and metric != 'seconds' and calibration == 'tight'"),
        ],
        "Figure 5 (logistic)": [
            ("statements", "figure == 'figure5_bottom' and calibration == 'paper'"),
            ("statements", "figure == 'figure5_bottom' and calibration == 'tight'"),
        ],
        "Figure 6 (linear)": [
            ("statements", "figure == 'figure6_top' and calibration == 'paper'"),
            ("statements", "figure == 'figure6_top' and calibration == 'tight'"),
        ],
        "Figure 6 (logistic)": [
            ("statements", "figure == 'figure6_bottom' and calibration == 'paper'"),
            ("statements", "figure == 'figure6_bottom' and calibration == 'tight'"),
        ],
    },
    "binagg": {
        "Figure 1": [
            (
                "statements",
                "claim.str.startswith('AdaSSP is slightly worse than BinAgg (') and calibration == 'paper'",
            ),
            ("statements", "claim == 'AdaSSP is slightly worse than BinAgg' and calibration == 'paper'"),
            ("statements", "claim == 'AdaSSP is slightly worse than BinAgg' and calibration == 'tight'"),
            ("statements", "claim == 'BinAgg and DP-GD perform comparably well overall'"),
            ("statements", "claim.str.contains('^(?:SSP|JLT) performs poorly, ') and calibration == 'paper'"),
        ],
        "Figure 2": [
            ("statements", "figure == 'figure2' and claim.str.contains('as published') and calibration == 'paper'"),
            ("statements", "figure == 'figure2' and ~claim.str.contains('as published') and calibration == 'paper'"),
            ("statements", "figure == 'figure2' and ~claim.str.contains('as published') and calibration == 'tight'"),
        ],
        "Table 1": [
            ("table1", "series == 'BinAgg (paper)' and quantity in ('bias', 'coverage')", "verdict, published"),
            ("table1", "series == 'BinAgg (paper)' and quantity.str.contains('SD')", "verdict, published"),
            ("table1", "series == 'BinAgg (paper)' and quantity == 'naive coverage'", "verdict, published"),
            ("statements", "figure == 'table1' and claim.str.contains('nominal')"),
            ("statements", "figure == 'table1' and claim.str.contains('naive')"),
        ],
        "Table 2": [
            ("table2", "series == 'BinAgg, published correction (paper)'"),
            ("table2", "series in ('AdaSSP (paper)', 'DP-GD')"),
            ("statements", "figure == 'table2' and claim.str.contains('as published') and calibration != 'tight'"),
        ],
        "Table 3": [
            ("table3", "verdict.notna()"),
            ("table3", "series == 'BinAgg, ML (paper)'"),
            ("statements", "figure == 'table3' and claim.str.contains('lowest error') and calibration == 'paper'"),
            ("statements", "figure == 'table3' and claim.str.contains('lowest error') and calibration.isna()"),
            ("statements", "figure == 'table3' and claim.str.contains('follow')"),
        ],
        "Table 5": [
            ("statements", "figure == 'table5' and calibration != 'tight'"),
            ("averages", "calibration != 'tight'"),
        ],
        "Table 6": [
            ("table6", "series == 'BinAgg, published correction (paper)' and verdict.notna()"),
            *(
                ("statements", f"claim.str.contains('tuning') and {AS_PRINTED} and calibration == '{calibration}'")
                for calibration in ("paper", "tight")
            ),
        ],
        "Table 7": [
            ("table7", "series == 'BinAgg, published correction (paper)'"),
            *(
                ("statements", f"claim.str.contains('the ratio') and {AS_PRINTED} and calibration == '{calibration}'")
                for calibration in ("paper", "tight")
            ),
            ("statements", f"claim.str.contains('than 1:1:1:1') and {AS_PRINTED} and calibration == 'paper'"),
            ("statements", f"claim.str.contains('even with') and {AS_PRINTED} and calibration != 'tight'"),
        ],
        "Table 8": [
            ("table8", "series == 'BinAgg, naive (paper)' and `median inside`.notna()", "median inside"),
            ("statements", "figure == 'table8'"),
        ],
    },
    "bayesian_glm": {
        "Figure 3": [
            ("statements", "figure == 'distances' and panel == 'pima' and metric == 'ks_distance'"),
            ("statements", "figure == 'distances' and panel == 'pima' and metric == 'credible_width'"),
        ],
        "Figure 4": [
            ("statements", "figure == 'distances' and panel == 'adult_five' and metric == 'ks_distance'"),
            ("statements", "figure == 'distances' and panel == 'adult_five' and metric == 'credible_width'"),
        ],
        "Section 4.3": [
            ("statements", "figure == 'coverage_norm' and claim.str.contains('suspected')"),
            ("statements", "figure == 'coverage_norm' and claim.str.contains('quadrature')"),
        ],
        "Figure 5": [
            ("statements", f"figure == 'figure5_ks' and claim.str.contains('{claim}')")
            for claim in ("accurate", "tend to overlap", "crucial")
        ],
        "Figure 6": [
            ("statements", f"figure == 'figure6_ks' and claim.str.contains('{claim}')")
            for claim in ("tend to overlap", "crucial")
        ],
        "Section 10": [("statements", "claim.str.contains('not as strong')")],
        "Section 4.1": [
            ("statements", f"claim.str.contains('R-hat') and claim.str.endswith('{claim}')")
            for claim in ("logistic regression", "Taylor series", "posteriors")
        ],
        "Section 1": [("statements", "figure == 'calibration_95'")],
    },
    "excess_risk": {
        "Figure 3": [
            ("statements", "figure.str.startswith('figure3') and claim.str.startswith('at')"),
            ("statements", "figure.str.startswith('figure3') and claim.str.startswith('the higher')"),
            ("statements", "figure.str.startswith('figure3') and claim.str.contains('at most')"),
            ("statements", "claim.str.contains('lowest accuracy')"),
        ],
        "Table 2": [
            ("table2_accuracy table2_auc table2_log_loss", "verdict.notna()"),
            ("table2_authors_accuracy table2_authors_auc table2_authors_log_loss", "series.str.startswith('AIM')"),
        ],
        "Figure 2": [("statements", "figure == 'figure2'")],
        "Figure 4": [("statements", "figure == 'figure4'")],
        "Figure 5": [("statements", "figure.str.startswith('figure5')")],
    },
    "query_release": {
        "Tables 1 to 3": [("protocol", "fact.notna()")],
        **{
            row: [("statements", f"figure in {figures!r}")]
            for row, figures in {
                "Figure 1": ("figure1",),
                "Figure 2a": ("figure2a",),
                "Figure 2b": ("figure2b", "figure2b_reduced"),
                "Figure 3": ("figure3_mean", "figure3_rmse"),
                "Figure 4": ("figure4_mean", "figure4_rmse"),
                "Figure 5": ("figure5_mean", "figure5_rmse"),
                "Figure 6": ("figure6",),
                "Figure 7": ("figure7", "figure7_mean", "figure7_rmse"),
                "Figure 8": ("figure8", "figure8_mean", "figure8_rmse"),
                "Figures 1, 3, 6 and 7 by the best of each grid": (
                    "figure1_grid",
                    "figure3_grid_mean",
                    "figure6_grid",
                    "figure7_grid",
                ),
            }.items()
        },
    },
}
VERDICTS = {  # of a table -> on a page
    "agrees": "agree", "cannot tell": "cannot tell", "disagrees": "disagree", "equal": "equal", "differs": "differ",
    "within": "within", "higher": "higher", "lower": "lower", "not precise enough": "not precise enough",
    "yes": "inside", "no": "outside", "not run": "not run", "in the grid": "in the grid",
}  # fmt: skip
LINK = re.compile(r"\]\((?!http)([^)#]+)")
CONCEPTS = sorted((ROOT / "docs" / "concepts").glob("*.md"))
HAND_WRITTEN = [*sorted((ROOT / "docs").glob("*.md")), *CONCEPTS]
DOCS = sorted(path.stem for path in (ROOT / "docs").glob("*.md") if any((ROOT / "results" / path.stem).glob("*/*.csv")))


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


@pytest.mark.parametrize("page", [*sorted(ROOT.glob("*.md")), *HAND_WRITTEN], ids=lambda page: page.stem)
def test_links_to_files_lead_to_files(page):
    links = LINK.findall(re.sub(r"\s+", " ", page.read_text()))
    assert [link for link in links if not (page.parent / link).exists()] == []


def counted(paper, tables, rows, column="verdict"):
    """How often each verdict stands in some rows of tables of a paper, as a page writes it."""
    folder = ROOT / "results" / paper / "tables"
    read = pd.concat(pd.read_csv(folder / f"{table}.csv") for table in tables.split())
    if tables == "statements":
        read = read.merge(pd.read_csv(folder / "claims.csv"), on="statement")
    verdicts = read.query(rows, engine="python")[column].str.split(":").str[0].map(VERDICTS)
    numbers = verdicts.value_counts()
    words = [(n, word) for word in VERDICTS.values() if (n := numbers.get(word, 0))]
    return ", ".join(f"{n} {VERBS.get(word, word) if n == 1 else word}" for n, word in words)


@pytest.mark.parametrize("paper", PAPERS)
def test_the_counts_of_a_page_are_those_of_the_tables(paper):
    opening = (ROOT / "docs" / f"{paper}.md").read_text().split("\n## Details\n")[0]
    counts = re.compile(rf"\d+ (?:{'|'.join([*VERDICTS.values(), *VERBS.values()])})\b")
    written = {}
    for row in re.findall(r"^\| (.*) \|$", opening, re.M):
        name, _, verdicts, _ = re.split(r" *\| *", row)
        if found := counts.findall(verdicts):
            written[name.split(":")[0]] = ", ".join(found)
    assert written == {
        row: ", ".join(counted(paper, *group) for group in groups) for row, groups in COUNTS[paper].items()
    }


@pytest.mark.parametrize("paper", PAPERS)
def test_a_page_on_a_paper_opens_with_one_short_table_and_three_findings(paper):
    page = (ROOT / "docs" / f"{paper}.md").read_text()
    opening, details = page.split("\n## Details\n")
    assert details
    assert len(re.findall(r"^\| --- ", opening, re.M)) == 1
    assert len(re.findall(r"^- ", opening, re.M)) == 3
    assert len(opening.split()) <= 900
    bullets = [re.split(r"\n(?=\s*- |\n|\|)", bullet)[0] for bullet in re.split(r"^\s*(?=- )", page, flags=re.M)[1:]]
    assert [bullet[:60] for bullet in bullets if len(bullet.split()) > 121] == []  # 120 and the dash


@pytest.mark.parametrize("page", HAND_WRITTEN, ids=lambda page: page.stem)
def test_links_to_headings_lead_to_headings(page):
    missing = []
    for name, anchor in re.findall(r"\]\((?!http)([^)#\s]*\.md)?#([^)]+)\)", re.sub(r"\s+", " ", page.read_text())):
        headings = re.findall(r"^#+ (.*)$", (page.parent / (name or page.name)).read_text(), re.M)
        if anchor not in {re.sub(r"[^\w\- ]", "", heading).lower().replace(" ", "-") for heading in headings}:
            missing.append(f"{name}#{anchor}")
    assert missing == []


@pytest.mark.parametrize("page", CONCEPTS, ids=lambda page: page.stem)
def test_a_page_on_a_concept_is_short_and_opens_with_its_picture(page):
    lines = page.read_text().splitlines()
    assert len(lines) <= 120 and max(len(line) for line in lines if not line.startswith("![")) <= 120
    assert re.fullmatch(rf"!\[.{{40,}}\]\({page.stem}\.svg\)", lines[2])


def test_the_pictures_of_concepts_are_what_the_code_draws(tmp_path):
    assert [page.stem for page in CONCEPTS] == sorted(one.__name__ for one in PICTURES)
    for path in draw(ROOT, tmp_path):
        assert path.read_text() == (ROOT / "docs" / "concepts" / path.name).read_text(), path.name
        assert ElementTree.parse(path).getroot().find("{http://www.w3.org/2000/svg}title") is not None
