"""One request after another, and how each ended."""

import pytest

from dpbench.grid import worker
from dpbench.grid.store import StoreError


class Said:
    """The phases that a worker tells."""

    def __init__(self):
        self.said = []

    def write(self, name, *, limited):
        self.said.append((name, limited))


def serve(monkeypatch, do):
    monkeypatch.setitem(worker.DO, "test", do)
    page = Said()
    return worker._serve({"do": "test", "memory_mb": 100}, page), page.said


def test_a_request_that_is_done_says_its_phases_facts_and_seconds(monkeypatch):
    def do(request, work):
        with work.phase("model", limited=True):
            work.facts["notes"] = {"rank": 2}

    found, said = serve(monkeypatch, do)
    assert said == [("model", True)]
    assert found["reply"]["status"] == "done"
    assert found["reply"]["answer"] == {"notes": {"rank": 2}}
    assert found["reply"]["seconds"].keys() == {"model"}
    assert found["reply"]["peak_mb"] > 1


@pytest.mark.parametrize("error", [ValueError("no"), SystemExit(0), KeyboardInterrupt(), MemoryError()])
def test_whatever_a_plug_in_raises_is_a_status_with_its_phase(monkeypatch, error):
    def do(request, work):
        with work.phase("release"):
            work.facts["spent"] = 1
            raise error

    reply = serve(monkeypatch, do)[0]["reply"]
    assert reply["status"] == ("oom" if isinstance(error, MemoryError) else "failed")
    assert reply["phase"] == "release"
    assert reply["error"]["type"] == type(error).__name__
    assert reply["answer"] == {"spent": 1}


def test_results_that_cannot_be_written_are_no_failure_of_the_trial(monkeypatch):
    def do(request, work):
        raise StoreError("the disk is full")

    assert serve(monkeypatch, do)[0] == {"store_error": "the disk is full"}
