"""The page in headless Chromium: as a reader meets it, with and without JavaScript."""

import gzip
import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from dpbench.cli import main
from dpbench.commands.report import results_of
from dpbench.commands.stored_trials import exported_ledgers
from dpbench.config import Paper, compose, paper_of
from dpbench.report.frames.ledgers import FirstLedger, no_ledgers
from dpbench.report.frames.results import Results
from dpbench.report.page.page import write_paper_page

from ..made_up import LABELS, make_grid

pytestmark = pytest.mark.browser
RESULTS = Path(__file__).parents[3] / "results"
PAPERS = ("arena", "bayesian_glm", "binagg", "dd_ssp", "excess_risk", "query_release")
ADULT, TAXI = '[data-d="0"]', '[data-d="1"]'  # places in the order of the panels
TABLE = "#figure1 .behind"


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """A page of figures over epsilon and over categories, and a curve, of two data sets and four methods."""
    paper = Paper(
        "a_paper",
        "A paper",
        {
            "panels": {"adult": "Adult", "taxi": "Taxi"},
            "labels": LABELS,
            "figures": [
                {"name": "figure1", "metric": "mse", "title": "Both", "yscale": "log", "experiments": ["one", "two"]},
                {
                    "name": "compared",
                    "kind": "comparison_table",
                    "title": "Compared",
                    "metric": "mse",
                    "x": "release.budget.epsilon",
                    "experiments": ["one", "two"],
                },
                {
                    "name": "cost",
                    "kind": "method_difference_table",
                    "title": "Cost",
                    "metric": "mse",
                    "x": "release.budget.epsilon",
                    "less": "AdaSSP (tight)",
                    "experiments": ["one"],
                },
                {
                    "name": "by_model",
                    "kind": "metric_by_setting",
                    "title": "By model",
                    "metric": "mse",
                    "x": "model.name",
                    "categories": {"linear_marginals": "on some marginals", "linear_rows": "on rows"},
                    "where": {"release.budget.epsilon": 0.1},
                    "show": ["DD-SSP", "AIM-Synth"],
                    "experiments": ["one"],
                },
                {"name": "curve", "kind": "polynomial", "radius": 6, "fits": [{"degree": 2, "construction": "series"}]},
            ],
        },
        {},
    )
    experiment = compose(["experiment=quickstart"])
    experiment = replace(experiment, report={**experiment.report, "labels": LABELS})
    results = [
        Results(replace(experiment, name=name, dataset=replace(experiment.dataset, name=data)), make_grid(data))
        for name, data in (("one", "adult"), ("two", "taxi"))
    ]

    noise = {"kind": "gaussian", "label": "X'X", "sensitivity": 2.0, "multiplier": 11.5}

    def events(trial):
        if trial.key.release.mechanism.name == "aim":
            return None
        if not math.isfinite(trial.key.release.budget.epsilon):
            return None
        return [noise, {**noise, "multiplier": 7.5}] if trial.key.release.repetition == 3 else [noise]

    first = FirstLedger("a release that is not listed", 9, [{**noise, "label": "selected"}])
    kept = {
        trial.release_id: first
        for one in results
        for trial in one.trials
        if events(trial) is None and trial.key.release.budget.epsilon < 2
    }
    return write_paper_page(paper, results, tmp_path_factory.mktemp("page"), events, kept).as_uri()


@pytest.fixture(scope="module", params=[pytest.param(name, marks=pytest.mark.slow) for name in PAPERS])
def committed(request, tmp_path_factory):
    """The page of the committed trials of a paper."""
    paper = paper_of(request.param)
    results, _ = results_of(paper, [f"results={RESULTS}"], None, False)
    kept = exported_ledgers((one.experiment for one in results), None, paper.name)
    return write_paper_page(paper, results, tmp_path_factory.mktemp(paper.name), no_ledgers, kept)


