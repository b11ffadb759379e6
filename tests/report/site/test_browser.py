"""The site in headless Chromium, opened from disk: as a reader meets it, with and without JavaScript."""

import re
import subprocess
import sys

import pytest

pytestmark = pytest.mark.browser
BOARD, PLACE = "boards/arena-regression_ranks.html", "boards/arena-regression_ranks/abalone.html"
ALL = "[aria-label='All numbers']"
SHOWN = "xpath=preceding-sibling::form[1]//output"  # such as "8 of 90 rows"


@pytest.fixture(scope="module")
def built(made):
    """The site as mkdocs builds it."""
    pytest.importorskip("mkdocs", reason="make test-site installs it")
    line = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--config-file", str(made / "mkdocs.yml")]
    subprocess.run(line, check=True)
    return made / "html"


@pytest.fixture
def visit(chromium, built):
    """Opens a page; what the console and the network were asked for is kept."""
    contexts = []

    def opened(address, width=1280, **settings):
        context = chromium.new_context(viewport={"width": width, "height": 900}, **settings)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(60_000)
        page.reported = []
        page.on("console", lambda message: page.reported.append(message.text))
        page.on("pageerror", lambda error: page.reported.append(str(error)))
        page.on("request", lambda asked: page.reported.append(asked.url) if asked.url.startswith("http") else None)
        page.goto(f"{built.as_uri()}/{address}")
        return page

    yield opened
    for context in contexts:
        context.close()


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("address", ["index.html", BOARD, PLACE, "methods/adassp.html"])
def test_axe_finds_nothing_serious_and_nothing_is_wider_than_the_window(visit, address, width):
    from axe_playwright_python.sync_playwright import Axe

    page = visit(address, width)
    for chart in page.locator(".chart").all():
        chart.locator("svg[aria-hidden]").wait_for(state="attached")
    assert page.reported == []  # axe, which reads style sheets again, has messages of its own
    found = Axe().run(page).response["violations"]
    assert [(one["id"], one["nodes"][0]["html"]) for one in found if one["impact"] in ("serious", "critical")] == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    printed = page.pdf()
    assert printed[:4] == b"%PDF"
    if address == PLACE:  # without what stands behind each number, which would take 50 pages
        assert len(re.findall(rb"/Type\s*/Page\b", printed)) < 12


def test_a_leaderboard_is_filtered_and_sorted(visit):
    page = visit(BOARD)
    page.get_by_label("ε", exact=True).select_option("1")
    tables = page.get_by_label("table", exact=True)
    tables.select_option(tables.locator("option", has_text="abalone").text_content())
    rows = page.locator(f"{ALL} tbody tr:visible")
    assert page.locator(ALL).locator(SHOWN).inner_text().startswith(f"{rows.count()} of ")
    page.locator(f"{ALL} thead button", has_text="MSE").click()
    values = [float(one.get_attribute("data-v") or "inf") for one in rows.locator("td:nth-of-type(3)").all()]
    assert len(values) >= 6 and values == sorted(values)
    page.get_by_label("n from").fill("5000")
    assert rows.count() == 0, "abalone has fewer rows"


def test_a_number_leads_to_its_trials(visit):
    page = visit(BOARD)
    page.locator(f"{ALL} tbody tr", has_text="AdaSSP").first.locator("td:nth-of-type(3) a").click()
    page.locator("details[open] .trials").first.wait_for()
    assert page.locator("details[open]").count() == 1
    assert page.locator("details[open] summary").inner_text().endswith("AdaSSP")
    assert page.locator("div:target").inner_text().startswith("ε = 0.1:")


def test_the_search_works_from_disk(visit):
    page = visit("index.html")
    page.keyboard.press("/")
    page.keyboard.type("BoostedAdaSSP")
    page.locator(".md-search-result__link[href*='methods/boosted_adassp.html']").first.wait_for(state="attached")
    assert page.reported == []


def test_without_javascript_the_numbers_are_there(visit):
    _, _, every = visit(BOARD).locator(ALL).locator(SHOWN).inner_text().partition(" of ")
    page = visit(BOARD, java_script_enabled=False)
    assert page.locator(f"{ALL} tbody tr").count() == int(every.split()[0]) > 100
    assert not page.locator(".chart").first.is_visible()
    assert page.locator(f"{ALL} tbody tr").first.is_visible()
