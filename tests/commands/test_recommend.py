"""`dpbench recommend`: from the committed results of the arena, for a table that is not in it."""

import hashlib
import lzma
import math
import re
import runpy
import shlex
from contextlib import redirect_stdout
from functools import cache
from io import StringIO
from types import SimpleNamespace

import pandas as pd
import pytest

from dpbench.cli import main
from dpbench.commands.recommend import _amount, known_of, outcomes_of_trials
from dpbench.commands.recommend_question import NEEDS, Asked, Own
from dpbench.commands.release import checked
from dpbench.config import compose
from dpbench.config.experiment import single
from dpbench.report.outcomes import shipped
from dpbench.report.recommendation import CLOSE, RULES, Size, nearest, orders
from dpbench.resources import PACKAGE, conf_dir

RESULTS = PACKAGE.parent / "results"
arena = pytest.mark.skipif(not (RESULTS / "arena").is_dir(), reason="results/arena is in the repository alone")


INTERVALS = ("--need", "intervals", "--rows", "5000", "--columns", "4", "epsilon=1")


@cache
def answer(*line):
    with redirect_stdout(StringIO()) as out:
        assert main(["recommend", f"results={RESULTS}", *line]) == 0
    return out.getvalue()


def methods(text):
    """The names of the methods, and of each what stands in the columns."""
    rows = [
        re.split(r" {2,}", row)
        for row in re.search(r"\nmedian \(range\) .*?(?=\n1\. )", text, re.DOTALL)[0].splitlines()[1:]
    ]
    return {row[0]: dict(zip(rows[0], row, strict=True)) for row in rows[1:]}


def commands(text):
    return [shlex.split(line) for line in re.findall(r"^\d\. (dpbench .*)$", text, re.MULTILINE)]


@arena
def test_where_methods_lose_the_verdict_is_first_and_none_is_offered():
    """With 300 rows at epsilon 0.1 all are worse than the mean, and rows of 442 than independent attributes."""
    few, rows = answer("--rows", "300", "--columns", "10", "epsilon=0.1"), answer("dataset=diabetes", "--need", "rows")
    verdict = (
        "None of the methods with the least errors beat {} on most of the 5 nearest places: {}, or collect more rows."
    )
    mean = verdict.format("the mean of the target", "predict the mean")
    independent = verdict.format("independent attributes", "release the distribution of each attribute alone")
    assert few.splitlines()[3] == f"ε = 0.1, δ = 1e-05. {mean}" and f"\nε = 1, δ = 1e-05. {independent}\n" in rows
    kept = re.search(r"What came nearest, with the gain kept .*, median \(range\): (.*)\.\n", few)[1]
    assert re.match(r"AMP -\d.* to 0\.\d+\); ", kept) and "mean of the target" not in kept
    private = shlex.split(re.search(r"^To predict the mean privately: (.*)", few, re.MULTILINE)[1])
    assert not commands(few) and "mechanism=mean_target" in private
    asked = [item for item in private[2:-2] if not item.startswith("dataset")]
    checked(single(["dataset=diabetes", *asked], None), None)


@arena
def test_far_below_all_data_of_the_arena_nothing_is_said_to_be_best():
    """n epsilon = 1, where a method that beats the trivial answer on all tables says nothing."""
    for need in ("coefficients", "classifier", "rows", "queries"):
        out = answer("--need", need, "--rows", "100", "--columns", "10", "epsilon=0.01", "delta=1e-7")
        unit = "columns" if need in ("rows", "queries") else "coefficients"
        assert f"ε = 0.01, δ = 1e-7. No table of the arena has so little data (n ε / {unit} is 0.1 here, and " in out
        assert "Collect more rows: " in out and not commands(out)


@arena
def test_where_no_method_has_intervals_it_says_from_how_many_rows_on_one_has():
    out = answer("--need", "intervals", "--rows", "500", "--columns", "4", "epsilon=0.1")
    assert "ε = 0.1, δ = 1e-05. None of the methods with the least errors had intervals that cover in three of" in out
    rows, won, places = re.search(
        r"Collect more rows: SSP, one scale pays from about ([\d,]+) rows on.* had intervals .* on (\d+) of (\d+) ", out
    ).groups()
    assert int(rows.replace(",", "")) > 500 and int(won) >= 0.75 * int(places) and not commands(out)


@arena
def test_a_method_that_the_rows_are_too_few_for_is_not_named(tmp_path):
    """A batch of 1,024 rows, of 300: every command that is named runs."""
    out = answer(*sick(tmp_path), "--rows", "300", "epsilon=0.1")
    assert "Not on this table: DP-SGD, given parameters: mechanism.dpsgd.batch_size=1,024 is more than the 300" in out
    assert len(commands(out)) == 3 and not any("mechanism=dpsgd" in line for line in commands(out))


