"""What is committed under results/ is what the committed code draws from the committed exports."""

import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from dpbench.commands.report import results_of
from dpbench.config import paper_of
from dpbench.report.paper import build_paper, write_manifest

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "results"
PAGES = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
SHOWN = {  # the figures that README and docs show: no others are committed
    ROOT / path for page in PAGES for path in re.findall(r"\b(results/[\w/]+\.png)\b", page.read_text())
}
MANY, LARGE, TREE = 30, 60_000, 30e6  # figures; bytes of one, and of all files that are committed
MOST = 100_000  # bytes of a table or of a figure's data: others are not committed
PAPERS = sorted(path.parent.name for path in RESULTS.glob("*/manifest.json"))
QUICK = ("query_release",)
OF_ALL = {"claims", "datasets", "protocol", "runtimes", "statements"}  # tables that no config names
BENCHMARKS = {"public_code", "packages", "numbers", "recommendation"}  # tables that a benchmark or script writes


@pytest.mark.parametrize(
    ("name", "figure"),
    [
        ("dd_ssp", "figure4"),
        ("dd_ssp", "degree4_auc"),
        ("arena", "queries_ranks"),
        pytest.param("binagg", "figure2", marks=pytest.mark.slow),
    ],
)
def test_a_figure_of_each_paper_is_drawn_again_to_the_byte(name, figure, tmp_path):
    paper = paper_of(name)
    (spec,) = (spec for spec in paper.report["figures"] if spec["name"] == figure)
    found, _ = results_of(paper, [f"results={RESULTS}"], None, True, only=spec["experiments"])
    alone = replace(paper, report={**paper.report, "figures": [spec]}, published={})
    paths = build_paper(alone, found, tmp_path)
    assert {path.suffix for path in paths} >= {".png", ".csv"}
    same = [path for path in paths if path.suffix == ".csv" or RESULTS / name / path.relative_to(tmp_path) in SHOWN]
    assert any(path.suffix == ".csv" for path in same)
    for path in same:
        assert path.read_bytes() == (RESULTS / name / path.relative_to(tmp_path)).read_bytes(), path.name


@pytest.mark.parametrize("name", PAPERS)
def test_what_is_committed_has_the_name_of_something_that_is_drawn(name):
    """What the paper's config named once, and does not any more, is no longer there."""
    report = paper_of(name).report
    drawn = {spec["name"] for kind in ("figures", "tables") for spec in report.get(kind, [])}
    assert {path.name.split(".")[0] for path in _committed(RESULTS / name)} <= drawn | OF_ALL


@pytest.mark.slow
@pytest.mark.parametrize("name", PAPERS)
def test_all_that_a_paper_shows_is_what_its_export_gives(name, tmp_path):
    paper = paper_of(name)
    results, _ = results_of(paper, [f"results={RESULTS}"], None, True)
    drawn = {path.relative_to(tmp_path): path for path in build_paper(paper, results, tmp_path)}
    tables = _committed(tmp_path)
    assert tables == _committed(RESULTS / name)
    for path in sorted(tables):
        assert drawn[path].read_bytes() == (RESULTS / name / path).read_bytes(), path
    shown = {path.relative_to(RESULTS / name) for path in SHOWN if path.is_relative_to(RESULTS / name)}
    for path in sorted(shown):
        assert drawn[path].read_bytes() == (RESULTS / name / path).read_bytes(), path


def _committed(paper):
    found = (path for path in paper.glob("*/*.csv") if path.stem not in BENCHMARKS)
    return {path.relative_to(paper) for path in found if path.stat().st_size <= MOST}


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in PAPERS]
)
def test_the_manifest_of_a_paper_lists_what_its_export_holds(name, tmp_path):
    paper = paper_of(name)
    results, stored = results_of(paper, [f"results={RESULTS}"], None, True)
    assert not stored
    path = write_manifest(paper, results, tmp_path)
    assert path.read_bytes() == (RESULTS / name / "manifest.json").read_bytes()


def test_a_clone_without_history_is_small_and_has_the_figures_that_its_pages_show():
    files = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout.decode()
    sizes = {ROOT / name: (ROOT / name).stat().st_size for name in files.split("\0") if (ROOT / name).is_file()}
    assert sum(sizes.values()) < TREE
    drawn = {path: size for path, size in sizes.items() if path.suffix in (".png", ".pdf") and RESULTS in path.parents}
    assert drawn.keys() == SHOWN and len(drawn) <= MANY
    assert [path.name for path, size in drawn.items() if size > LARGE] == []
    made = [path for path in sizes if path.suffix in (".md", ".tex") and RESULTS in path.parents]
    assert made == [], "`make figures` writes them"
