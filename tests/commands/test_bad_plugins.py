"""The mechanisms in tests/bad_plugins, each with one thing wrong: what a check says, and what becomes of a run."""

from pathlib import Path

import pytest

from dpbench.cli import main
from dpbench.grid.trial_log import Log

FOLDER = Path(__file__).parent.parent / "bad_plugins"
FOUND = {  # what the check says
    "global_rows": "reads the rows without noise: on other rows, with the same answers, diagnostics changed",
    "private_file": "it reads a file, rows.csv, which is not recorded in the ledger",
    "honest_when_small": "(add_remove, 2,000 rows): reads the rows without noise",
    "writes_rows": "it writes to a file, copied.txt",
    "fixed_noise": 'the noise of "X\'X" is of another generator than it was given',
    "few_noises": 'the noise of "X\'X" is of another generator than it was given',
    "forged_ledger": "reads the rows without noise: on other rows, with the same answers, statistics.",
    "small_sensitivity": "times the sensitivity in the ledger",
    "in_diagnostics": "diagnostics changed",
    "in_text": "diagnostics changed",
    "in_label": "reads the rows without noise: on other rows, with the same answers, Gaussian(label=",
    "in_inputs": "nonprivate_inputs changed",
    "in_low_bits": "statistics.xty changed",
    "writes_input": "it wrote into the training rows",
    "patches_accounting": "its noise costs epsilon = ",
    "published_constants": "its noise costs epsilon = ",
}
PASSED = ("honest", "deceives")  # nothing but a reader finds out about the latter: "not seen" says so
VARIANTS = ("few_noises", "in_text", "in_label", "in_inputs", "in_low_bits", "writes_rows")  # of others
OVERSPENT = ("patches_accounting", "published_constants")  # refused also without a check


@pytest.fixture
def rows(tmp_path, monkeypatch):
    """A private file that two of them know of."""
    (tmp_path / "rows.csv").write_text("a\n1\n")
    monkeypatch.setenv("PRIVATE_ROWS", str(tmp_path / "rows.csv"))


def test_each_plug_in_of_the_folder_has_an_outcome():
    assert {path.stem for path in FOLDER.glob("*.py")} == {*FOUND, *PASSED}
    assert {path.stem for path in (FOLDER / "mechanism").iterdir()} == {*FOUND, *PASSED}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if name in VARIANTS else []) for name in [*FOUND, *PASSED]]
)
def test_the_check_finds_what_is_wrong_and_says_what_it_cannot_see(name, rows, capsys):
    assert main(["check", f"mechanism={name}", "--config-dir", str(FOLDER)]) == (1 if name in FOUND else 0)
    out = capsys.readouterr().out
    wrong = [line for line in out.splitlines() if line.startswith("  wrong")]
    assert any(FOUND[name] in line for line in wrong) if name in FOUND else not wrong, out
    assert "not seen: Python code is not sandboxed" in out


def ran(bench, names, *options):
    """The trials of a run of these mechanisms, by name."""
    line = [f"mechanism=[{','.join(names)}]", "repetitions=1", "epsilon=[1]", "calibration=[paper]", "metric=[mse]"]
    bench.run("--config-dir", str(FOLDER), *line, *options)
    return {trial["key"]["release"]["mechanism"]["name"]: trial for trial in bench.trials().values()}


def checks(bench):
    log = Log(bench.results / "checks")
    log.scan()
    return sorted(record["mechanism"] for record in log.records(list(log.entries)))


def refused(bench, names):
    found = ran(bench, [*PASSED, *names])
    assert {name: trial["status"] for name, trial in found.items()} == {
        **dict.fromkeys(PASSED, "done"),
        **dict.fromkeys(names, "failed"),
    }
    for name in names:
        error = found[name]["error"]
        assert (found[name]["phase"], error["type"], found[name]["spent"]) == ("check", "ContractError", None)
        problem = FOUND[name].rpartition("): ")[2]  # on whichever table it was found first
        assert problem in error["message"] and f"dpbench check mechanism={name}" in error["message"]
        assert len(error["message"]) < 2000
    assert not any(found[name]["nonprivate_inputs"] for name in PASSED)
    assert checks(bench) == sorted([*PASSED, *names])


