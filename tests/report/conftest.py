"""A browser, for the pages that are opened in one."""

import shutil

import pytest

CHROMIUM = shutil.which("chromium")
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync", "--no-first-run"]


@pytest.fixture(scope="module")
def chromium():
    driver = pytest.importorskip(
        "playwright.sync_api", reason="make test-browser and make test-site install Playwright"
    )
    if CHROMIUM is None:
        pytest.skip("there is no Chromium; make test-browser installs it where it can")
    with driver.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        browser.close()
