"""The table of claims: what each verdict says, with numbers worked by hand."""

import csv
import math
from dataclasses import replace

import pytest

from dpbench.config import Paper, compose
from dpbench.report.claims.verdicts import write_verdicts
from dpbench.report.frames.results import Results

from ..made_up import LABELS, make_trial

FIGURE = {"name": "figure1", "metric": "mse", "title": "T", "experiments": ["on_adult", "on_taxi", "on_fire"]}
STATEMENT = {
    "claim": "DD-SSP is better", "where": "section 4", "figure": "figure1", "relation": "better",
    "method": "aim/linear_marginals", "baseline": "adassp/linear_statistics",
}  # fmt: skip
MARGINS = {"mse": {"part": 0.1, "of": "exact/linear_statistics", "reason": "a tenth is little"}}
OFFSETS = (1.0, 1.2, 0.8, 1.1, 0.9)  # of the baseline: mean 1, standard error sqrt(0.025 / 5) = 0.0707


@pytest.fixture(scope="module")
def quickstart():
    return compose(["experiment=quickstart"])


@pytest.fixture
def written(quickstart, tmp_path):
    """The Markdown and the rows of the CSV of these statements on {data set: trials}."""

    def write(found, *statements, split="fresh"):
        results = {one: Results(quickstart, []) for one in FIGURE["experiments"]}
        for name, trials in found.items():
            dataset = replace(quickstart.dataset, name=name)
            sample = replace(quickstart.sample, split=split)
            experiment = replace(quickstart, name=f"on_{name}", dataset=dataset, sample=sample)
            results[f"on_{name}"] = Results(experiment, trials)
        report = {"panels": {"adult": "Adult"}, "labels": LABELS, "figures": [FIGURE]}
        claims = {"margins": MARGINS, "statements": [STATEMENT | one for one in statements]}
        paths = write_verdicts(Paper("p", "A paper", report, claims), results, tmp_path)
        text, table, _ = (path.read_text() for path in paths) if paths else ("", "", "")
        return text.replace("\\", ""), list(csv.DictReader(table.splitlines()))

    return write


def trials_of(offsets=OFFSETS, dataset="adult", epsilon=1.0):
    """DD-SSP with an error of 10 and AdaSSP with `offsets` more, by repetition; the reference has 10 too."""
    return [
        make_trial(*method, at, place, error, dataset=dataset)
        for place, offset in enumerate(offsets)
        for method, at, error in (
            (("aim", "linear_marginals"), epsilon, 10.0),
            (("adassp", "linear_statistics"), epsilon, 10.0 + offset),
            (("exact", "linear_statistics"), math.inf, 10.0),
        )
    ]


def test_the_caption_says_what_the_repetitions_draw_anew(written):
    for split, drawn in (("fresh", "split and the noise"), ("fixed", "noise")):
        text, _ = written({"adult": trials_of()}, {}, split=split)
        assert f"The repetitions draw the {drawn} anew from one data set" in text


@pytest.mark.parametrize(
    ("relation", "factor", "cell", "margin"),
    [
        ("better", 1, "agrees: 1.000 ± 0.071 (5)", "0"),
        ("better", -1, "disagrees: -1.000 ± 0.071 (5)", "0"),
        ("not_worse", -0.5, "agrees: -0.500 ± 0.035 (5)", "1"),  # the interval ends 2.78 errors, 0.1, below
        ("not_worse", -1, "cannot tell: -1.000 ± 0.071 (5)", "1"),
        ("similar", 2, "disagrees: 2.00 ± 0.14 (5)", "1"),
    ],
)
def test_a_cell_has_verdict_difference_error_and_pairs_with_its_margin(relation, factor, cell, margin, written):
    text, rows = written({"adult": trials_of([factor * offset for offset in OFFSETS])}, {"relation": relation})
    assert f"| Adult | AdaSSP | {margin} | {cell} |" in text
    assert "|  | against | margin | ε = 1 |" in text
    verdict = cell.split(":")[0]
    assert [row["verdict"] for row in rows] == [verdict] and float(rows[0]["difference"]) == pytest.approx(factor)
    counts = " | ".join("1" if name == verdict else "0" for name in ("agrees", "disagrees", "cannot tell", "not run"))
    assert f"| 1 | DD-SSP is better | figure1 | AdaSSP | {counts} |" in text


