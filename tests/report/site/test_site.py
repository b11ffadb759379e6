"""Every number of the site is one of the exports, and every link leads somewhere."""

import html
import math
import re
import shlex
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dpbench.config import Paper, choices, compose
from dpbench.errors import UserError
from dpbench.grid.audits import AuditRecord
from dpbench.grid.plan import make_plan
from dpbench.report.export_file import load_export, write_export
from dpbench.report.site.__main__ import write_site
from dpbench.report.site.boards import board_of, boards_of
from dpbench.report.site.documents import Checkout
from dpbench.report.site.leaderboards import Pages, methods_of
from dpbench.report.site.rendering import Scale, Site, digits
from dpbench.report.text import mean_and_error

from ..made_up import make_trial
from .conftest import ROOT

EXPORT = ROOT / "results" / "arena" / "exports" / "arena_regression.jsonl.xz"
BOARD = "boards/arena-regression_ranks.md"
SPEC = {"name": "ranks", "kind": "mean_ranks", "metric": "mse", "title": "One: ranks", "experiments": ["one"]}


def rows_of(page, name):
    """The cells of the rows of a table, by its label: (value to sort by, or None; text; the address it leads to)."""
    table = re.search(rf'aria-label="{name}">(.*?)</table>', page, re.DOTALL)[1].split("<tbody>")[1]
    for row in re.findall(r"<tr>(.*?)</tr>", table, re.DOTALL):
        found = []
        for given, content in re.findall(r'<t[hd](?: [a-z]+="[^"]*?")*?(?: data-v="([^"]*)")?>(.*?)</t[hd]>', row):
            to = re.search(r'href="([^"]*)"', content)
            found.append((given, html.unescape(re.sub(r"<[^>]*>", "", content)), to and html.unescape(to[1])))
        yield found


@pytest.fixture(scope="module")
def trials():
    """The trials of the export, each built and read by itself."""
    rows = []
    for cell in load_export(EXPORT):
        for trial in cell.trials:
            release, value = trial.key.release, {one.name: one.value for one in trial.scores}.get("mse", math.nan)
            seconds = (trial.runtime.release_seconds or 0) + (trial.runtime.model_seconds or 0)
            value = value if trial.status == "done" else math.nan
            where = (release.dataset["name"], release.mechanism.name, trial.key.fit.model.name, release.budget.epsilon)
            rows.append((*where, value, seconds))
    return pd.DataFrame(rows, columns=["dataset", "mechanism", "model", "epsilon", "value", "seconds"])


def test_all_numbers_of_a_leaderboard_are_those_of_the_export(made, trials):
    page = (made / "pages" / BOARD).read_text()
    private = trials[np.isfinite(trials["epsilon"])]
    cells = private.groupby(["dataset", "mechanism", "model", "epsilon"])
    expected = cells.agg(mean=("value", "mean"), se=("value", "sem"), runs=("value", "size"), s=("seconds", "median"))
    shown = {}
    for method, table, epsilon, score, *others in rows_of(page, "All numbers"):
        seconds, runs = others[-3], others[-1]
        dataset = Path(table[2]).stem
        mechanism, model, *_ = score[2].partition("#")[2].split("-")
        assert mechanism == Path(method[2]).stem
        shown[dataset, mechanism, model, float(epsilon[1])] = (score, runs, seconds)
    assert shown.keys() == set(expected.index)
    for where, cell in expected.iterrows():
        (given, text, _), runs, seconds = shown[where]
        assert float(given or "nan") == pytest.approx(cell["mean"], rel=1e-5, nan_ok=True)  # six digits
        assert text == mean_and_error(cell["mean"], cell["se"])
        assert (float(runs[1]), seconds[1]) == (cell["runs"], digits(cell["s"], 2))


