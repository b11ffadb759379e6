"""Pairs of processes are kept and given out again."""

import pytest

from dpbench.grid import process
from dpbench.grid.process import StoppedError


class Child:
    """As `process.Child`, without a process."""

    def __init__(self):
        self.ended = []

    def leave(self):
        self.ended.append("leave")

    def stop(self, seconds=0.0):
        self.ended.append("stop")

    def close(self):
        self.ended.append("close")


@pytest.fixture
def pairs(monkeypatch):
    monkeypatch.setattr(process, "Child", Child)
    return process.Pool()


def test_a_pair_is_used_again_and_two_at_work_are_two(pairs):
    with pairs.pair() as one, pairs.pair() as two:
        assert one is not two
    with pairs.pair() as again:
        assert again in (one, two)


def test_a_pair_is_not_given_out_again_after_an_error(pairs):
    with pytest.raises(RuntimeError), pairs.pair() as one:
        raise RuntimeError
    assert one.rows.ended == one.model.ended == ["stop", "close"]
    with pairs.pair() as another:
        assert another is not one


def test_a_closed_pool_lets_idle_processes_leave_and_stops_those_at_work(pairs):
    with pairs.pair() as busy:
        with pairs.pair() as idle:
            pass
        pairs.close()
        assert busy.rows.ended == busy.model.ended == ["stop"], "its files are still in use"
    assert busy.rows.ended == busy.model.ended == ["stop", "close"]
    assert idle.rows.ended == idle.model.ended == ["leave", "stop", "close"]
    with pytest.raises(StoppedError), pairs.pair():
        pass