@pytest.fixture(scope="module")
def exported(tmp_path_factory, workbench):
    """The page of a run that was exported, and of which nothing else was kept, as one meets it in a clean checkout."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("exported"))
        bench = workbench(Path.cwd())
        assert bench.run("mechanism=[exact,adassp]", "epsilon=[1]", "repetitions=2") == 0
        folder = bench.results / "grid"
        bench.keep_the_export_alone()
        assert main(["report", str(folder)]) == 0
        return (folder / "report.html").as_uri()


@pytest.fixture
def visit(chromium, address):
    """Opens the page in a window of this size; what the console and the network were asked for is kept."""
    contexts = []

    def opened(width=1280, address=address, **settings):
        context = chromium.new_context(viewport={"width": width, "height": 900}, **settings)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(60_000)
        page.reported = []
        page.on("console", lambda message: page.reported.append(message.text))
        page.on("pageerror", lambda error: page.reported.append(str(error)))
        page.on("request", lambda asked: page.reported.append(asked.url) if asked.url.startswith("http") else None)
        page.goto(address)
        return page

    yield opened
    for context in contexts:
        context.close()


def drawn(page):
    """Brings every chart into view, until it is drawn."""
    for chart in page.locator(".chart").all():
        chart.scroll_into_view_if_needed()
        chart.locator("svg").wait_for()


def test_charts_are_drawn_with_an_empty_console_and_no_network(visit):
    page = visit()
    drawn(page)
    assert page.locator(".chart svg").count() == 4
    assert page.reported == []


def test_categories_have_their_names_below_the_axis_and_a_mark_each(visit):
    page = visit()
    drawn(page)
    chart = page.locator("#by_model .chart")
    assert chart.locator(".role-axis-label text").all_text_contents()[:2] == ["onsomemarginals", "onrows"]
    left, right = (mark.bounding_box() for mark in chart.locator(".mark-symbol path").all())
    assert right["x"] - left["x"] > 100


def test_filters_change_charts_tables_and_trials(visit):
    page = visit()
    drawn(page)
    page.locator(f"{TABLE} > summary").click()
    marks = page.locator(f"#figure1 {ADULT} .mark-symbol path")
    before = marks.count()
    page.locator("#filters summary").nth(0).click()
    page.locator("#filters summary").nth(1).click()
    page.get_by_label("Adult", exact=True).check()
    assert page.locator(f"{TABLE} tr{ADULT}").first.is_visible()
    assert not page.locator(f"{TABLE} tr{TAXI}").first.is_visible()
    assert not page.locator(f"#figure1 {TAXI} .chart").is_visible()
    assert page.locator("#shown").inner_text() == "31 of 62 cells of trials shown"
    page.get_by_label("DD-SSP", exact=True).check()
    page.wait_for_function(
        "number => document.querySelectorAll('#figure1 [data-d=\"0\"] .mark-symbol path').length < number", arg=before
    )
    assert marks.count() == 5, "one series at five epsilons"
    page.get_by_role("button", name="Show everything").click()
    page.wait_for_function(
        "number => document.querySelectorAll('#figure1 [data-d=\"0\"] .mark-symbol path').length == number", arg=before
    )
    assert page.locator(f"{TABLE} tr{TAXI}").first.is_visible()


def test_the_epsilon_filter_hides_the_other_columns_of_tables_without_a_figure(visit):
    page = visit()
    shown = page.locator("#compared thead th:visible")
    before = shown.all_inner_texts()
    page.locator("#filters summary").nth(2).click()
    page.get_by_label("0.1", exact=True).check()
    assert {"0.05", "0.1", "1"} <= set(before) and [text for text in shown.all_inner_texts() if text] == ["0.1", "inf"]
    numbers = page.locator("#compared tbody tr").first.locator("td:visible").all_inner_texts()
    assert len(numbers) == 3, "those of the method, epsilon and reference"


def test_a_number_of_a_table_leads_to_its_ledger_and_trials(visit):
    page = visit()
    page.locator(f"{TABLE} > summary").click()
    link = page.locator(f"{TABLE} tbody tr:has-text('AdaSSP') a").first
    cell = page.locator(link.get_attribute("href"))
    assert not cell.is_visible()
    link.click()
    trials = cell.locator(".trials")
    trials.locator("table").wait_for()
    assert "Target\nε = " in cell.inner_text() and "gaussian: sensitivity 2, multiplier 11.5" in cell.inner_text()
    assert trials.locator("th").all_inner_texts()[:4] == ["repetition", "trial", "release", "status"]
    assert trials.locator("tbody tr").count() == 5
    titles = trials.locator("summary")
    assert titles.all_inner_texts() == [
        "Every draw (1) of the release of repetition 0, 1, 2, 4",
        "Every draw (2) of the release of repetition 3",
    ]
    titles.nth(1).click()
    assert trials.locator("li:visible").all_inner_texts() == [
        "X'X: gaussian: sensitivity 2, multiplier 11.5",
        "X'X: gaussian: sensitivity 2, multiplier 7.5",
    ]
    assert page.reported == []


def test_a_ledger_that_stands_for_those_of_other_releases_opens_too(visit):
    page = visit()
    assert page.locator("#unfilled").count() == 0
    page.locator("#trials summary").first.click()
    cell = page.locator("#trials .cell:has-text('DD-SSP')").first
    cell.locator("summary").first.click()
    cell.locator(".trials table").wait_for()
    assert "Ledger of the release of repetition 9; of the others listed: 5 not stored" in cell.inner_text()
    cell.locator(".trials summary").click()
    assert cell.locator(".trials summary").inner_text() == "Every draw (1) of the release of repetition 9"
    assert cell.locator(".trials li:visible").inner_text() == "selected: gaussian: sensitivity 2, multiplier 11.5"
    assert page.reported == []


def test_a_small_link_names_its_cell(visit):
    assert visit().locator("#cost a.of").nth(1).get_attribute("title") == "Adult, AdaSSP (tight), ε\xa0=\xa00.05"


def test_a_private_cell_says_that_it_has_no_ledger_and_a_reference_does_not(visit):
    page = visit()
    page.locator("#trials summary").first.click()
    for name, says in (("DD-SSP", True), ("public", False)):
        cell = page.locator(f"#trials .cell:has-text('{name}')").last
        cell.evaluate("cell => { for (let at = cell; at; at = at.parentElement.closest('details')) at.open = true }")
        cell.locator(".trials table").wait_for()
        assert ("No ledger is stored." in cell.inner_text()) == says
        assert cell.locator(".ledger").count() == 0


def test_the_ledger_of_an_exported_trial_opens_where_its_release_is_not_stored(visit, exported):
    page = visit(address=exported)
    link = page.locator("tr:has-text('AdaSSP') td > a").first
    link.evaluate("link => { for (let at = link; at; at = at.parentElement.closest('details')) at.open = true }")
    link.click()
    cell = page.locator(link.get_attribute("href"))
    cell.locator(".trials table").wait_for()
    assert "Ledger of the release of repetition 0; of the others listed: 1 not stored" in cell.inner_text()
    assert "gaussian: " in cell.locator(".ledger").first.inner_text()
    assert cell.locator(".trials td:last-child").all_inner_texts() == ["below", "not stored"]
    cell.locator(".trials summary").click()
    draws = cell.locator(".trials li:visible").all_inner_texts()
    assert len(draws) == 3 and all("multiplier" in one for one in draws)
    assert page.reported == []


def test_numbers_and_trials_are_saved_as_plain_files_and_packed_without_javascript(visit, address):
    saved = {}
    for script in (True, False):
        page = visit(java_script_enabled=script)
        for name in ("figure1", "trials"):
            with page.expect_download() as asked:
                page.locator(f"#{name}-data").click()
            content = asked.value.path().read_bytes()
            saved[name, script] = content if script else gzip.decompress(content)
            ending = "json" if name == "trials" else "csv"
            assert asked.value.suggested_filename == f"{name}.{ending}{'' if script else '.gz'}"
    assert saved["figure1", True].startswith(b"panel,series,")
    assert all(saved[name, True] == saved[name, False] for name in ("figure1", "trials"))


def test_a_browser_that_cannot_unpack_shows_the_pictures(chromium, address):
    context = chromium.new_context()
    context.add_init_script("delete window.DecompressionStream")
    page = context.new_page()
    page.goto(address)
    assert page.locator("#figure1 .picture").is_visible() and not page.locator(".charts").first.is_visible()
    assert page.locator("#unfilled").is_visible()
    page.locator("#filters summary").nth(0).click()
    page.get_by_label("Adult", exact=True).check()
    assert page.locator("#shown").inner_text() == "31 of 62 cells of trials shown"
    context.close()


def test_axe_finds_nothing_serious(visit):
    from axe_playwright_python.sync_playwright import Axe

    page = visit()
    drawn(page)
    page.evaluate("document.querySelectorAll('details').forEach((one, place) => one.open = place < 30)")
    found = Axe().run(page).response["violations"]
    assert [(one["id"], one["nodes"][0]["html"]) for one in found if one["impact"] in ("serious", "critical")] == []


def test_a_page_of_committed_trials_keeps_all_promises(visit, committed):
    """Small, quick, of charts alone, without an error, with ledgers that open, on a phone and printed."""
    from axe_playwright_python.sync_playwright import Axe

    page = visit(address=committed.as_uri())
    assert committed.stat().st_size < 5e6, "of 4,000 trials and more"
    assert page.evaluate("performance.getEntriesByType('navigation')[0].domInteractive") < 2000
    drawn(page)
    assert page.locator(".figure").count() == page.locator(".figure .charts").count(), "each has a chart"
    names = page.evaluate("[...document.querySelectorAll('[id]')].map(one => one.id)")
    assert len(names) == len(set(names))
    with page.expect_download() as asked:
        page.locator("#trials-data").click()
    cells = json.loads(asked.value.path().read_text())["cells"]
    place = next((place for place, one in enumerate(cells) if one["ledger"]), None)
    if place is not None:
        cell = page.locator(f".cell:has(#c{place})")
        cell.evaluate("cell => { for (let at = cell; at; at = at.parentElement.closest('details')) at.open = true }")
        cell.locator(".trials summary").first.click()
        assert cell.locator(".trials li:visible").count()
    found = Axe().run(page).response["violations"]
    assert [(one["id"], one["nodes"][0]["html"]) for one in found if one["impact"] in ("serious", "critical")] == []
    page.evaluate("document.querySelectorAll('details').forEach(one => one.open = false)")
    assert page.pdf()[:4] == b"%PDF" and page.reported == []
    phone = visit(address=committed.as_uri(), width=390)
    drawn(phone)
    phone.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    assert phone.evaluate("document.documentElement.scrollWidth") == 390 and phone.reported == []


def test_without_javascript_pictures_tables_filters_and_trials_are_there(visit):
    page = visit(java_script_enabled=False)
    assert page.locator("#figure1 .picture").is_visible() and not page.locator(".charts").first.is_visible()
    page.locator(f"{TABLE} > summary").click()
    assert page.locator(f"{TABLE} tr{TAXI}").first.is_visible()
    page.locator("#filters summary").nth(0).click()
    page.get_by_label("Adult", exact=True).check()
    assert not page.locator(f"{TABLE} tr{TAXI}").first.is_visible()
    page.locator("#trials summary").nth(0).click()
    assert page.locator(f"#trials .cell{ADULT}").first.is_visible()


def test_on_a_phone_nothing_is_wider_than_the_page(visit):
    page = visit(width=390)
    drawn(page)
    page.evaluate("document.querySelectorAll('details').forEach((one, place) => one.open = place < 30)")
    assert page.evaluate("document.documentElement.scrollWidth") == 390


def test_printed_it_has_pictures_and_the_tables_behind_them(visit):
    page = visit()
    page.emulate_media(media="print")
    assert page.evaluate("[...document.images].every(one => one.complete && one.naturalWidth)")
    assert page.locator("#figure1 .picture").is_visible() and page.locator(f"{TABLE} table").is_visible()
    assert not page.locator(".charts").first.is_visible() and not page.locator("#filters").is_visible()
    assert page.pdf()[:4] == b"%PDF"
