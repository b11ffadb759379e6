"""`dpbench figures` draws what is stored, and only that; the same trials give the same bytes."""

import json
import shutil
from dataclasses import replace

import pytest

from dpbench.cli import main
from dpbench.grid.records import Failure
from dpbench.grid.store import Store
from dpbench.report.export_file import NAME, load_export, write_export

from ..report.page.reading import with_cells

SETTINGS = [
    "experiment=quickstart",
    "sample=smoke",
    "limits=smoke",
    "mechanism=[exact,adassp]",
    "repetitions=2",
    "epsilon=[0.5,1]",
]


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    assert main(["run", *SETTINGS, "jobs=1", f"results={folder}"]) == 0
    return folder


def drawn(folder):
    names = ("figures/quickstart.pdf", "figures/quickstart.png", "figures/quickstart.csv")
    names += tuple(f"tables/quickstart.{kind}" for kind in ("csv", "md", "tex"))
    return {name: (folder / "quickstart" / name).read_bytes() for name in (*names, "trials.jsonl.xz")}


def test_figures_are_drawn_from_trials_and_again_from_the_export_alone(results, tmp_path, capsys):
    line = ["figures", *SETTINGS, "protocol=mine 1.0", "--pdf"]
    assert main([*line, f"results={results}"]) == 0
    from_trials = drawn(results)
    said = from_trials["tables/quickstart.md"].decode()
    assert "sample: smoke. limits: smoke" in said and "Protocol: mine 1.0, departs in: protocol" in said
    (tmp_path / "quickstart").mkdir()
    shutil.copy(results / "quickstart" / "trials.jsonl.xz", tmp_path / "quickstart")
    capsys.readouterr()
    assert main([*line, f"results={tmp_path}"]) == 0
    assert drawn(tmp_path) == from_trials
    assert "trials drawn are those of an export" in capsys.readouterr().out


def test_scores_on_rows_that_are_not_public_are_said_to_be_unprotected(bench):
    for public in ("true", "false"):
        assert bench.run(f"dataset.public={public}", "repetitions=1") == 0
        assert main(["figures", *bench.settings(f"dataset.public={public}", "repetitions=1", "name=grid")]) == 0
        tables = "".join(path.read_text() for path in bench.results.rglob("*.md"))
        assert ("no budget protects them" in tables) == (public == "false")


def test_other_settings_do_not_mix_with_what_is_stored(results, capsys):
    assert main(["figures", *SETTINGS, "delta=1e-6", f"results={results}"]) == 2
    assert "holds no trial of this plan" in capsys.readouterr().err


def test_where_all_experiments_are_drawn_one_with_other_settings_is_told_and_left_out(results, tmp_path, capsys):
    shutil.copytree(results, tmp_path / "all")
    assert main(["figures", f"results={tmp_path}/all"]) == 0
    told = capsys.readouterr().out
    assert "quickstart is not drawn" in told and f"`dpbench figures {tmp_path}/all/quickstart` draws the run" in told


def test_an_unfinished_plan_is_labelled(results, tmp_path):
    shutil.copytree(results, tmp_path / "copy")
    (path,) = (tmp_path / "copy" / "quickstart" / "trials").iterdir()
    *lines, last = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines))
    trials = [line for line in [*lines, last] if '"status"' in line]
    assert main(["figures", *SETTINGS, f"results={tmp_path}/copy"]) == 0
    text = (tmp_path / "copy" / "quickstart" / "tables" / "quickstart.md").read_text()
    assert f"{len(trials) - 1} of {len(trials)} planned trials" in text


def test_a_failed_trial_is_counted_in_its_cell(results, tmp_path):
    shutil.copytree(results, tmp_path / "copy")
    store = Store(tmp_path / "copy", "quickstart")
    for trial in list(store.all_trials()):
        release = trial.key.release
        if release.mechanism.name == "adassp" and release.repetition == 1:
            error = Failure("RuntimeError", "")
            store.write_trial(replace(trial, status="failed", phase="model", scores=(), error=error))
    assert main(["figures", *SETTINGS, f"results={tmp_path}/copy"]) == 0
    assert "1 failed" in (tmp_path / "copy" / "quickstart" / "tables" / "quickstart.md").read_text()


def test_an_export_keeps_the_ledgers_of_first_releases_that_are_gone(bench):
    bench.has_run("mechanism=[exact,adassp]", "epsilon=[1]", "repetitions=2")
    folder = bench.results / "grid"
    for _ in range(2):
        assert main(["figures", str(folder)]) == 0
        cells = {cell.key.release.mechanism.name: cell for cell in load_export(folder / NAME)}
        first = cells["adassp"].ledger
        assert first.repetition == 0 and {event["kind"] for event in first.events} == {"gaussian"}
        assert first.release == cells["adassp"].trials[0].release_id
        shutil.rmtree(bench.results / "releases", ignore_errors=True)


def test_what_a_cost_rests_on_is_told_by_the_ledger_of_an_export_as_the_report_does(bench):
    """JLT has no rho: without its ledger its noise could not be told from a claim."""
    assert bench.run("mechanism=[exact,jlt]", "epsilon=[1]", "repetitions=2") == 0
    bench.keep_the_export_alone()
    folder = bench.results / "grid"
    assert main(["figures", str(folder)]) == main(["report", str(folder)]) == 0
    (row,) = (
        line for line in (folder / "tables" / "grid_runs.md").read_text().splitlines() if line.startswith("| jlt")
    )
    assert "| proven |" in row
    page = with_cells((folder / "report.html").read_text())
    assert "the ledger of the noise that was drawn" in page and "the ledger is not stored" not in page
    assert "unknown: the ledger" not in page, "the table of the page neither"


