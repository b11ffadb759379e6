"""Where a run stands, on a terminal and without one."""

import io
import threading
import time

import pytest

from dpbench.commands import progress
from dpbench.commands.progress import Board, Lines, Standing
from dpbench.config import compose
from dpbench.grid.plan import make_plan
from dpbench.grid.release_claims import Claims
from dpbench.grid.runner import Summary, missing
from dpbench.grid.store import Store


@pytest.fixture
def planned(bench):
    """planned(mechanisms, repetitions): a plan of these, what of it is missing, and its store."""

    def make(mechanisms="adassp", repetitions=4):
        plan = make_plan(compose(bench.settings(f"mechanism=[{mechanisms}]", f"repetitions={repetitions}")))
        store = Store(bench.results, "grid")
        store.prepare()
        return plan, missing(plan, store), store

    return make


def test_without_a_terminal_lines_are_few_and_the_last_is_shown(planned):
    plan, _, store = planned()
    stream = io.StringIO()
    with Lines(Standing(plan, [], store, list), stream) as lines:
        for ran in range(4):
            lines.show(Summary(planned=3, stored=0, ran=ran))
    told = stream.getvalue().splitlines()
    assert len(told) == 2
    assert told[-1].startswith("3/3 trials")


def test_a_line_says_what_is_done_stored_failed_and_left_by_the_seconds_that_are_predicted(bench, planned, monkeypatch):
    """Of four releases the two that have ended are predicted to need a tenth of all seconds."""
    monkeypatch.setattr(progress, "PREDICT_SECONDS", 0.0)
    plan, waiting, store = planned()
    seconds = {item.key.id: 1.0 if item.key.repetition < 2 else 9.0 for item in waiting}
    stream = io.StringIO()
    standing = Standing(plan, waiting, store, lambda: [seconds[item.key.id] for item in waiting])
    with Lines(standing, stream) as lines:
        time.sleep(0.1)
        lines.show(Summary(4, 0))
        assert bench.run("mechanism=[adassp]", "repetitions=2") == 0
        monkeypatch.setattr(progress.time, "monotonic", lambda: standing._start + 100.0)
        lines.show(Summary(4, 1, 1, [("a", "failed", "no")]))
    assert stream.getvalue().splitlines() == [
        "0/4 trials, 0 failed, 0s elapsed, about 20s left on one core",
        "2/4 trials, 1 stored before, 1 failed, 1m40s elapsed, about 15m00s left",
    ]


def test_a_run_that_ends_at_once_predicts_nothing(planned, monkeypatch):
    monkeypatch.setattr(progress, "PREDICT_SECONDS", 0.2)
    plan, waiting, store = planned()
    asked = []
    with Lines(Standing(plan, waiting, store, lambda: asked.append(1)), io.StringIO()):
        pass
    time.sleep(0.4)
    assert not asked


def test_a_terminal_has_a_table_of_what_is_done_failed_and_at_work(bench, planned):
    """Of every runner: the releases of another one are claimed, and their trials stored, in the same folder."""
    bench.has_run("mechanism=[adassp]", "repetitions=2")
    plan, waiting, store = planned("adassp,ssp")
    claims = Claims(store)
    claims.take(next(item.key.id for item in waiting if item.key.mechanism.name == "ssp"))
    stream = io.StringIO()
    standing = Standing(plan, waiting, store, lambda: [1.0] * len(waiting))
    with Board(standing, stream):
        assert bench.run("mechanism=[adassp]", "repetitions=4") == 0
        time.sleep(0.1)
        standing.look()
        rows = standing.rows()
        told = standing.times()
    claims.close()
    assert rows == [("adassp", 4, 4, 0, 0), ("ssp", 0, 4, 0, 1)]
    assert " elapsed, about " in told  # half of what was to run
    assert "4/4" in stream.getvalue() and "0/4" in stream.getvalue()


@pytest.mark.parametrize(("seconds", "left"), [(90.0, ", about 6m00s left on one core"), (1.0, "")])
def test_the_time_left_is_shown_before_the_first_release_has_ended(planned, seconds, left):
    """By the seconds of earlier trials; `predicted` says 1 s of each where none are known, which is no prediction."""
    plan, waiting, store = planned()
    standing = Standing(plan, waiting, store, lambda: [seconds] * len(waiting))
    with Board(standing, io.StringIO()):
        time.sleep(0.1)
        assert standing.times() == f"0s elapsed{left}"


def test_a_prediction_that_takes_long_holds_up_nothing(planned):
    plan, waiting, store = planned()
    ready = threading.Event()

    def predicted():
        ready.wait(60)
        return [90.0] * len(waiting)

    standing = Standing(plan, waiting, store, predicted)
    with Board(standing, io.StringIO()):
        assert standing.times() == "0s elapsed"
        ready.set()
