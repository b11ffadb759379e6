"""The GANs of smartnoise-synth and its AIM: what is sent to the other environment, what returns, and what is refused.

A small script plays the worker, so that the protocol is tested without that environment.
"""

import json
import os
import sys
from pathlib import Path

import numpy as np
import pytest

from dpbench.config import part_of
from dpbench.data.domain import Attribute, Domain
from dpbench.data.table import Table
from dpbench.errors import UserError
from dpbench.mechanisms import snsynth as module
from dpbench.mechanisms.snsynth import SYNTHESIZERS, snsynth
from dpbench.privacy.accounting import spent
from dpbench.privacy.budget import Budget
from dpbench.releases import SyntheticRows
from dpbench.resources import PACKAGE

BUDGET = Budget(1.0, 1e-5)
NETWORKS = [name for name in SYNTHESIZERS if name != "aim"]
PYTHON = Path(os.environ.get(module.VARIABLE, PACKAGE.parent / ".venv-snsynth" / "bin" / "python"))

DOMAIN = Domain(
    (
        Attribute.binned("age", 0, 100, 10),
        Attribute.categorical("sex", ["m", "f", "i"]),
        Attribute.discrete("rings", range(1, 6)),
        Attribute.categorical("site", ["here"]),
    )
)

HEAD = """
import json, sys, time
from pathlib import Path
import numpy as np
spec = json.loads(Path(sys.argv[2]).read_text())
folder = Path(sys.argv[2]).parent
train = np.load(folder / "train.npy")
"""
ECHO = 'np.savez(folder / "result.npz", rows=train[np.arange(spec["rows"]) % len(train)], epsilon=1.25)'


def table(n=40):
    rng = np.random.default_rng(3)
    ages, codes = rng.uniform(0, 100, n), rng.integers(0, (10, 3, 5, 1), (n, 4))
    codes[:, 0] = (ages / 10).astype(np.int64)
    return Table(DOMAIN, codes, {"age": ages})


def run(train=None, *, synthesizer="dpgan", settings=None, rows=30, timeout=60, budget=BUDGET, seed=0):
    train = table() if train is None else train
    rng = np.random.default_rng(seed)
    return snsynth(train, budget, rng, synthesizer=synthesizer, settings=settings or {}, rows=rows, timeout=timeout)


@pytest.fixture
def worker(tmp_path, monkeypatch):
    """Puts a script in the worker's place; what it writes under `tmp_path` stays."""

    def use(body):
        script = tmp_path / "worker.py"
        script.write_text(f"{HEAD}keep = Path({str(tmp_path)!r})\n{body}\n")
        monkeypatch.setattr(module, "WORKER", script)
        monkeypatch.setenv(module.VARIABLE, sys.executable)
        return tmp_path

    return use


def test_the_worker_is_told_the_public_domain_the_budget_and_the_declared_rows(worker):
    kept = worker('(keep / "seen.json").write_text(json.dumps(spec)); np.save(keep / "seen.npy", train)\n' + ECHO)
    run(settings={"epochs": 2, "batch_size": 8}, rows=7)
    spec = json.loads((kept / "seen.json").read_text())
    assert {key: spec[key] for key in ("synthesizer", "settings", "epsilon", "delta", "rows")} == {
        "synthesizer": "dpgan",
        "settings": {"epochs": 2, "batch_size": 8},
        "epsilon": 1.0,
        "delta": 1e-5,
        "rows": 7,
    }
    assert spec["columns"] == [
        {"name": "age", "lower": 0.0, "upper": 100.0},
        {"name": "sex", "levels": 3},
        {"name": "rings", "lower": 1.0, "upper": 5.0},
        {"name": "site", "levels": 1},
    ]
    seen, train = np.load(kept / "seen.npy"), table()
    assert np.array_equal(seen[:, 0], train.numbers["age"])  # the row's own number
    assert np.array_equal(seen[:, 1], train.column("sex"))
    assert np.array_equal(seen[:, 2], train.column("rings") + 1)  # no number is known: that of the bin


def test_aim_is_given_bins_and_gives_them_back(worker):
    kept = worker('(keep / "seen.json").write_text(json.dumps(spec)); np.save(keep / "seen.npy", train)\n' + ECHO)
    train = table()
    rows = run(train, synthesizer="aim", rows=len(train))[SyntheticRows].table
    columns = json.loads((kept / "seen.json").read_text())["columns"]
    assert [column["levels"] for column in columns] == [10, 3, 5, 1]
    assert np.array_equal(np.load(kept / "seen.npy"), train.codes), "no number of a row goes there"
    assert np.array_equal(rows.codes, train.codes)


def test_nothing_of_the_environment_reaches_the_worker_but_a_fixed_order_of_sets(worker, monkeypatch):
    """Else rows would differ between runs, or their Python would read packages of ours."""
    monkeypatch.setenv("PYTHONPATH", "/ours")
    monkeypatch.setenv("PYTHONHASHSEED", "7")
    kept = worker('import os; (keep / "seen").write_text(json.dumps([sorted(os.environ.items()), sys.path]))\n' + ECHO)
    run()
    variables, path = json.loads((kept / "seen").read_text())
    assert [one for one in variables if one[0].startswith("PYTHON")] == [["PYTHONHASHSEED", "0"]]
    assert str(module.WORKER.parent) not in path