def test_nothing_stored_is_a_clear_message(tmp_path, capsys):
    assert main(["figures", f"results={tmp_path}"]) == 2
    assert "dpbench run experiment=quickstart" in capsys.readouterr().err


PAPER = """
title: A small paper
report:
  panels: {adult_synth: Synthetic Adult}
  figures:
    - {name: both, metric: mse, title: Both, experiments: [quickstart, linreg_adult_all_attributes]}
"""


@pytest.fixture
def config_dir(tmp_path):
    (tmp_path / "conf" / "paper").mkdir(parents=True)
    (tmp_path / "conf" / "paper" / "small.yaml").write_text(PAPER)
    return tmp_path / "conf"


def test_a_paper_is_drawn_from_the_experiments_that_have_results(results, tmp_path, config_dir, capsys):
    shutil.copytree(results, tmp_path / "copy")
    settings = [*SETTINGS[1:], f"results={tmp_path}/copy", "--config-dir", str(config_dir)]
    assert main(["figures", "paper=small", *settings]) == 0
    assert f"{tmp_path}/copy/small/figures/both.png" in capsys.readouterr().out
    text = (tmp_path / "copy" / "small" / "tables" / "both.md").read_text().replace("\\", "")
    assert "Experiments not run: linreg_adult_all_attributes. sample: smoke. limits: smoke." in text
    assert not (tmp_path / "copy" / "small" / "tables" / "statements.md").exists(), "it has no published file"


def test_without_a_name_papers_with_results_are_drawn_too(results, tmp_path, config_dir, capsys):
    shutil.copytree(results, tmp_path / "copy")
    settings = [*SETTINGS[1:], f"results={tmp_path}/copy", "--config-dir", str(config_dir)]
    assert main(["figures", *settings]) == 0
    out = capsys.readouterr().out
    assert out.index("copy/quickstart/figures/quickstart.png") < out.index("copy/small/figures/both.png")
    assert "dd_ssp" not in out


def test_a_paper_of_other_settings_says_that_nothing_of_them_was_run(results, tmp_path, config_dir, capsys):
    shutil.copytree(results, tmp_path / "copy")
    settings = [*SETTINGS[1:], "delta=1e-6", f"results={tmp_path}/copy", "--config-dir", str(config_dir)]
    assert main(["figures", "paper=small", *settings]) == 0
    assert not (tmp_path / "copy" / "small" / "figures").exists()
    assert "both is not drawn" in capsys.readouterr().out


def test_a_paper_beside_an_experiment_or_unknown_is_a_clear_message(capsys):
    assert main(["figures", "paper=dd_ssp", "experiment=quickstart"]) == 2
    assert "either paper=" in capsys.readouterr().err
    assert main(["figures", "paper=dd_sp"]) == 2
    assert "did you mean 'dd_ssp'" in capsys.readouterr().err


def test_a_paper_is_drawn_again_from_its_export_alone_and_its_manifest_names_the_run(results, tmp_path, config_dir):
    shutil.copytree(results, tmp_path / "copy")
    settings = ["paper=small", *SETTINGS[1:], "--config-dir", str(config_dir)]
    assert main(["figures", *settings, f"results={tmp_path}/copy"]) == 0
    first = tmp_path / "copy" / "small"
    told = json.loads((first / "manifest.json").read_text())["experiments"]["quickstart"]
    assert told["run"] == "dpbench run experiment=quickstart" and told["notes"] == ["sample: smoke", "limits: smoke"]
    again, export = tmp_path / "again" / "small", "exports/quickstart.jsonl.xz"
    (again / "exports").mkdir(parents=True)
    shutil.copy(first / export, again / export)
    assert main(["figures", *settings, f"results={tmp_path}/again"]) == 0
    for name in ("figures/both.png", "figures/both.csv", "tables/both.md", export):
        assert (again / name).read_bytes() == (first / name).read_bytes(), name
    shutil.rmtree(again / "figures")
    assert main(["figures", *settings[1:], f"results={tmp_path}/again"]) == 0, "without a name, too"
    assert (again / "figures" / "both.png").exists()
    assert not (tmp_path / "again" / "quickstart").exists(), "what a paper's export alone has is drawn in its folder"


def test_a_run_of_one_experiment_leaves_the_exports_of_others_as_they_are(results, tmp_path, config_dir):
    shutil.copytree(results, tmp_path / "copy")
    settings = ["paper=small", *SETTINGS[1:], "--config-dir", str(config_dir), f"results={tmp_path}/copy"]
    other = tmp_path / "copy" / "small" / "exports" / "another.jsonl.xz"
    other.parent.mkdir(parents=True)
    write_export([], other.parent, name=other.name)
    before = other.stat().st_mtime_ns
    assert main(["figures", *settings]) == 0
    assert other.stat().st_mtime_ns == before
    assert sorted(path.name for path in other.parent.iterdir()) == ["another.jsonl.xz", "quickstart.jsonl.xz"]