@arena
def test_a_table_under_another_name_is_no_evidence_for_itself():
    assert "adult" not in re.search(r"nearest places: (.*)", answer("dataset=adult", "--need", "rows", "epsilon=1"))[1]


@arena
def test_answers_to_queries_are_those_that_the_arena_scored():
    """MST releases pairs unless it is asked for more."""
    out = answer("--need", "queries", "--rows", "500", "--columns", "4", "epsilon=1")
    assert "mechanism=mst model=released_answers mechanism.mst.workload=3 " in out


@arena
@pytest.mark.parametrize("need", [*NEEDS])
@pytest.mark.parametrize("rows", ["300", "5000", "1000000"])
def test_a_method_is_offered_if_it_keeps_some_of_the_gain(need, rows):
    """In the median; and each command composes, with the dataset of the arena in place of one's own."""
    out = answer("--need", need, "--rows", rows, "--columns", "8")
    blocks, table = out.split("\nε = ")[1:], compose([f"experiment={NEEDS[need][0]}"]).grids[0].dataset.name
    assert len(blocks) == 3
    for block in blocks:
        lost = block.partition(". ")[2].startswith(("None of the methods", "No table of the arena"))
        found = {} if lost else methods(block)
        assert len(found) == len(commands(block)) <= 3
        for row in found.values():
            assert need == "intervals" or float(next(row[name] for name in row if "gain kept" in name).split()[0]) > 0
        for line in commands(block):
            assert line[0:2] == ["dpbench", "release"] and line[-2:] == ["--out", "FOLDER"]
            own = [item for item in line[2:-2] if not item.startswith("dataset")]
            asked = single([f"dataset={table}", *own], None)
            assert asked.budget.relation == ("replace" if need == "queries" else "add_remove")
            checked(asked, None)


@arena
def test_the_rows_from_which_a_method_pays_are_told_with_their_basis():
    """They follow from n epsilon / d: ten times as many at a tenth of epsilon, or of ten times the coefficients."""
    basis = (
        r"or more it beat the mean of the target on (\d+) of (\d+) places of the arena, with less on (\d+) of (\d+)\."
    )
    found = {}
    for rows, coefficients, epsilon in (("100", "10", "0.01"), ("100000", "10", "0.1"), ("100000", "100", "1")):
        line = ("--rows", rows, "--columns", "10", "--coefficients", coefficients, f"epsilon={epsilon}")
        told = next(text for text in answer(*line).splitlines() if "AMP pays" in text)
        head, least = re.match(r"(\w[\w ]*) rows: AMP pays from about ([\d,]+) rows on", told).groups()
        found[epsilon] = head, int(least.replace(",", ""))
        won, places, won_below, below = map(int, re.search(basis, told).groups())
        assert won + won_below <= places + below == 60 and won >= 0.75 * places > 3 and won_below < below
    assert found["0.01"] == ("Collect more", 10 * found["0.1"][1])
    assert found["0.1"][0] == "Enough" and found["1"][1] == found["0.1"][1]


def test_of_a_method_that_always_pays_fewer_rows_may_do():
    won = pd.Series(1.0, pd.RangeIndex(6))
    known = SimpleNamespace(
        won="beat the mean",
        divisor="columns",
        amounts=pd.Series(10.0, won.index),
        amount=lambda size, epsilon: size.rows * epsilon / size.columns,
        evidence=SimpleNamespace(wins={"A": won}),
    )
    (line,) = _amount(known, Size(900, 9, 9), 1.0, ["A"], lost=False)
    assert line.startswith("Enough rows: A pays from about 90 rows on, or fewer,") and "and no place has less" in line
    assert not [*_amount(known, Size(80, 9, 9), 1.0, ["A"], lost=False)]  # nothing is known of so few


@arena
def test_how_sure_it_is_depends_on_the_table_and_the_best_over_all_is_named():
    choice = r"The choice: the best on the 5 nearest places\. .* in (\d+) of 60 cases, .* over all \(AMP\) in (\d+)\."
    sure = r"Take ([\w, +-]+): it was within 10 % of the least error on (\d) of the 5 nearest places\."
    found = set()
    for rows in ("3000", "300000"):
        out = answer("--rows", rows, "--columns", "10", "epsilon=0.1")
        near, overall = map(int, re.search(choice, out).groups())
        assert 30 < overall <= near < 60
        first, close = re.search(sure, out).groups()
        assert first == next(iter(methods(out)))
        found.add(int(close))
        assert len(out.splitlines()) <= 24  # a screen
    assert len(found) == 2