def test_a_run_checks_own_mechanisms_once_and_refuses_those_with_which_something_is_wrong(bench, rows):
    names = ["fixed_noise", "patches_accounting"]
    refused(bench, names)
    ran(bench, [*PASSED, *names], "--force", "seed=1")
    assert checks(bench) == sorted([*PASSED, *names]), "each is checked once for its code"


def test_what_another_user_found_in_a_folder_is_not_believed(bench, rows, tmp_path, monkeypatch):
    ran(bench, ["fixed_noise"])
    monkeypatch.setenv("DPBENCH_SALT", str(tmp_path / "another_salt"))
    assert ran(bench, ["fixed_noise"], "--force")["fixed_noise"]["phase"] == "check"
    assert checks(bench) == ["fixed_noise", "fixed_noise"]


@pytest.mark.slow
def test_a_run_refuses_all_that_the_check_finds(bench, rows):
    refused(bench, list(FOUND))


def test_without_the_check_a_footnote_says_so_and_the_budget_is_kept_all_the_same(bench, rows, capsys):
    """One of them has the process that it runs in say that all is well: what was spent is computed in another."""
    found = ran(bench, ["honest", "fixed_noise", *OVERSPENT], "--unchecked")
    assert {name: trial["status"] for name, trial in found.items()} == {
        **dict.fromkeys(["honest", "fixed_noise"], "done"),
        **dict.fromkeys(OVERSPENT, "failed"),
    }
    for name in OVERSPENT:
        assert (found[name]["phase"], found[name]["error"]["type"]) == ("budget", "OverspentError")
    assert "the budget was 1" in found["published_constants"]["error"]["message"]
    for name in ("honest", "fixed_noise"):
        (note,) = found[name]["nonprivate_inputs"]
        assert note.startswith("not checked by dpbench check") and "--unchecked" in note
    assert "not checked by dpbench check" in capsys.readouterr().out, "a line under the table"
    assert not (bench.results / "checks").exists()


NEEDS_GRADE = """
from honest import honest

def needs_grade(train, budget, rng, *, design):
    train.domain.index("grade")
    return honest(train, budget, rng, design=design)
"""


def test_a_mechanism_that_made_up_tables_stop_is_run_and_a_footnote_says_so(bench, tmp_path, monkeypatch):
    own = tmp_path / "own"
    (own / "mechanism").mkdir(parents=True)
    (own / "honest.py").write_text((FOLDER / "honest.py").read_text())
    (own / "needs_grade.py").write_text(NEEDS_GRADE)
    declared = "needs_grade: {_target_: needs_grade.needs_grade, _offers_: [statistics]}"
    (own / "mechanism" / "needs_grade.yaml").write_text(declared)
    monkeypatch.setattr(f"{__name__}.FOLDER", own)
    (trial,) = ran(bench, ["needs_grade"]).values()
    assert trial["status"] == "done"
    (note,) = trial["nonprivate_inputs"]
    assert note.startswith("not checked by dpbench check") and "stopped on made-up tables" in note


def test_what_libraries_read_at_their_import_is_not_held_against_a_plug_in(tmp_path, rows, capsys):
    """What runs when its own module is imported is."""
    (tmp_path / "mechanism").mkdir()
    (tmp_path / "honest.py").write_text((FOLDER / "honest.py").read_text())
    (tmp_path / "mechanism" / "draws.yaml").write_text("draws: {_target_: draws.draws, _offers_: [statistics]}")
    body = (
        "from honest import honest\n\ndef draws(train, budget, rng, *, design):\n    import matplotlib.font_manager\n"
    )
    body += "    return honest(train, budget, rng, design=design)\n"
    for head, code in (("", 0), ("import os\nopen(os.environ['PRIVATE_ROWS']).close()\n", 1)):
        (tmp_path / "draws.py").write_text(head + body)
        assert main(["check", "mechanism=draws", "--config-dir", str(tmp_path)]) == code, capsys.readouterr().out
