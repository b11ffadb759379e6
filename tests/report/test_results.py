"""What is committed under results/ is what the committed code draws from the committed exports."""

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from dpbench.commands.report import notes_of, results_of
from dpbench.commands.stored import stored_trials
from dpbench.config import compose, paper_of
from dpbench.report.frames.results import Results
from dpbench.report.kinds import is_table
from dpbench.report.manifest import write_manifest
from dpbench.report.paper import build_paper

RESULTS = Path(__file__).parents[2] / "results"
PAPERS = sorted(path.parent.name for path in RESULTS.glob("*/manifest.json"))
QUICK = ("bayesian_glm", "query_release")


@pytest.mark.parametrize(
    ("name", "figure"),
    [("dd_ssp", "figure4"), ("arena", "queries_ranks"), pytest.param("binagg", "figure2", marks=pytest.mark.slow)],
)
def test_a_figure_of_each_paper_is_drawn_again_to_the_byte(name, figure, tmp_path):
    paper = paper_of(name)
    (spec,) = (spec for spec in paper.report["figures"] if spec["name"] == figure)
    found = []
    for one in spec["experiments"]:
        experiment = compose([f"experiment={one}", f"results={RESULTS}"])
        stored = stored_trials(experiment)
        found.append(Results(experiment, stored.trials, notes_of(experiment, stored)))
    alone = replace(paper, report={**paper.report, "figures": [spec]}, published={})
    paths = build_paper(alone, found, tmp_path)
    assert {path.suffix for path in paths} >= {".png", ".csv"}
    for path in paths:
        committed = RESULTS / name / path.relative_to(tmp_path)
        assert path.suffix == ".tex" or path.read_bytes() == committed.read_bytes(), path.name


@pytest.mark.slow
@pytest.mark.parametrize("name", PAPERS)
def test_all_that_a_paper_shows_is_what_its_export_gives(name, tmp_path):
    paper = paper_of(name)
    results, _ = results_of(paper, [f"results={RESULTS}"], None, False)
    drawn = {path.relative_to(tmp_path): path for path in build_paper(paper, results, tmp_path)}
    tables = {path for path in drawn if path.suffix in (".csv", ".md")}
    committed = {
        path.relative_to(RESULTS / name) for path in (RESULTS / name).glob("*/*") if path.suffix in (".csv", ".md")
    }
    assert tables == committed
    for path in tables:
        ours, theirs = drawn[path], RESULTS / name / path
        if path.suffix == ".csv":
            pd.testing.assert_frame_equal(pd.read_csv(ours), pd.read_csv(theirs), rtol=1e-9, obj=str(path))
        else:
            assert ours.read_text() == theirs.read_text(), path


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in PAPERS]
)
def test_the_manifest_of_a_paper_tells_what_its_export_holds(name, tmp_path):
    paper = paper_of(name)
    results, stored = results_of(paper, [f"results={RESULTS}"], None, False)
    assert not stored
    path = write_manifest(paper, results, tmp_path)
    assert path.read_bytes() == (RESULTS / name / "manifest.json").read_bytes()


@pytest.mark.parametrize("name", PAPERS)
def test_every_committed_figure_is_one_that_the_paper_declares(name):
    declared = {str(spec["name"]) for spec in paper_of(name).report["figures"] if not is_table(spec)}
    assert {path.stem for path in (RESULTS / name / "figures").iterdir()} <= declared


@pytest.mark.parametrize("name", ["dd_ssp", "binagg"])
def test_the_folder_of_a_paper_holds_no_more_than_is_committed(name):
    size = sum(path.stat().st_size for path in (RESULTS / name).rglob("*") if path.suffix != ".tex")
    assert size < 20e6, "both papers are to stay below 25 MB"
    assert (RESULTS / name / "manifest.json").exists()
