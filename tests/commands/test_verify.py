"""`dpbench verify`: what is stored is well, and what was changed since is found."""

import json

import pytest

from dpbench.cli import main
from dpbench.grid.sealed import sealed, unsealed


@pytest.fixture
def stored(bench):
    assert bench.run("mechanism=[adassp]", "repetitions=2") == 0
    return bench


def verify(bench, capsys, code):
    capsys.readouterr()
    assert main(["verify", f"results={bench.results}"]) == code
    return capsys.readouterr().out


def edited(path, change):
    """Change the records of a log that `change` knows, and seal them again, as somebody would who wants to deceive."""
    lines = []
    for line in path.read_bytes().splitlines(keepends=True):
        record = unsealed(line)
        change(record)
        lines.append(sealed(record).encode())
    path.write_bytes(b"".join(lines))


def test_what_a_run_stored_is_well_and_so_is_its_export(stored, capsys):
    assert main(["figures", "name=grid", f"results={stored.results}"]) == 0
    out = verify(stored, capsys, 0)
    assert "grid/trials.jsonl.xz: 2 trials, all well" in out
    assert "grid: 2 trials, all well" in out and "releases: 2 releases, all well" in out


def test_a_folder_is_that_of_all_results_or_of_one_run(stored, capsys):
    for folder in (stored.results, stored.results / "grid"):
        assert main(["verify", str(folder)]) == 0
        out = capsys.readouterr().out
        assert "grid: 2 trials, all well" in out and "releases: 2 releases, all well" in out
    assert main(["verify", str(stored.results), "results=elsewhere"]) == 2
    assert "give one folder" in capsys.readouterr().err


def test_a_damaged_trial_and_a_damaged_release_are_named(stored, capsys):
    stored.edit_trial(lambda line: line.replace('"done"', '"dane"'))
    (arrays,) = (stored.results / "releases").glob("*.bin")
    whole = arrays.read_bytes()
    arrays.write_bytes(bytes([whole[0] ^ 1]) + whole[1:])
    out = verify(stored, capsys, 1)
    assert "1 trials are damaged" in out and "1 releases are damaged" in out


def test_a_cost_that_was_made_smaller_in_the_ledger_is_found(stored, capsys):
    def cheaper(record):
        if "release" in record and "ledger" in record["release"]:
            for event in record["release"]["ledger"]:
                event["multiplier"] = 3 * event.get("multiplier", 1)

    (log,) = (stored.results / "releases").glob("*.jsonl")
    edited(log, cheaper)
    assert "2 releases have a ledger that costs something else" in verify(stored, capsys, 1)


def test_a_trial_that_spent_more_than_was_asked_for_is_found(stored, capsys):
    def dearer(record):
        if "spent" in record:
            record["spent"]["epsilon"] = 7.0

    edited(next((stored.results / "grid" / "trials").iterdir()), dearer)
    assert "2 trials spent more than was asked for" in verify(stored, capsys, 1)


def test_a_trial_that_was_stopped_for_spending_too_much_is_no_damage(stored, capsys):
    def caught(record):
        if "spent" in record:
            record["spent"]["epsilon"] = 7.0
            record |= {"status": "failed", "phase": "budget", "scores": []}

    edited(next((stored.results / "grid" / "trials").iterdir()), caught)
    assert "spent more" not in verify(stored, capsys, 0)


def test_a_trial_under_another_budget_than_its_identity_says_is_found(stored, capsys):
    def moved(record):
        text = json.dumps(record).replace('"epsilon": 1.0, "relation"', '"epsilon": 2.0, "relation"')
        record.clear()
        record.update(json.loads(text))
        if "shared" in record:
            record["shared"]["key"]["release"]["budget"]["epsilon"] = 2.0

    edited(next((stored.results / "grid" / "trials").iterdir()), moved)
    assert "2 trials are not what their identity says" in verify(stored, capsys, 1)


def test_a_trial_that_names_another_release_is_found(stored, capsys):
    def moved(record):
        if "release_id" in record:
            record["release_id"] = "0" * 16

    edited(next((stored.results / "grid" / "trials").iterdir()), moved)
    assert "2 trials are not what their identity says" in verify(stored, capsys, 1)


def test_nothing_to_verify_is_told(bench, capsys):
    assert main(["verify", f"results={bench.results}"]) == 2
    assert "holds no results" in capsys.readouterr().err
