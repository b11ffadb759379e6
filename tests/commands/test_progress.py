"""Where a run stands, on a terminal and without one."""

import io
import threading
import time

import pytest

from dpbench.commands.progress import Board, Lines
from dpbench.config import compose
from dpbench.grid.claims import Claims
from dpbench.grid.plan import make_plan
from dpbench.grid.runner import Summary, missing
from dpbench.grid.store import Store


def test_the_line_says_what_is_done_stored_failed_and_left():
    summary = Summary(planned=10, stored=2, ran=4, failures=[("a", "failed", "no")])
    line = Lines.line(summary, 100.0)
    assert line == "6/10 trials, 2 stored before, 1 failed, 1m40s elapsed, about 1m40s left"


def test_without_a_terminal_lines_are_few_and_the_last_is_shown():
    stream = io.StringIO()
    with Lines(stream) as progress:
        for ran in range(4):
            progress.show(Summary(planned=3, stored=0, ran=ran))
    lines = stream.getvalue().splitlines()
    assert len(lines) == 2
    assert lines[-1].startswith("3/3 trials")


def test_a_terminal_has_a_table_of_what_is_done_failed_and_at_work(bench):
    """Of every runner: the releases of another one are claimed, and their trials stored, in the same folder."""
    assert bench.run("mechanism=[adassp]", "repetitions=2") == 0
    plan = make_plan(compose(bench.settings("mechanism=[adassp,ssp]", "repetitions=4")))
    store = Store(bench.results, "grid")
    waiting = missing(plan, store)
    claims = Claims(store)
    claims.take(next(item.key.id for item in waiting if item.key.mechanism.name == "ssp"))
    stream = io.StringIO()
    with Board(plan, waiting, store, lambda: [1.0] * len(waiting), stream) as board:
        assert bench.run("mechanism=[adassp]", "repetitions=4") == 0
        time.sleep(0.1)
        rows = board.rows()
        told = board.times()
    claims.close()
    assert rows == [("adassp", 4, 4, 0, 0), ("ssp", 0, 4, 0, 1)]
    assert " elapsed, about " in told  # half of what was to run
    assert "4/4" in stream.getvalue() and "0/4" in stream.getvalue()


@pytest.mark.parametrize(("seconds", "left"), [(90.0, ", about 6m00s left on one core"), (1.0, "")])
def test_the_time_left_is_shown_before_the_first_release_has_ended(bench, seconds, left):
    """By the seconds of earlier trials; `predicted` says 1 s of each where none are known, which is no prediction."""
    plan = make_plan(compose(bench.settings("mechanism=[adassp]", "repetitions=4")))
    store = Store(bench.results, "grid")
    store.prepare()
    waiting = missing(plan, store)
    with Board(plan, waiting, store, lambda: [seconds] * len(waiting), io.StringIO()) as board:
        time.sleep(0.1)
        assert board.times() == f"0s elapsed{left}"


def test_a_prediction_that_takes_long_holds_up_nothing(bench):
    plan = make_plan(compose(bench.settings("mechanism=[adassp]", "repetitions=4")))
    store = Store(bench.results, "grid")
    store.prepare()
    waiting, ready = missing(plan, store), threading.Event()

    def predicted():
        ready.wait(60)
        return [90.0] * len(waiting)

    with Board(plan, waiting, store, predicted, io.StringIO()) as board:
        assert board.times() == "0s elapsed"
        ready.set()