def test_mean_ranks_are_those_of_the_committed_table(made):
    ranks = pd.read_csv(ROOT / "results/arena/tables/regression_ranks_table.csv").set_index(["series", "epsilon"])
    page = (made / "pages" / BOARD).read_text()
    epsilons = sorted(ranks.index.unique("epsilon"))
    found = {}
    for (_, series, _), *numbers in rows_of(page, "Mean ranks"):
        for epsilon, rank, best in zip(epsilons, numbers[::2], numbers[1::2], strict=True):
            found[series, epsilon] = (float(rank[0]), int(best[0]))
    assert found.keys() == set(ranks.index)
    for where, (rank, best) in found.items():
        assert rank == pytest.approx(ranks.loc[where, "mean_rank"], rel=1e-5) and best == ranks.loc[where, "best"]


def test_a_permalink_has_the_trials_of_its_number_and_the_line_that_runs_them(made, trials):
    page = (made / "pages" / "boards/arena-regression_ranks/abalone.md").read_text()
    before, part = page.split('id="adassp-linear_statistics-tight-1"')
    method, part = before[before.rindex("<details") :], part.partition("</div>")[0]
    line = shlex.split(html.unescape(re.findall("<code>(.*?)</code>", before)[-1]))
    listed = re.findall(r"^(\d+) ([0-9a-f]{16}) (\S+)$", part, re.MULTILINE)
    assert line[:2] == ["dpbench", "run"] and line[-1] == "epsilon=[0.1,1,10]"
    planned = list(make_plan(compose([*line[2:-1], "epsilon=[1]"])).trial_ids)
    assert [trial for _, trial, _ in listed] == planned
    own = trials.query("dataset == 'abalone' and mechanism == 'adassp' and epsilon == 1")["value"]
    assert sorted(float(value) for *_, value in listed) == pytest.approx(sorted(own), rel=1e-4)
    assert "gaussian: multiplier" in part and re.search(r"spent at most ε = 1\b", part)
    assert "δ = 1e-05, neighbours add/remove" in method and "lower bound on ε by audit: at ε = " in method


def test_what_the_numbers_of_a_method_share_is_said_once(tmp_path):
    trials = [
        replace(make_trial("ssp", epsilon=epsilon, repetition=n, calibration="tight"), provenance={"commit": commit})
        for epsilon, commit in ((0.1, "abc"), (1.0, "abc"), (10.0, "def"))
        for n in (0, 1)
    ]
    board = board_of(
        Paper("one", "One", {"panels": {}, "figures": [SPEC]}, {}), SPEC, load_export(write_export(trials, tmp_path))
    )
    (own,) = methods_of(board.cells)
    audits = [
        AuditRecord(
            "ssp", "tight", "add_remove", epsilon, 1e-5, epsilon, bound, "exact", 0.95, 4, "", {}, "", None, None
        )
        for epsilon, bound in ((1.0, 0.5), (10.0, 7.0))
    ]
    made = Pages(board, {}, audits).behind("SSP", own.to_dict("records"))
    bound = "at ε = 10, δ = 1e-05: 7 of 10 (exact); at ε = 1, δ = 1e-05: 0.5 of 1 (exact)"
    assert made.facts[1:] == [
        f"lower bound on ε by audit: {bound}",
        "each number: interval 0.08 to 0.08; 2 runs; δ = 1e-05, neighbours add/remove",
    ]
    assert [number.facts for number in made.numbers] == [
        [f"spent at most ε = {epsilon}", f"commit {commit} (2)"]
        for epsilon, commit in (("0.1", "abc"), ("1", "abc"), ("10", "def"))
    ]
    (alone,) = Pages(board, {}, ()).behind("SSP", own.to_dict("records")[:1]).numbers
    assert "2 runs" in alone.facts, "what one number has stays with it"


def test_every_link_leads_to_a_page_and_to_what_is_on_it(made):
    pages, dead = made / "pages", []
    names = {path.relative_to(pages).as_posix(): path.read_text() for path in pages.rglob("*.md")}
    ids = {name: re.findall(r'\bid="([^"]+)"', text) for name, text in names.items()}
    assert all(len(own) == len(set(own)) for own in ids.values())
    for name, whole in names.items():
        text = re.sub(r"^```.*?^```$", "", whole, flags=re.DOTALL | re.MULTILINE)
        links = re.findall(r'(?:href|src)="([^"]+)"', text) + re.findall(r"\]\(([^)\s]+)\)", text)
        for to in {html.unescape(one) for one in links if not one.startswith(("http", "mailto:"))}:
            path, _, anchor = to.partition("#")
            there = pages / name if not path else (pages / name).parent / re.sub(r"\.html$", ".md", path)
            on_page = ids.get(there.resolve().relative_to(pages.resolve()).as_posix(), [])
            headings = not path or path.endswith(".md")  # which mkdocs gives a name, and checks with --strict
            if not there.exists() or (anchor and not headings and anchor not in on_page):
                dead.append(f"{name}: {to}")
    assert dead == []
    assert all(f"methods/{name}.md" in names for name in choices("mechanism"))


