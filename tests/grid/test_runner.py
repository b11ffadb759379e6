"""What of a plan runs, and in which order."""

import os
import subprocess
import sys
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest

from dpbench.config import compose
from dpbench.grid import runner, trial
from dpbench.grid.plan import make_plan
from dpbench.grid.records import Failure, Trial
from dpbench.grid.release_claims import Claims
from dpbench.grid.runner import BATCH, BATCH_SECONDS, Batches, Options, missing, run
from dpbench.grid.store import Store, StoreError
from dpbench.grid.trial import Outcome


def plan_and_store(bench):
    store = Store(bench.results, "grid")
    store.prepare()
    return make_plan(compose(bench.settings("epsilon=[0.5,2]"))), store


def test_what_is_stored_does_not_run_again_and_failures_only_if_asked(bench):
    plan, store = plan_and_store(bench)
    one, two = (item.trials[0] for item in plan.releases[:2])
    done = Trial(one.id, one.release.id, one, "grid", "done")
    store.write_trial(done)
    store.write_trial(replace(done, id=two.id, key=two, status="failed", error=Failure("ValueError", "no")))
    assert [item.key.id for item in missing(plan, store)] == [item.key.id for item in plan.releases[2:]]
    assert missing(plan, store, retry_failed=True)[0].key == two.release
    assert missing(plan, store, force=True) == list(plan.releases)


@pytest.mark.parametrize("status", ["no_estimate", "unconverged"])
def test_what_another_run_would_give_again_is_no_failure_to_retry(status, bench):
    plan, store = plan_and_store(bench)
    one = plan.releases[0].trials[0]
    store.write_trial(Trial(one.id, one.release.id, one, "grid", status, error=Failure("E", "no")))
    assert missing(plan, store, retry_failed=True) == list(plan.releases[1:])


DIES = """
import os, sys
from pathlib import Path
from dpbench.grid.release_claims import Claims
from dpbench.grid.store import Store
Claims(Store(Path(sys.argv[1]), "grid")).take("a")
os.kill(os.getpid(), 9)
"""


def test_with_nothing_to_run_claims_of_a_runner_that_is_gone_are_tidied_up(bench):
    plan, store = plan_and_store(bench)
    for item in plan.releases:
        for key in item.trials:
            store.write_trial(Trial(key.id, key.release.id, key, "grid", "done"))
    subprocess.run([sys.executable, "-c", DIES, str(bench.results)], check=False)
    assert len(list(store.claims_folder.iterdir())) == 2
    run(plan, store, Options(jobs=1), lambda summary: None)
    assert not list(store.claims_folder.iterdir())


def test_larger_budgets_run_first(bench, monkeypatch):
    plan, store = plan_and_store(bench)
    ran = []
    monkeypatch.setattr(runner, "check_data", lambda plan, context: set())

    def run_batch(items, context, *, together):
        ran.extend(item.key.budget.epsilon for item in items)
        return Outcome([], 0, [], [], 0.0)

    monkeypatch.setattr(runner, "run_batch", run_batch)
    run(plan, store, Options(jobs=1), lambda summary: None)
    assert ran == sorted(ran, reverse=True)
    assert len(ran) == len(plan.releases)


def test_cheap_releases_of_one_kind_come_in_batches_and_those_of_others_come_again(bench):
    settings = ["mechanism=[adassp,exact]", "repetitions=20"]
    batches = Batches(make_plan(compose(bench.settings(*settings))).releases)

    def taken(seconds, taken=()):
        for kind, items, cheap in batches:
            yield len(items), items[0].key.mechanism.name, cheap
            batches.learn(kind, Outcome([("a", "done", "")], 0, [item for item in items if item in taken], [], seconds))

    cheap = BATCH_SECONDS / 100
    assert [*taken(cheap)] == [
        *[(1, "exact", False), (BATCH - 1, "exact", True), (1, "adassp", False), (BATCH - 1, "adassp", True)],
        *[(BATCH, "exact", True), (BATCH, "adassp", True)],
        *[(4, "exact", True), (4, "adassp", True)],
    ]
    assert not batches.again()
    items = make_plan(compose(bench.settings(*settings, "mechanism=[exact]"))).releases
    batches = Batches(items)
    assert [*taken(2 * BATCH_SECONDS, items[3:5])] == [(1, "exact", False)] * 20
    assert batches.again()
    assert [*taken(cheap)] == [(1, "exact", False), (1, "exact", True)]
    assert not batches.again()