@arena
def test_intervals_that_cover_too_little_are_not_recommended_and_missing_ones_are_counted():
    out = answer(*INTERVALS)
    named = methods(out)
    assert all(float(row["coverage of 0.9"].split()[0]) > 0.85 for row in named.values())
    place = [*named].index("SSP") + 1
    beside = re.search(rf"^{place}\. dpbench .*\n(.*)", out, re.MULTILINE)[1]  # on Diamonds 7 of 20, on Taxi 4
    assert beside == "   Near by it gave no interval in 11 of 100 runs, and ε is spent all the same."
    never = re.search(r"Not to be used, for undercoverage .*", out)[0]
    for name in ("AIM-Synth, taken for real rows", "MST-Synth, taken for real rows", "JLT"):
        assert re.search(rf"{name} 0\.[0-8]", never) and name not in named
    assert "DD-SSP with MST, bootstrap (no interval in 70 of 70 runs)" in out
    assert "Extrapolated" not in out


@arena
def test_without_a_table_it_shows_the_best_by_need_as_the_readme_does():
    out = answer()
    _, table, how = out.rstrip("\n").split("\n\n")
    assert f"```text\n{table}\n```\n" in (PACKAGE.parent / "README.md").read_text(encoding="utf-8")
    lines = [re.split(r" {2,}", line) for line in table.splitlines()]
    assert lines[0] == ["--need", "ε = 0.1", "ε = 1", "ε = 10", "see docs/arena.md"] and [
        line[0] for line in lines[1:]
    ] == [*NEEDS]
    numbers = [
        re.fullmatch(r"none|.*[^-\d](\d\.\d\d)( of 0\.9.*)?", cell)[1] for line in lines[1:] for cell in line[1:-1]
    ]
    titles = re.findall(r"^## (.*)", DOCS, re.MULTILINE)
    assert {line[-1] for line in lines[1:]} <= {f"#{title.lower().replace(' ', '-')}" for title in titles}
    assert all(0 < float(text) <= 1 for text in numbers if text)
    assert "dpbench recommend --need coefficients --rows" in how and "dataset.domain=FILE.yaml" in how
    assert (
        answer("--need", "queries").split("\n\n")[1].splitlines()[1].split()
        == lines[-1][:1] + " ".join(lines[-1][1:]).split()
    )


@arena
def test_the_best_by_need_cannot_be_distinguished_from_the_first_by_mean_rank():
    """By mean rank or by the mean of multiples of the least error: both are of the same results, and Nemenyi's test, at
    5 %, does not reject that one method is as good as the other.
    """
    table = [re.split(r" {2,}", line) for line in answer().split("\n\n")[1].splitlines()[1:]]
    tables = {"coefficients": "regression", "classifier": "classification", "rows": "rows", "queries": "queries"}
    for need, *cells in table:
        for epsilon, cell in zip((0.1, 1.0, 10.0), cells[:-1], strict=True):
            if need in tables and cell != "none":
                ranks = pd.read_csv(RESULTS / "arena" / "tables" / f"{tables[need]}_ranks_table.csv")
                here = ranks[ranks["epsilon"] == epsilon].set_index("series")
                behind = here["mean_rank"] - here["mean_rank"].min()
                assert behind[cell.rpartition(" ")[0]] < here["critical_difference"].iloc[0]