def test_a_paper_opens_with_its_first_table_and_names_its_experiments(made):
    page = (made / "pages" / "papers" / "dd_ssp.md").read_text()
    first = re.search(r"^\| Figure 3a.*$", (ROOT / "docs" / "dd_ssp.md").read_text(), re.MULTILINE)[0]
    assert first in page
    assert "`dpbench run experiment=linreg_adult`" in page and "figures/figure3a.png" in page


def test_references_name_every_command_setting_group_and_function(made):
    commands, settings, python = (
        (made / "pages" / "reference" / f"{name}.md").read_text() for name in ("commands", "settings", "python")
    )
    assert {"run", "figures", "recommend", "audit", "release"} <= set(re.findall(r"^## dpbench (\w+)", commands, re.M))
    assert "[`aim`](../methods/aim.md)" in settings and "epsilon: [1.0]" in settings
    assert "dpbench.release(" in python


def test_an_experiment_that_was_not_run_yet_has_no_rows_on_its_leaderboard():
    paper = Paper(
        "arena", "Arena", {"panels": {}, "figures": [{**SPEC, "experiments": ["arena_regression", "new"]}]}, {}
    )
    (board,) = boards_of(paper, {"arena_regression": load_export(EXPORT)})
    assert len(board.datasets) == 20


def test_a_method_that_lacks_a_value_in_a_run_ranks_last(tmp_path):
    runs = [("ssp", 0.01, "done"), ("ssp", 0.01, "oom"), ("adassp", 0.3, "done"), ("adassp", 0.2, "done")]
    trials = [
        make_trial(mechanism, mse=mse, repetition=place % 2, epsilon=1.0, status=status)
        for place, (mechanism, mse, status) in enumerate(runs)
    ]
    path = write_export(trials, tmp_path)
    board = board_of(Paper("one", "One", {"panels": {}, "figures": [SPEC]}, {}), SPEC, load_export(path))
    cells = board.cells.set_index("mechanism")
    assert cells["rank"].to_dict() == {"adassp": 1, "ssp": 2}
    assert cells.loc["ssp", ["count", "failed", "runs"]].tolist() == [1, 1, 2]
    assert np.isnan(cells.loc["ssp", "low"]) and cells.loc["adassp", "high"] > 0.8  # t with one degree of freedom


def test_links_of_the_docs_lead_to_pages_copies_or_nowhere(tmp_path):
    checkout = Checkout(ROOT, Site(tmp_path))
    assert checkout.address("docs/arena.md") == "docs/arena.md" and checkout.address("README.md") == "index.md"
    assert checkout.address("results/arena") == "papers/arena.md" and checkout.address("conf/golden") is None
    assert checkout.address("conf/config.yaml") == "files/conf/config.yaml.txt"
    assert (tmp_path / "files/conf/config.yaml.txt").read_bytes() == (ROOT / "conf/config.yaml").read_bytes()


def test_a_bar_stays_within_its_axis():
    bar = Scale(0.0, 1.0).bar(-5.0, 0.5, 7.0)
    assert "M3 7H93" in bar and 'cx="48"' in bar
    assert (
        'cx="48"' in Scale(1.0, 100.0, log=True).bar(math.nan, 10.0, math.nan) and Scale(0, 1).bar(0, math.nan, 1) == ""
    )


def test_a_folder_that_is_no_checkout_is_refused(tmp_path):
    with pytest.raises(UserError, match="run it in a checkout"):
        write_site(tmp_path, tmp_path / "site")
