"""Messages between two processes."""

import os
import socket
import time

import pytest

from dpbench.grid.channel import PRINTED, Channel, Page, Printed, memory


@pytest.fixture
def ends():
    one, two = socket.socketpair()
    channels = Channel(one), Channel(two)
    yield channels
    for channel in channels:
        channel.close()


def test_messages_arrive_whole_and_in_order(ends):
    here, there = ends
    here.send({"a": [1, 2.5, None]})
    here.send({"b": "x" * 10_000})
    assert there.receive() == {"a": [1, 2.5, None]}
    assert there.receive(1.0) == {"b": "x" * 10_000}
    assert there.receive(0.01) is None


def test_an_end_that_hangs_up_is_noticed(ends):
    here, there = ends
    here.hang_up()
    with pytest.raises(EOFError):
        there.receive()


def test_what_is_no_message_is_refused(ends):
    here, there = ends
    here._socket.sendall(b"\0" * 7 + b"\4" + b"oops")
    with pytest.raises(ValueError):
        there.receive()
    with pytest.raises(ValueError):
        here.send({"a": float("nan")})


def test_a_message_that_nobody_takes_times_out(ends):
    here, _ = ends
    with pytest.raises(OSError):
        here.send({"a": "x" * 10**8}, seconds=0.1)


def test_a_phase_is_seen_by_whoever_shares_the_page():
    with Page.file() as file:
        mine, yours = Page(file.fileno()), Page(file.fileno())
    assert yours.read() is None
    start = time.monotonic()
    mine.write("release", limited=True)
    assert yours.read()[:2] == ("release", True)
    assert start <= yours.read().since <= time.monotonic()
    mine.write()
    assert yours.read() is None


def test_of_what_is_printed_the_last_is_kept_and_once():
    with memory() as file:
        process, supervisor = Printed(os.fdopen(os.dup(file.fileno()), "r+b", buffering=0)), Printed(file)
        os.write(process.fileno(), "é".encode() + b"\xff")
        assert supervisor.take() == "é\ufffd"
        os.write(process.fileno(), b"a" * (100 * PRINTED) + b"b" * PRINTED)
        supervisor.cut()
        assert os.fstat(file.fileno()).st_size <= PRINTED + 1
        os.write(process.fileno(), b"end")
        assert process.take() == f"[the last {PRINTED:,} bytes of what was printed]\n" + "b" * (PRINTED - 3) + "end"
        assert supervisor.take() == ""