def test_a_split_serves_every_mechanism_and_budget_before_others_take_its_place(bench):
    settings = ["mechanism=[adassp,exact,ssp]", "epsilon=[0.5,2]", "repetitions=20"]
    plan = make_plan(compose(bench.settings(*settings, "sweep={sample.test_rows: [0.2, 0.4]}")))
    made, kept = list[tuple[str, int]](), list[tuple[str, int]]()  # a process keeps the splits used last
    for _, items, _ in Batches(plan.releases):
        for item in items:
            one = str(item.key.split), item.key.repetition
            if one not in kept:
                made.append(one)
            kept = [*(other for other in kept if other != one), one][-BATCH:]
    assert len(made) == len({*made}) == 2 * 20


ERRATIC = """
import os, time
from dpbench.data.encode import Design
from dpbench.mechanisms.ssp import ssp

def erratic(train, budget, rng, *, design: Design):
    \"\"\"SSP, unless the first draw has it kill its process, hang or fail.\"\"\"
    draw = rng.integers(8)
    if draw == 0:
        os.kill(os.getpid(), 9)
    if draw == 1:
        time.sleep(60)
    if draw == 2:
        raise RuntimeError("no")
    return ssp(train, budget, rng, design=design)
"""


def test_a_trial_that_ends_its_process_takes_no_other_of_its_batch_with_it(bench, monkeypatch):
    own = bench.folder / "own"
    (own / "mechanism").mkdir(parents=True)
    (own / "own_erratic.py").write_text(ERRATIC)
    (own / "mechanism" / "erratic.yaml").write_text(
        "erratic: {_target_: own_erratic.erratic, _offers_: [statistics]}\n"
    )
    monkeypatch.syspath_prepend(str(own))
    line = [
        "--config-dir",
        str(own),
        "--unchecked",
        "mechanism=[erratic]",
        "dataset.public=true",
        "repetitions=10",
        "seed=1",
        "limits.seconds=3",
    ]
    monkeypatch.setattr(runner, "BATCH_SECONDS", 100.0)
    assert bench.run(*line) == 1
    together = bench.trials()
    assert {trial["status"] for trial in together.values()} == {"done", "failed", "crashed", "timeout"}
    monkeypatch.setattr(runner, "BATCH", 1)
    bench.results = bench.folder / "one by one"
    assert bench.run(*line) == 1
    assert bench.trials() == together


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_disk_that_is_full_when_a_release_is_written_stops_the_run_too(bench, jobs):
    """It is written in another process than the trials are."""
    store = Store(bench.results, "grid")
    store.prepare()
    (bench.results / "releases").rmdir()
    (bench.results / "releases").write_text("")  # no folder can be made below it
    with pytest.raises(StoreError, match="What was stored before is untouched"):
        run(make_plan(compose(bench.settings())), store, Options(jobs=jobs), lambda summary: None)
    assert not bench.trials()


def shared():
    """The channels and the memory that this process shares with others."""
    found = [os.path.realpath(path) for path in Path("/proc/self/fd").iterdir()]
    return sorted(path for path in found if "socket:" in path or "memfd:" in path)


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="the system does not tell which files are open")
@pytest.mark.parametrize("error", [None, MemoryError])
def test_a_run_leaves_no_channel_open(bench, monkeypatch, error):
    """But that to the template of its workers, which a run before it may have left."""
    bench.run("repetitions=1", "name=before")
    before = shared()
    if error is not None:
        monkeypatch.setattr(trial, "_trials", lambda *given: raised(error))
    with nullcontext() if error is None else pytest.raises(error):
        bench.run("repetitions=1")
    assert shared() == before


def raised(error):
    raise error


def test_whom_a_run_waits_for_is_said(bench, monkeypatch, caplog):
    """Not only an estimate that grows."""
    plan, store = plan_and_store(bench)
    other, looks = Claims(store), [0]
    for item in plan.releases:
        assert other.take(item.key.id)

    def look(items, context, *, together):
        looks[0] += 1
        taken = [] if caplog.text else list(items)
        return Outcome([], 0, taken, [], 0.0)

    monkeypatch.setattr(runner, "run_batch", look)
    monkeypatch.setattr(runner, "check_data", lambda *_: set())
    monkeypatch.setattr(runner, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(runner, "SAY_SECONDS", 0.1)
    run(plan, store, Options(jobs=1), lambda summary: None)
    waiting = len(plan.releases)
    assert (
        f"waiting for {waiting} releases that others are at work on: {waiting} by process {os.getpid()}" in caplog.text
    )
    assert looks[0] > waiting
    other.close()