def test_the_rule_and_the_margin_are_reported_with_their_reason(written, monkeypatch):
    text, _ = written({"adult": trials_of()}, {}, {"relation": "similar", "claim": "They are alike"})
    assert "By how much the mse of DD-SSP is better than that of AdaSSP. The claim, better: agrees if" in text
    assert "The margin is 0.1 of the mse of public: a tenth is little." in text
    assert "## 1. DD-SSP is better" in text and "## 2. They are alike" in text
    assert "The 2 comparisons are not corrected for their number" in text
    monkeypatch.setitem(MARGINS, "mse", {"absolute": 0.5, "reason": "half is little"})
    text, _ = written({"adult": trials_of()}, {"relation": "similar", "symbol": "teachers"})
    assert "The margin is 0.5: half is little." in text and "| margin | teachers = 1 |" in text


def test_what_was_not_run_has_no_number_and_is_not_counted_as_a_comparison(written):
    text, rows = written({"adult": trials_of()}, {"at": [0.5, 1.0]})
    assert "| Adult | AdaSSP | 0 | not run | agrees: 1.000 ± 0.071 (5) |" in text
    assert "| AdaSSP | 1 | 0 | 0 | 1 |" in text and "The 1 comparisons" in text
    assert [(row["x"], row["verdict"]) for row in rows] == [("0.5", "not run"), ("1", "agrees")]
    assert "No trials." in written({}, {})[0]


def test_a_claim_is_checked_on_the_experiments_that_it_speaks_of(written):
    found = {"adult": trials_of(), "taxi": trials_of([-offset for offset in OFFSETS], "taxi")}
    assert "| taxi | AdaSSP | 0 | disagrees" in written(found, {})[0]
    for chosen in ({"except": ["on_taxi"]}, {"only": ["on_adult", "on_fire"]}):
        text, rows = written(found, chosen)
        assert {row["panel"] for row in rows} == {"adult"} and "taxi" not in text
        assert "Experiments not run: " in text
    assert {row["panel"] for row in written(found, {"except": ["taxi"]})[1]} == {"adult"}, "a panel of an experiment"


def test_a_paper_without_claims_has_no_table_of_them(written):
    assert written({"adult": trials_of()}) == ("", [])


def test_a_claim_of_being_ahead_says_in_how_many_repetitions(written):
    text, rows = written({"adult": trials_of()}, {"relation": "ahead"})
    assert "| Adult | AdaSSP | 0.5 | cannot tell: 5 of 5 |" in text and rows[0]["difference"] == "1"
    assert "In how many repetitions the mse of DD-SSP is better" in text and "the exact interval of the share" in text


def test_a_claim_on_all_fits_says_of_how_many_it_holds(written):
    text, rows = written({"adult": trials_of()}, {"relation": "always", "baseline": 1e6})
    assert "| Adult | 1000000.0 | 1 | agrees: 5 of 5 |" in text and rows[0]["verdict"] == "agrees"
    assert "In how many repetitions the mse of DD-SSP is better than 1000000.0" in text


