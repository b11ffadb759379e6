import json
import math
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from dpbench.config import Paper, compose
from dpbench.errors import UserError
from dpbench.grid.audits import AuditRecord, store_audit
from dpbench.grid.records import Failure
from dpbench.report.frames.ledgers import FirstLedger
from dpbench.report.frames.results import Results
from dpbench.report.page import page
from dpbench.report.page.page import write_experiment_page, write_paper_page
from dpbench.report.paper import build_paper

from ..made_up import LABELS, make_grid, make_trial
from .reading import cells, unpacked, with_cells, words

CURVE = {"name": "curve", "kind": "polynomial", "radius": 6, "fits": [{"degree": 2, "construction": "series"}]}
FIGURE = {
    "name": "figure1", "metric": "mse", "title": "Both data sets", "yscale": "log",
    "experiments": ["linreg_adult", "linreg_taxi", "linreg_fire"],
}  # fmt: skip
NEVER = {"name": "never_run", "metric": "auc", "title": "Nothing", "experiments": ["linreg_fire"]}
STATEMENT = {
    "claim": "DD-SSP is better", "where": "section 4", "figure": "figure1", "relation": "better",
    "method": "aim/linear_marginals", "baseline": "adassp/linear_statistics", "except": ["linreg_taxi"],
}  # fmt: skip
FACT = {"what": "trials", "value": 7, "ours": "repetitions", "where": "Figure 3"}
PAPER = Paper(
    "a_paper",
    "A paper <of ours>",
    {"panels": {"adult": "Adult", "taxi": "Taxi (part)"}, "labels": LABELS, "figures": [CURVE, FIGURE, NEVER]},
    {"statements": [STATEMENT], "margins": {}, "protocol": [FACT]},
)
EVENTS = [
    {"kind": "gaussian", "label": "X'X", "sensitivity": 2.0, "multiplier": 11.5, "count": 1},
    {"kind": "claimed", "label": "somebody's noise", "epsilon": 1.0, "delta": 1e-5},
]


