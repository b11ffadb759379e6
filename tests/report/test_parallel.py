"""Calls run in several processes, with the same results as in one."""

import copyreg
import os
import signal
import sys
import time
from functools import partial

import joblib
import pytest

from dpbench.errors import UserError
from dpbench.report.parallel import in_processes, started


@pytest.fixture(autouse=True)
def as_in_a_process_without_jax(monkeypatch):
    monkeypatch.delitem(sys.modules, "jax", raising=False)


def test_once_jax_is_there_the_calls_are_made_in_this_process(monkeypatch):
    monkeypatch.setitem(sys.modules, "jax", object())
    assert set(in_processes([os.getpid] * 3)) == {os.getpid()}


def test_what_the_calls_return_comes_in_their_order_from_several_processes():
    seen = []
    made = in_processes([lambda k=k: (k, os.getpid(), seen.append(k), time.sleep(0.1)) for k in range(7)])
    assert [k for k, *_ in made] == list(range(7))
    assert len({process for _, process, *_ in made}) == min(joblib.cpu_count(), 7)
    assert in_processes([]) == []


@pytest.mark.skipif(joblib.cpu_count() < 2, reason="one core: the calls are made in this very process")
def test_calls_are_under_way_before_their_results_are_asked_for():
    receive, send = os.pipe()
    results = started([partial(os.write, send, b"begun"), os.getpid])
    assert os.read(receive, 5) == b"begun"
    written, process = results()
    assert written == 5 and process != os.getpid()


def test_what_a_call_raises_is_raised_here():
    with pytest.raises(UserError, match="no such figure"):
        in_processes([partial(int, "1"), partial(_refuse, "no such figure"), partial(int, "2")])


def _refuse(message):
    raise UserError(message)


class Several(Exception):
    """It is pickled with one argument, and cannot be made again from that."""

    def __init__(self, what, why):
        super().__init__(f"{what}: {why}")


def _several():
    raise Several("a figure", "no rows")


def _unsendable():
    raise ValueError("no rows", lambda: None)


@pytest.mark.skipif(joblib.cpu_count() < 2, reason="one core: the calls are made in this very process")
@pytest.mark.parametrize("fails", [_several, _unsendable])
def test_an_error_that_cannot_be_sent_is_reported_with_its_traceback(fails, monkeypatch):
    monkeypatch.delitem(copyreg.dispatch_table, Several, raising=False)  # tblib, which Dask loads, can pickle it
    with pytest.raises(RuntimeError, match=f"(?s){fails.__name__}.*no rows"):
        in_processes([partial(int, "1"), fails])


@pytest.mark.skipif(joblib.cpu_count() < 2, reason="one core: the calls are made in this very process")
def test_a_process_that_is_killed_is_reported():
    with pytest.raises(UserError, match="was killed"):
        in_processes([partial(int, "1"), lambda: os.kill(os.getpid(), signal.SIGKILL)])