def test_a_setting_may_be_a_text_and_a_method_without_it_is_compared_at_each(written):
    trials = [
        make_trial("aim", "linear_marginals", 1.0, k, error, parameters={"ratio": ratio})
        for ratio, error in (([1, 1], 11.0), ([2, 3], 10.0))
        for k in range(3)
    ] + [make_trial("adassp", "linear_statistics", 1.0, k, 12.0) for k in range(3)]
    asked = {"x": "release.mechanism.parameters.ratio", "symbol": "ratio", "at": ["2:3"]}
    same = {"baseline": STATEMENT["method"], "baseline_at": "1:1"}
    text, rows = written({"adult": trials}, asked | same, asked)
    assert [(row["x"], float(row["difference"]), row["verdict"]) for row in rows] == [
        ("2:3", 1.0, "agrees"),
        ("2:3", 2.0, "agrees"),
    ]
    assert "DD-SSP is better than that of DD-SSP at ratio = 1:1" in text and "| ratio = 2:3 |" in text


def test_a_claim_may_be_on_a_number_on_seconds_and_on_other_experiments_than_its_figure(written):
    trials = [make_trial("aim", "linear_marginals", 1.0, k, release_seconds=0.5 + k / 1000) for k in range(4)]
    one = {"metric": "seconds", "baseline": 30.0, "relation": "lower", "experiments": ["on_adult"]}
    text, rows = written({"adult": trials}, one)
    assert [row["verdict"] for row in rows] == ["agrees"]
    assert "By how much the seconds of DD-SSP is lower than 30.0" in text and "Experiments not run" not in text


def test_a_claim_may_have_its_own_margin_and_panels(written):
    margin = {"part": 0.2, "of": STATEMENT["method"], "reason": "a fifth is little"}
    asked = {"x": "release.mechanism.parameters.rounds", "panel": "release.budget.epsilon", "panels": {1.0: "ε = one"}}
    worse = {"method": STATEMENT["baseline"], "baseline": STATEMENT["method"], "relation": "not_worse"}
    trials = trials_of([1.0, 1.1, 0.9])
    text, rows = written({"adult": trials}, worse | {"margin": margin}, worse | {"margin": {**margin, "part": 0.05}})
    assert [(row["margin"], row["verdict"]) for row in rows] == [("2", "agrees"), ("0.5", "disagrees")]
    assert "The margin is 0.2 of the mse of DD-SSP: a fifth is little." in text
    trials = [
        make_trial("aim", "linear_marginals", eps, k, error + k / 9, parameters={"rounds": rounds})
        for rounds, error in ((5, 2.0), (9, 1.0))
        for eps in (1.0, 2.0)
        for k in range(3)
    ]
    text, rows = written({"adult": trials}, asked | {"baseline": STATEMENT["method"], "baseline_at": 5, "at": [9]})
    assert [(row["panel"], row["x"], row["verdict"]) for row in rows] == [
        ("1.0", "9", "agrees"),
        ("2.0", "9", "agrees"),
    ]
    assert "| ε = one |" in text


def test_a_claim_may_compare_data_sets(written):
    """AdaSSP's error is 1 more than DD-SSP's on each: here that of one table is compared with that of another."""
    found = {"adult": trials_of(), "taxi": trials_of([5.0, 5.1, 4.9, 5.2, 4.8], "taxi")}
    one = {"method": STATEMENT["baseline"], "baseline_panel": "taxi"}
    text, rows = written(found, one)
    assert [(row["panel"], row["verdict"]) for row in rows] == [("adult", "agrees")]
    assert float(rows[0]["difference"]) == pytest.approx(5.0 - 1.0)
    assert "the mse of AdaSSP is better than that of AdaSSP on taxi" in text


def test_each_comparison_has_the_number_of_its_claim(written, tmp_path):
    _, rows = written({"adult": trials_of()}, {}, {"claim": "They are alike", "relation": "similar"})
    claims = list(csv.DictReader((tmp_path / "claims.csv").read_text().splitlines()))
    assert [row["statement"] for row in rows] == [one["statement"] for one in claims] == ["1", "2"]
    assert claims[1] == {
        "statement": "2", "claim": "They are alike", "where": "section 4", "figure": "figure1", "metric": "mse",
        "relation": "similar", "method": "DD-SSP", "baseline": "AdaSSP",
    }  # fmt: skip
