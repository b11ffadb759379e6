"""`dpbench verify`: what is stored is well, and what was changed since is found."""

import json
import shutil

import pytest

from dpbench.cli import main
from dpbench.grid.log_file import sealed, unsealed

SETTINGS = ("mechanism=[adassp]", "repetitions=2")


@pytest.fixture(scope="module")
def whole(workbench, tmp_path_factory):
    bench = workbench(tmp_path_factory.mktemp("stored"))
    bench.has_run(*SETTINGS)
    return bench.results


@pytest.fixture
def stored(bench, whole):
    shutil.copytree(whole, bench.results)
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
    assert "grid/trials.jsonl.xz: 2 trials, no problem found" in out
    assert "grid: 2 trials, no problem found" in out and "releases: 2 releases, no problem found" in out


def test_a_folder_is_that_of_all_results_or_of_one_run(stored, capsys):
    for folder in (stored.results, stored.results / "grid"):
        assert main(["verify", str(folder)]) == 0
        out = capsys.readouterr().out
        assert "grid: 2 trials, no problem found" in out and "releases: 2 releases, no problem found" in out
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
    assert "2 releases have a ledger whose cost differs from the record" in verify(stored, capsys, 1)


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
    assert "2 trials do not match their id" in verify(stored, capsys, 1)


def test_a_trial_that_names_another_release_is_found(stored, capsys):
    def moved(record):
        if "release_id" in record:
            record["release_id"] = "0" * 16

    edited(next((stored.results / "grid" / "trials").iterdir()), moved)
    assert "2 trials do not match their id" in verify(stored, capsys, 1)


def test_nothing_to_verify_is_told(bench, capsys):
    assert main(["verify", f"results={bench.results}"]) == 2
    assert "holds no results" in capsys.readouterr().err


def set_aside(bench, capsys):
    capsys.readouterr()
    main(["verify", "--set-aside", f"results={bench.results}"])
    return capsys.readouterr().out


@pytest.mark.parametrize("part", ['"id": "', '"status"', '"shared"', '"provenance"'])
def test_after_damage_a_run_and_setting_aside_lead_back_to_all_well(stored, capsys, part):
    """Wherever the byte is: in an id too, and in what records share, so that nobody knows whose it was."""
    expected = stored.trials()
    (path,) = (stored.results / "grid" / "trials").iterdir()
    content = bytearray(path.read_bytes())
    content[content.index(part.encode()) + len(part)] ^= 1
    path.write_bytes(content)
    verify(stored, capsys, 1)
    assert stored.run("mechanism=[adassp]", "repetitions=2") == 0
    assert "set aside in" in set_aside(stored, capsys)
    assert "grid: 2 trials, no problem found" in verify(stored, capsys, 0)
    assert stored.trials() == expected
    assert (stored.results / "damaged").exists()


def test_a_damaged_release_can_be_set_aside_and_is_made_again_where_it_is_needed(stored, capsys):
    (arrays,) = (stored.results / "releases").glob("*.bin")
    arrays.write_bytes(b"x" + arrays.read_bytes()[1:])
    set_aside(stored, capsys)
    assert "releases: 1 releases, no problem found" in verify(stored, capsys, 0)
    stored.drop_trials()
    assert stored.run("mechanism=[adassp]", "repetitions=2") == 0
    assert "releases: 2 releases, no problem found" in verify(stored, capsys, 0)


def test_a_log_that_was_cut_to_nothing_is_not_well(stored, capsys):
    (path,) = (stored.results / "grid" / "trials").iterdir()
    path.write_bytes(b"")
    out = verify(stored, capsys, 1)
    assert "logs hold nothing" in out and path.name in out
    set_aside(stored, capsys)
    assert "grid: 0 trials, no problem found" in verify(stored, capsys, 0)


def test_a_file_that_cannot_be_read_is_named_and_the_others_are_checked(stored, capsys):
    (stored.results / "grid" / "trials" / "0.jsonl").symlink_to("nowhere")
    out = verify(stored, capsys, 1)
    assert "grid: 2 trials, something is wrong" in out and "0.jsonl cannot be read" in out


def test_a_trial_that_cannot_be_read_is_run_again(stored, capsys):
    def foreign(record):
        if "scores" in record:
            record["scores"] = 5

    expected = stored.trials()
    edited(next((stored.results / "grid" / "trials").iterdir()), foreign)
    assert "2 trials cannot be read" in verify(stored, capsys, 1)
    assert stored.run("mechanism=[adassp]", "repetitions=2") == 0
    assert "2 of 2 trials are stored" in capsys.readouterr().out
    assert stored.trials() == expected


def deceitful(record):
    for score in record.get("scores", ()):
        score["value"] = 1e-9


def test_what_checksums_cannot_show_is_said_and_running_again_shows_it(stored, capsys):
    edited(next((stored.results / "grid" / "trials").iterdir()), deceitful)
    out = verify(stored, capsys, 0)
    assert "Checksums show damage, not deceit" in out and "--recompute N" in out
    before = sorted(stored.results.rglob("*"))
    assert main(["verify", "--recompute", "1", f"results={stored.results}"]) == 1
    out = capsys.readouterr().out
    assert "1 trials run again, something is wrong" in out
    assert "1 trials have other scores when rerun" in out and " 1e-09, now " in out
    assert sorted(stored.results.rglob("*")) == before, "it runs elsewhere"


def test_trials_that_are_what_they_say_are_run_again_with_the_same_scores(bench, capsys):
    assert bench.run(*SETTINGS) == 0
    assert main(["verify", "--recompute", "9", str(bench.results / "grid")]) == 0
    assert "grid: 2 trials run again, no problem found" in capsys.readouterr().out
    csv = bench.folder / "my.csv"
    csv.write_text(csv.read_text() + "30,f,1\n")
    assert main(["verify", "--recompute", "2", str(bench.results)]) == 1
    assert "no trial is run again: dataset=csv: its sources changed" in capsys.readouterr().out