def test_a_batch_is_at_most_the_table(worker):
    kept = worker('(keep / "seen.json").write_text(json.dumps(spec))\n' + ECHO)
    run(settings={"batch_size": 500})
    assert json.loads((kept / "seen.json").read_text())["settings"] == {"batch_size": len(table()) // 2 * 2}


def test_rows_that_come_back_unchanged_are_the_same_table(worker):
    worker(ECHO)
    train = table()
    release = run(train, rows=len(train))
    assert release.offers == ("rows",)
    assert np.array_equal(release[SyntheticRows].table.codes, train.codes)
    assert np.array_equal(release[SyntheticRows].table.numbers["age"], train.numbers["age"])


def test_numbers_outside_the_bounds_are_moved_into_them(worker):
    worker('np.savez(folder / "result.npz", rows=[[-5, 2, 0.2, 0], [130, 0, 4.4, 0], [55.5, 1, 9, 0]], epsilon=1)')
    rows = run(rows=3)[SyntheticRows].table
    assert rows.numbers["age"].tolist() == [0, 100, 55.5]
    assert rows.numbers["rings"].tolist() == [1, 4, 5]
    assert rows.codes.tolist() == [[0, 2, 0, 0], [9, 0, 3, 0], [5, 1, 4, 0]]


def test_the_seed_follows_the_generator(worker):
    kept = worker('open(keep / "seeds", "a").write(f"{spec[\'seed\']}\\n")\n' + ECHO)
    for seed in (1, 1, 2):
        run(seed=seed)
    first, again, other = (kept / "seeds").read_text().split()
    assert first == again != other


def test_aim_is_charged_as_claimed_and_uses_nothing_unpaid(worker):
    worker(ECHO)
    release = run(synthesizer="aim")
    assert [event.kind for event in release.ledger.events] == ["claimed"]
    assert spent(release.ledger, BUDGET.delta).epsilon == pytest.approx(1.0)
    assert release.diagnostics["accounted_epsilon"] == 1.25
    assert release.nonprivate_inputs == ()


@pytest.mark.parametrize("synthesizer", NETWORKS)
def test_the_ledger_holds_the_claim_and_the_release_says_what_is_wrong_with_it(worker, synthesizer):
    worker(ECHO)
    release = run(table(1000), synthesizer=synthesizer)
    (event,) = release.ledger.events
    assert event.kind == "claimed"
    assert spent(release.ledger, BUDGET.delta).epsilon == pytest.approx(1.0)
    assert "above epsilon" in release.diagnostics["claim"]
    assert release.diagnostics["accounted_epsilon"] == 1.25
    assert "the number of training rows" in release.nonprivate_inputs
    assert any("frequencies" in taken for taken in release.nonprivate_inputs) == ("ctgan" in synthesizer)
    numeric = run(table(1000).project(["age", "rings"]), synthesizer=synthesizer)
    assert not any("frequencies" in taken for taken in numeric.nonprivate_inputs)


def test_an_error_of_the_library_comes_back_as_one_message(worker):
    worker('print("noise"); (folder / "error.txt").write_text("ValueError: epsilon is too small"); sys.exit(1)')
    with pytest.raises(UserError, match=r"^dpgan of smartnoise-synth failed .*: ValueError: epsilon is too small$"):
        run()


def test_a_worker_that_dies_leaves_the_end_of_what_it_said(worker):
    worker('sys.exit("cannot import numpy")')
    with pytest.raises(UserError, match=r"failed .*cannot import numpy"):
        run()


def test_a_worker_that_hangs_is_stopped(worker):
    worker("time.sleep(60)")
    with pytest.raises(UserError, match=r"did not end within 0\.5 s; raise mechanism\.dpgan\.timeout"):
        run(timeout=0.5)


def test_numbers_that_are_none_are_an_error_not_rows(worker):
    worker('np.savez(folder / "result.npz", rows=[[np.nan, 0, 1, 0]], epsilon=1)')
    with pytest.raises(UserError, match="rows of dpgan"):
        run(rows=1)


def test_a_missing_environment_is_named_with_what_makes_it(monkeypatch, tmp_path):
    monkeypatch.setenv(module.VARIABLE, str(tmp_path / "python"))
    with pytest.raises(UserError, match=rf"{tmp_path}/python; make it with `make snsynth`.*{module.VARIABLE}"):
        run()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"synthesizer": "ctgan"}, "unknown synthesizer 'ctgan'"),
        ({"settings": {"epoch": 3}}, "unknown setting of dpgan 'epoch'; did you mean 'epochs'"),
        ({"synthesizer": "dpctgan", "settings": {"disabled_dp": True}}, "unknown setting of dpctgan 'disabled_dp'"),
        ({"settings": {"epsilon": 100}}, "unknown setting of dpgan 'epsilon'"),
        ({"budget": Budget(float("inf"), 1e-5)}, "finite epsilon"),
        ({"rows": 0}, "must be positive, not 0 and 60"),
        ({"timeout": 0}, "must be positive, not 30 and 0"),
        ({"synthesizer": "pategan"}, "pategan needs at least 1000 training rows"),
        ({"synthesizer": "mst"}, "unknown synthesizer 'mst'"),  # it does not keep its promise
        ({"synthesizer": "aim", "settings": {"rounds": 3}}, "aim: rounds must be at least 4, .*, not 3"),
    ],
)
def test_what_cannot_work_is_refused_before_the_worker_starts(worker, given, message):
    kept = worker('(keep / "started").touch()\n' + ECHO)
    with pytest.raises(UserError, match=message):
        run(**given)
    assert not (kept / "started").exists()


@pytest.mark.parametrize("name", [*NETWORKS, "snsynth_aim"])
def test_every_config_writes_out_all_settings_of_its_synthesizer(name):
    parameters = part_of("mechanism", name).parameters
    assert parameters["synthesizer"] == name.removeprefix("snsynth_")
    assert set(parameters["settings"]) == set(SYNTHESIZERS[parameters["synthesizer"]].settings)
