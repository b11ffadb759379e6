"""Claims: each release is one runner's, and those of a runner that is gone are taken over."""

import errno
import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from dpbench.grid import release_claims as module
from dpbench.grid.release_claims import Claims
from dpbench.grid.store import Store, StoreError


@pytest.fixture
def store(tmp_path):
    store = Store(tmp_path, "grid")
    store.prepare()
    return store


def left(store):
    return sorted(path.name for path in store.claims_folder.iterdir())


def test_a_release_is_one_runners_until_it_is_given_back(store):
    one, two = Claims(store), Claims(store)
    assert one.take("a") and two.take("b")
    assert not two.take("a") and not one.take("b")
    one.give_back(["a"])
    assert two.take("a")
    one.close()
    two.close()
    assert left(store) == []


def test_a_claim_that_cannot_be_withdrawn_ends_no_run(store, monkeypatch):
    def refused(path, missing_ok=False):
        raise PermissionError(errno.EPERM, "Operation not permitted", str(path))

    one = Claims(store)
    assert one.take("a")
    with monkeypatch.context() as patch:
        patch.setattr(module.Path, "unlink", refused)
        one.give_back(["a"])
    one.close()


def test_a_runner_that_finds_the_disk_full_leaves_nothing(store, monkeypatch):
    def full(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StoreError, match="No space left on device"):
        Claims(store)
    assert left(store) == []


def test_of_many_who_ask_at_once_one_gets_it(store):
    runners = [Claims(store) for _ in range(16)]
    with ThreadPoolExecutor(16) as threads:
        for identity in "abcdefgh":
            assert sum(threads.map(lambda runner, name=identity: runner.take(name), runners)) == 1
    for runner in runners:
        runner.close()


DIES = """
import sys, time
from pathlib import Path
from dpbench.grid.release_claims import Claims
from dpbench.grid.store import Store, StoreError
claims = Claims(Store(Path(sys.argv[1]), "grid"))
print(claims.take("a"), flush=True)
time.sleep(60)
"""


def test_the_claims_of_a_runner_that_was_killed_are_taken_over_at_once_by_one(store):
    runner = subprocess.Popen([sys.executable, "-c", DIES, str(store.root)], stdout=subprocess.PIPE, text=True)
    assert runner.stdout.readline() == "True\n"
    others = [Claims(store) for _ in range(8)]
    assert not any(other.take("a") for other in others)
    runner.kill()
    runner.wait()
    runner.stdout.close()
    with ThreadPoolExecutor(8) as threads:
        assert sum(threads.map(lambda other: other.take("a"), others)) == 1
    for other in others:
        other.close()
    assert left(store) == [], "nothing is left of the runner that was killed either"


@pytest.mark.parametrize("age", [module.EXPIRE_SECONDS / 2, 2 * module.EXPIRE_SECONDS])
def test_claims_of_another_machine_expire_if_they_are_not_renewed(store, age):
    """Whether a process of another machine lives is known from the time of change of its file alone."""
    far, near = Claims(store), Claims(store)
    far._file.write_text(json.dumps({"machine": "another", "pid": 1, "started": "1"}))
    assert far.take("a")
    os.utime(far._file, (time.time() - age,) * 2)
    assert near.take("a") == (age > module.EXPIRE_SECONDS)
    near.close()
    far.close()


def test_a_runner_renews_its_claims(store, monkeypatch):
    monkeypatch.setattr(module, "RENEW_SECONDS", 0.01)
    runner = Claims(store)
    assert runner.take("a")
    os.utime(runner._file, (0, 0))
    end = time.monotonic() + 10
    while (store.claims_folder / "a.0").stat().st_mtime == 0 and time.monotonic() < end:
        time.sleep(0.01)
    assert (store.claims_folder / "a.0").stat().st_mtime > time.time() - 60
    runner.close()


@pytest.mark.parametrize("content", ["", "{", "[]", '{"machine": 1}'])
def test_a_claim_that_cannot_be_read_expires_by_its_time_of_change(store, content):
    claim, runner = store.claims_folder / "a.0", Claims(store)
    claim.write_text(content)
    assert not runner.take("a")
    os.utime(claim, (time.time() - 2 * module.EXPIRE_SECONDS,) * 2)
    assert runner.take("a")
    runner.close()
    assert left(store) == []


def test_who_holds_a_claim_is_said(store):
    runner = subprocess.Popen([sys.executable, "-c", DIES, str(store.root)], stdout=subprocess.PIPE, text=True)
    assert runner.stdout.readline() == "True\n"
    mine = Claims(store)
    assert mine.holders(["a", "b"]) == f"1 by process {runner.pid} of this machine"
    os.kill(runner.pid, signal.SIGSTOP)
    os.waitpid(runner.pid, os.WUNTRACED)
    assert f"process {runner.pid} of this machine, which is stopped: kill -CONT {runner.pid}" in mine.holders(["a"])
    runner.kill()
    runner.wait()
    runner.stdout.close()
    (store.claims_folder / "c.0").write_text("")
    assert "a claim that cannot be read, such as" in mine.holders(["c"])
    mine.close()


@pytest.mark.parametrize("code", [errno.EPERM, errno.EOPNOTSUPP])
def test_without_links_each_release_is_one_runners_all_the_same(store, monkeypatch, code):
    def refused(*_, **__):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "link", refused)
    monkeypatch.setattr(module, "RENEW_SECONDS", 0.01)
    one, two = Claims(store), Claims(store)
    assert one.take("a") and not two.take("a")
    os.utime(store.claims_folder / "a.0", (0, 0))
    end = time.monotonic() + 10
    while (store.claims_folder / "a.0").stat().st_mtime == 0 and time.monotonic() < end:
        time.sleep(0.01)
    assert (store.claims_folder / "a.0").stat().st_mtime > 0, "it is renewed"
    one.give_back(["a"])
    assert two.take("a")
    one.close()
    two.close()
    assert left(store) == []


def test_where_no_claim_can_be_made_it_is_said(store, monkeypatch, caplog):
    runner = Claims(store)
    monkeypatch.setattr(runner, "_make", lambda claim: (_ for _ in ()).throw(OSError(errno.ENOSPC, "No space left")))
    assert runner.take("a")
    assert "another runner may do the same work" in caplog.text
    runner.close()