@arena
@pytest.mark.slow
def test_a_named_method_runs_by_its_command(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    line = next(line for line in commands(answer(*INTERVALS)) if "model=linear_statistics_intervals" in line)
    rest = [item for item in line[1:-1] if not item.startswith(("dataset", "epsilon"))]
    folder = tmp_path / "out"
    assert main([*rest, str(folder), "dataset=diabetes", "epsilon=1e6"]) == 0  # with little noise it has intervals
    assert "Intervals of linear\\_statistics\\_intervals: 90%" in (folder / "coefficients.md").read_text()


@arena
def test_far_from_all_tables_it_says_how_far_and_a_table_is_no_evidence_for_itself():
    out = answer("--need", "queries", "dataset=compas_queries", "epsilon=0.01")
    assert "ε = 0.01 is 10 times less than the least, 0.1." in out
    near = re.search(r"The 5 nearest places: (.*)\.", out)[1]
    assert "churn_queries at 0.1" in near and "compas" not in near
    assert all(line[1:3] == ["release", "dataset=compas_queries"] for line in commands(out))


@arena
@pytest.mark.parametrize("target", [True, False])
def test_rows_are_those_nearest_to_the_real_ones_and_each_command_is_a_release(tmp_path, target):
    own = sick(tmp_path) if target else sick(tmp_path)[:-1]
    (tmp_path / "my.csv").unlink()  # no row is read
    out = answer(*own, "epsilon=1", "--rows", "5000", *(["--need", "rows"] if target else []))
    assert out.startswith("csv: 5,000 rows, 2 columns. No row of it was read. ")
    assert (
        "Error: TV distance of pairs, in arena_rows (" in out
        and "gain kept (1: as without privacy, 0: independent attributes)" in out
    )
    assert len(methods(out)) == len(commands(out)) >= 1
    for line in commands(out):
        assert line[: 2 + len(own)] == ["dpbench", "release", *own]
        part, _ = checked(single(line[2:-2]), None)
        assert "rows" in part.offers


@arena
def test_rows_are_counted_where_neighbours_replace_one_and_that_is_said(tmp_path):
    counted = "Its rows were counted: their number is public where neighbours replace a record"
    out = answer(*sick(tmp_path), "epsilon=1", "relation=replace")
    assert out.startswith(f"csv: 1,000 rows, 2 columns, 2 coefficients. {counted}.")


def sick(folder):
    (folder / "my.yaml").write_text("age: {bounds: [0, 100], bins: 10}\nsick: {levels: ['no', 'yes']}\n")
    (folder / "my.csv").write_text("age,sick\n" + "30,no\n60,yes\n" * 500)
    return ["dataset=csv", f"dataset.path={folder}/my.csv", f"dataset.domain={folder}/my.yaml", "dataset.target=sick"]


def test_the_number_of_private_rows_is_asked_for_unless_it_is_public_or_declared(tmp_path, capsys):
    line = ["recommend", *sick(tmp_path), "epsilon=1", f"results={tmp_path}"]
    assert main(line) == 2
    said = capsys.readouterr().err
    assert said.startswith("dpbench: the number of rows of csv is not public") and said.endswith("--rows 20000\n")
    for public, rows in (("dataset.public=true", "1,000"), ("+dataset.card.rows=70", "70")):
        assert main([*line, public]) == 0
        assert f"csv: {rows} rows, 2 columns" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (["--rows", "5"], "--rows and --columns go together"),
        (["--rows", "0", "--columns", "3"], "must be at least 1"),
        (["--rows", "5", "--columns", "3", "dataset=adult"], "of one that is named give --rows alone"),
        (["--rows", "0", "dataset=diabetes"], "must be at least 1"),
        (["dataset=csv", "dataset.domain=my.yaml", "--need", "intervals"], "give the attribute that is predicted"),
        (["dataset=simulation"], "simulation has as many rows as are drawn"),
        (["--rows", "5", "--columns", "3", "model=[]"], "can be set, not model=[]"),
        (["--rows", "5", "--columns", "3", "delta=2"], "delta"),
        (["--need", "rows", "experiment=arena_queries", "dataset=diabetes"], "leave experiment=arena_queries out"),
        (["--need", "classifier", "dataset=diabetes"], "the target target does not have two levels"),
    ],
)
def test_a_question_that_has_no_answer_is_refused(line, told, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    sick(tmp_path)
    assert main(["recommend", *line]) == 2
    assert told in capsys.readouterr().err


def test_what_is_missing_is_told(tmp_path, capsys):
    """What ships is no answer where other trials were asked for."""
    run = "holds no trials of linreg_adult on other tables; dpbench run experiment=linreg_adult makes them"
    own = [*sick(tmp_path), "--rows", "9", "experiment=linreg_adult", "epsilon=1"]
    for line, told in ((["epsilon=1"], "name a table"), (own, run)):
        assert main(["recommend", *line, f"results={tmp_path}"]) == 2
        assert told in capsys.readouterr().err


def test_what_ships_answers_alone_and_own_trials_of_an_arena_replace_it(tmp_path):
    line = ("--rows", "5000", "--columns", "4", "epsilon=1")
    shipped = answer(*line, f"results={tmp_path}")
    assert "The choice: the best" in shipped
    (tmp_path / "arena_regression" / "trials").mkdir(parents=True)
    assert main(["recommend", *line, f"results={tmp_path}"]) == 2


@arena
def test_what_ships_is_what_the_exports_have():
    """As scripts/write_outcomes.py writes it."""
    found = compose(["experiment=arena_queries", f"results={RESULTS}"])
    kept, made = shipped(found, "arena"), outcomes_of_trials(found, None)
    assert kept.notes == made.notes
    pd.testing.assert_frame_equal(kept.cells, made.cells, check_dtype=False, rtol=1e-9)
    exports = {path.name.split(".")[0]: path for path in (RESULTS / "arena" / "exports").iterdir()}
    for path in (conf_dir() / "outcomes").iterdir():
        digest = hashlib.sha256(exports[path.name.split(".")[0]].read_bytes()).hexdigest()
        assert digest in lzma.decompress(path.read_bytes()).decode().partition("\n")[0]


DOCS = (PACKAGE.parent / "docs" / "arena.md").read_text(encoding="utf-8")
ERRORS = {"coefficients": "1 - R²", "classifier": "1 - AUC", "intervals": "score", "queries": "largest error"}
ERRORS["rows"] = "distance of pairs"
SITUATIONS = (
    ("coefficients", 100, 10, 0.01),
    ("coefficients", 20_000, 8, 1),
    ("classifier", 2_000, 15, 0.1),
    ("intervals", 5_000, 4, 1),
    ("rows", 5_000, 10, 1),
    ("queries", 50_000, 12, 0.1),
)


def rates_row(need):
    """The row of the first table in docs, with each table left out in turn."""
    arenas = [compose([f"experiment={name}", f"results={RESULTS}"]) for name in NEEDS[need]]
    known, _ = known_of(Asked(need, arenas, Own("", Size(1, 1, 1), (), ())), None)
    errors, cases, named, lost = known.evidence.errors, known.costs.notna().all(axis=1).sum(), [], []
    for dataset, epsilon in errors.index:
        others, size = errors.drop(index=dataset, level="dataset"), known.sizes[dataset]
        near = nearest(others, known.sizes, size.at(epsilon))
        best = [name for name in orders(others, known.sizes, size, epsilon)[known.rule] if not known.gives_mean(name)][
            :3
        ]
        taken = known.paying(best, near.index)
        if taken:
            named.append(known.evidence.wins.loc[(dataset, epsilon), taken[0]] == 1)
        elif best:
            lost.append(known.evidence.wins.loc[(dataset, epsilon), best[0]] != 1)
    within = [f"{(known.costs[rule] <= 1.1).sum()} of {cases}" for rule in RULES]
    worst = known.costs[known.rule].max()
    worst = "no value" if worst == math.inf else f"{worst:.3g} times"
    named, lost = (f"{sum(found)} of {len(found)}" if found else "" for found in (named, lost))
    return f"| {need} ({ERRORS[need]}) | {' | '.join(within)} | {worst} | {named} | {lost} |"


def situation_row(need, rows, columns, epsilon):
    """The row of the second table in docs."""
    out = answer("--need", need, "--rows", str(rows), "--columns", str(columns), f"epsilon={epsilon}")
    take = re.search(r"Take (.*): it was within 10 % of the least error on (\d of the 5) nearest places", out)
    said = f"{take[1]}, near the best on {take[2]}" if take else "none is worth it"
    pays = re.search(r"(\S+) pays from about ([\d,]+) rows", out)
    pays = f"{pays[2]} rows{'' if take else f', {pays[1]}'}" if pays else ""
    return f"| {need} | {rows:,} | {columns} | {epsilon} | {said} | {pays} |"


@arena
@pytest.mark.parametrize("need", [*NEEDS])
def test_docs_have_how_often_the_rule_was_right(need):
    assert rates_row(need) in DOCS.splitlines()


@arena
@pytest.mark.parametrize("situation", SITUATIONS)
def test_docs_have_what_it_answers(situation):
    assert situation_row(*situation) in DOCS.splitlines()


@arena
def test_the_check_on_other_tables_is_that_of_the_exports_and_docs_have_how_often_it_was_right():
    check = runpy.run_path(str(PACKAGE.parent / "scripts" / "check_recommendation.py"))
    made = pd.DataFrame([row for need, name in check["CHECKS"].items() for row in check["rows"](need, name)])
    kept = pd.read_csv(RESULTS / "arena" / "tables" / "recommendation.csv")
    pd.testing.assert_frame_equal(made, kept, check_dtype=False, rtol=1e-9)
    close, single = ((kept[name] <= CLOSE).sum() for name in ("times", "overall_times"))
    text = " ".join(DOCS.split())
    assert f"is within 10 % of the least error in {close} of {len(kept)} cases" in text
    assert (
        f"the best single method of each arena in {single}. It is the best of all in {(kept.times == 1).sum()}" in text
    )
    assert close > single