class Reader(HTMLParser):
    """The tags and attributes of a page."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes = [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs


@pytest.fixture(autouse=True)
def no_library(monkeypatch):
    """The library of the charts takes seconds to put together, and is tried in a browser."""
    monkeypatch.setattr(page, "vega", lambda: "")


@pytest.fixture(scope="module")
def experiment(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    budget = {"relation": "add_remove", "epsilon": 0.05, "delta": 1e-5}
    measured = {"spent": 0.05, "measured": 0.042, "estimate": "Gaussian DP", "confidence": 0.95}
    made = {"runs": 400, "found": "", "parameters": {}, "command": "", "commit": None, "dirty": None}
    store_audit(folder, AuditRecord("ssp", "tight", **budget, **measured, **made))
    report = {**PAPER.report, "metrics": ["mse"], "figures": [FIGURE]}
    return replace(compose(["experiment=quickstart"]), results=folder, report=report)


@pytest.fixture(scope="module")
def results(experiment):
    def of(name, trials, *notes):
        one = replace(experiment, name=f"linreg_{name}", dataset=replace(experiment.dataset, name=name))
        return Results(one, trials, notes)

    tuned = [
        replace(trial, nonprivate_inputs=("the penalty: tuned on the rows",))
        if trial.key.release.mechanism.name == "adassp"
        else trial
        for trial in make_grid("taxi", seed=1)
    ]
    return [of("adult", make_grid(), "limits: smoke"), of("taxi", tuned), of("fire", [])]


@pytest.fixture(scope="module")
def made(results, tmp_path_factory):
    """The page of the paper, and the folder of its figures and tables."""
    folder = tmp_path_factory.mktemp("made")
    build_paper(replace(PAPER, report={**PAPER.report, "figures": [FIGURE]}), results, folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(page, "vega", lambda: "")
        return write_paper_page(PAPER, results, folder, lambda trial: EVENTS).read_text(), folder


def test_without_its_ledger_a_cost_that_may_be_claimed_is_not_called_that_of_noise(experiment, tmp_path):
    drawn, perhaps = make_trial(), make_trial("aim", "linear_rows")
    perhaps = replace(perhaps, spent=replace(perhaps.spent, rho=math.inf))
    assert "the ledger is not stored" not in with_cells(of_experiment(experiment, [drawn], tmp_path))
    text = with_cells(of_experiment(experiment, [drawn, perhaps], tmp_path))
    assert text.count("unknown: the ledger is not stored, so it may hold noise that was drawn, or a claim") == 1


def of_experiment(experiment, trials, folder, *notes, ledger_of=lambda trial: None):
    return write_experiment_page(Results(experiment, trials, notes), folder, ledger_of).read_text()


def plain(text):
    """The words of the page, without tags and with single spaces."""
    return " ".join(re.sub(r"<[^>]*>", " ", text).split())


def test_each_figure_stands_there_with_its_picture_and_the_numbers_that_dpbench_figures_writes(made):
    text, folder = made
    for name in ("curve", "figure1"):
        assert f'id="{name}-data" download="{name}.csv.gz"' in text
        section = text[text.index(f'id="{name}"') :]
        assert 'src="data:image/webp;base64,' in section[: section.index("</section>")]
    assert unpacked(text, "figure1-data") == (folder / "figures/figure1.csv").read_text()
    assert 'alt="Both data sets. Panels: Adult; Taxi (part). Axes: privacy budget ε; mse (scaled target²)' in text
    assert "never_run" in text[text.index('id="cautions"') :], "what is not drawn is named"


def test_the_table_behind_a_figure_is_that_of_dpbench_figures_and_leads_to_the_trials(made):
    text, folder = made
    row = next(
        line for line in (folder / "tables/figure1.md").read_text().splitlines() if "Adult: AdaSSP (paper)" in line
    )
    name, first = (cell.strip() for cell in row.split("|")[1:3])
    found = re.search(
        rf'<th scope="row">{re.escape(name)}</th>\s*<td data-e="0"><a href="#c(\d+)">{re.escape(first)}</a>', text
    )
    cell = cells(text)[int(found[1])]
    trial = next(
        one
        for one in make_grid()
        if (one.key.release.mechanism.parameters.get("calibration"), one.key.release.budget.epsilon) == ("paper", 0.05)
        and one.key.release.mechanism.name == "adassp"
    )
    listed = cell["trials"]
    assert (trial.id, trial.release_id) in zip(listed["trial"], listed["release"], strict=True)
    assert f"mse {first.partition(' (')[0]} (5)" in words(cell), "the number is that of the table"


def test_a_cell_has_its_budget_its_ledger_and_what_made_it(made):
    text, _ = made
    cell, other = words(cells(text)[1]), "".join(map(words, cells(text)[2:]))
    assert "Target ε = 0.05, δ = 1e-05, neighbours add/remove" in cell and "Spent ε = 0.05 at δ = 1e-05" in cell
    assert "Measured ε ≥ 0.042 (Gaussian DP)" in cell and "not audited" in other
    assert "X'X: gaussian: sensitivity 2, multiplier 11.5" in cell
    assert "a claim of third-party code on its own noise, not verified" in cell
    assert "privacy claimed, not proven" in text and "Made by: commit abc, x, 1 thread" in text


def test_a_cell_shows_the_ledger_of_an_export_where_its_releases_are_not_at_hand(experiment, tmp_path):
    trials = [make_trial(repetition=place) for place in range(3)]
    others = [make_trial("adassp"), make_trial("exact", epsilon=math.inf)]
    kept = dict.fromkeys([trial.release_id for trial in trials], FirstLedger(trials[0].release_id, 0, EVENTS[:1]))
    results = Results(experiment, [*trials, *others])
    text = write_experiment_page(results, tmp_path, lambda trial: None, kept).read_text()
    data = json.loads(unpacked(text, "trials-data"))
    assert data["ledgers"] == [[0]] and data["draws"] == EVENTS[:1], "with every draw"
    (cell,) = [cell for cell in data["cells"] if cell["ledger"]]
    reported = words(cell)
    assert "Ledger of the release of repetition 0; of the others listed: 2 not stored: X'X: gaussian: " in reported
    assert cell["trials"]["ledger"] == [0, None, None]


def test_a_trial_takes_few_bytes(experiment, tmp_path):
    def size(repetitions):
        trials = [
            make_trial(epsilon=eps, repetition=one, mse=math.sin(one + eps) ** 2)
            for eps in (0.1, 0.5, 1, 2)
            for one in range(repetitions)
        ]
        return len(of_experiment(experiment, trials, tmp_path))

    assert size(350) - size(50) < 60 * 1200, "of ten thousand 0.6 MB"


def test_verdicts_stand_on_the_page_and_are_counted_in_its_overview(made):
    text, folder = made
    verdicts = (folder / "tables/statements.csv").read_text().splitlines()[1:]
    overview = plain(text[text.index('id="overview"') : text.index('id="figures"')])
    assert f"Of {len(verdicts)} comparisons behind the paper's claims" in overview
    assert "DD-SSP is better" in text and "The claim, better: agrees if the interval lies above 0" in text
    assert "differs" in text[text.index(">Protocol<") :]


def test_what_was_not_run_failed_overspent_or_was_tuned_is_reported(made):
    reported = plain(made[0][made[0].index('id="cautions"') : made[0].index('id="trials"')])
    assert "Experiments without stored trials: linreg_fire." in reported and "limits: smoke" in reported
    assert "linreg_adult Adult DD-SSP 2 2 oom of 25" in reported
    assert "SSP (paper) Adult, Taxi (part) up to 1.6 times" in reported
    assert "the penalty: tuned on the rows AdaSSP (tight), AdaSSP (paper) Taxi (part)" in reported
    assert "trials: 5, paper 7" in reported


def test_without_a_published_protocol_nothing_is_said_of_a_paper_s_settings(results, tmp_path):
    text = write_paper_page(replace(PAPER, published={}), results, tmp_path, lambda trial: None).read_text()
    assert (
        "limits: smoke" in text and "settings that differ" not in text and "settings are those of the paper" not in text
    )


def test_integer_programmes_that_were_ended_are_reported_where_there_are_any(experiment, tmp_path):
    fine = [make_trial(repetition=one) for one in range(2)]
    ended = [*fine, make_trial("adassp", notes={"unfinished": 4})]
    quiet, text = (of_experiment(experiment, trials, tmp_path) for trials in (fine, ended))
    cautions = plain(text[text.index('id="cautions"') : text.index('id="trials"')])
    assert "AdaSSP 0.1 4 in 1 of 1 trials" in cautions and "integer programmes stopped early" in text
    assert "<mark>programmes stopped by their time limit</mark>" in text
    assert "rogrammes" not in quiet


def test_the_same_trials_give_the_same_page(experiment, tmp_path):
    trials = [make_trial(epsilon=eps, repetition=one, mse=0.1 * one) for eps in (0.1, 1) for one in range(1, 4)]
    pages = [of_experiment(experiment, order, tmp_path) for order in (trials, trials[::-1])]
    assert pages[0] == pages[1] and pages[0].startswith("<!DOCTYPE html>")


def test_text_is_text(experiment, tmp_path):
    evil = '</script><script>alert("x")</script>'
    trials = [make_trial(epsilon=eps, dataset=evil, parameters={"how": evil}) for eps in (0.1, 1)]
    report = {**experiment.report, "labels": {"ssp/linear_statistics": evil}, "panels": {evil: evil}}
    text = of_experiment(replace(experiment, title=evil, report=report), trials, tmp_path, evil)
    found = Reader(text)
    assert "alert(" in text and "<script>alert" not in text
    assert found.tags.count("script") == 4, "of the page: a mark, the library, the charts, what draws and filters"
    assert not [name for name, _ in found.attributes if name.startswith("on")]


def test_no_path_of_the_machine_stands_on_the_page_and_no_text_of_private_rows(experiment, tmp_path):
    error = Failure("OSError", f"cannot read {tmp_path}/private/my.csv: row 7 has 123456", f"{Path.home()}/code.py:3")
    known = replace(make_trial(repetition=0, status="failed"), error=error)
    hidden = replace(make_trial("adassp", repetition=1, status="failed"), error=error, public=False)
    text = with_cells(of_experiment(experiment, [known, hidden, make_trial(repetition=2)], tmp_path))
    assert str(tmp_path) not in text and str(Path.home()) not in text and "/private" not in text
    assert text.count("row 7 has 123456") == 1 and "1 × failed in model: OSError: cannot read my.csv" in text


def test_results_of_other_code_stand_in_cells_of_their_own(experiment, tmp_path):
    def coded(trial, code):
        made = replace(trial.key.release, mechanism=replace(trial.key.release.mechanism, version=code))
        key = replace(trial.key, fit=replace(trial.key.fit, release=made))
        return replace(trial, id=key.id, release_id=made.id, key=key)

    trials = [coded(make_trial(repetition=place, mse=0.1), "old") for place in range(2)]
    trials += [coded(make_trial(repetition=place, mse=0.3), "new") for place in range(2, 4)]
    notes = "More than one version of the code made the results of ssp"
    text = with_cells(of_experiment(experiment, trials, tmp_path, notes))
    assert "More than one version of the code made the results of ssp" in text
    assert "version old, not averaged with others" in text and "version new, not averaged with others" in text
    assert "mse 0.1000 ± 0 (2)" in text and "mse 0.3000 ± 0 (2)" in text


def test_other_protocols_are_not_averaged(experiment, tmp_path):
    trials = [make_trial(repetition=place, mse=0.1) for place in range(2)]
    trials += [make_trial(repetition=place, mse=0.3, protocol="authors") for place in range(2)]
    text = with_cells(of_experiment(experiment, trials, tmp_path))
    assert "mse 0.1000 ± 0 (2)" in text and "mse 0.3000 ± 0 (2)" in text and "protocol=authors" in text


def test_of_very_many_trials_a_sample_is_listed_and_said_to_be(experiment, tmp_path, monkeypatch):
    monkeypatch.setattr(page, "TRIALS", 40)
    trials = [make_trial(epsilon=eps, repetition=one) for eps in (0.1, 1) for one in range(50)]
    trials[49] = replace(make_trial(epsilon=0.1, repetition=49, status="oom"))
    text = with_cells(of_experiment(experiment, trials, tmp_path))
    assert "Of 100 trials 40 are listed" in text and "20 of 50 trials:" in text
    assert trials[49].id in unpacked(text, "trials-data"), "what failed is listed first"
    assert "mse 0.08000 ± 0 (49 of 50)" in text, "the numbers are of all trials"


def test_a_page_that_would_freeze_a_browser_is_refused_with_its_size(experiment, tmp_path, monkeypatch):
    monkeypatch.setattr(page, "LARGEST_MB", 0.01)
    with pytest.raises(UserError, match=r"2 trials in 1 cells would have \d MB"):
        of_experiment(experiment, [make_trial(repetition=one) for one in range(2)], tmp_path)
    assert not (tmp_path / page.NAME).exists()


def test_nothing_stored_is_a_clear_message(results, tmp_path):
    with pytest.raises(UserError, match="run it first: dpbench run experiment=linreg_adult"):
        write_paper_page(PAPER, [replace(one, trials=[]) for one in results], tmp_path, lambda trial: None)
