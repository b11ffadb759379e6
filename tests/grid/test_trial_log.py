"""Append-only logs: nothing that was stored is lost, whatever happens to whoever writes."""

import errno
import os
import signal
import subprocess
import sys

import pytest

from dpbench.grid import trial_log as module
from dpbench.grid.trial_log import Log


@pytest.fixture
def log(tmp_path):
    return Log(tmp_path)


def values(folder):
    """What another process reads."""
    other = Log(folder)
    other.scan()
    return {record["id"]: record["value"] for record in other.records(sorted(other.entries))}


def test_a_record_comes_back_with_what_it_shares_and_its_bytes(log, tmp_path):
    first = log.append({"id": "a", "value": 1}, {"common": [1, 2]}, b"abc")
    second = log.append({"id": "b", "value": 2}, {"common": [1, 2]})
    for one in (log, Log(tmp_path)):
        assert one.read(first) == ({"id": "a", "value": 1, "common": [1, 2]}, b"abc")
        assert one.read(second) == ({"id": "b", "value": 2, "common": [1, 2]}, b"")
    (path,) = tmp_path.glob("*.jsonl")
    assert path.read_text().count("common") == 1


@pytest.mark.parametrize("left", [1, 30, -1])
def test_a_last_line_that_is_cut_is_no_line_and_no_damage(log, tmp_path, caplog, left):
    log.append({"id": "a", "value": 1})
    log.append({"id": "b", "value": 2})
    (path,) = tmp_path.iterdir()
    whole = path.read_bytes()
    start = whole.index(b"\n") + 1
    path.write_bytes(whole[: start + left] if left > 0 else whole[:left])
    other = Log(tmp_path)
    assert other.scan().keys() == {"a"}
    assert not caplog.text
    path.write_bytes(whole)  # it was being written
    assert other.scan().keys() == {"a", "b"}


def test_a_file_that_other_threads_crowd_out_is_read_to_the_end(log, monkeypatch):
    place = log.append({"id": "a", "value": 1}, {"common": 2}, b"abc")
    monkeypatch.setattr(module, "_opened", module.open_file)  # nothing but the reader holds it
    assert log.read(place) == ({"id": "a", "value": 1, "common": 2}, b"abc")


@pytest.mark.parametrize("what", ["open_file", "_opened"], ids=["the record", "what it shares"])
def test_what_cannot_be_opened_for_a_moment_is_not_damaged(tmp_path, monkeypatch, caplog, what):
    Log(tmp_path).append({"id": "a", "value": 1}, {"common": 2})
    log, opened, refused = Log(tmp_path), getattr(module, what), iter([True])
    log.scan()
    log._shared.clear()

    def open_file(path):
        if next(refused, False):
            raise OSError(errno.EMFILE, "Too many open files")
        return opened(path)

    monkeypatch.setattr(module, what, open_file)
    assert [record["common"] for record in log.records(["a"])] == [2]
    assert not caplog.text


def test_what_others_append_is_seen_at_the_next_look(log, tmp_path):
    other = Log(tmp_path)
    for identity in "abc":
        log.append({"id": identity, "value": identity})
        assert identity in other.scan()
    assert len(list(tmp_path.iterdir())) == 1


def test_files_that_were_taken_away_are_forgotten(log, tmp_path):
    log.append({"id": "a", "value": 1})
    other = Log(tmp_path)
    assert other.scan()
    for path in tmp_path.iterdir():
        path.unlink()
    assert not other.scan()


def test_a_file_that_was_taken_away_from_its_writer_is_told(log, tmp_path):
    log.append({"id": "a", "value": 1})
    log.sync()
    log.append({"id": "b", "value": 1})
    for path in tmp_path.iterdir():
        path.unlink()
    with pytest.raises(FileNotFoundError):
        log.sync()


def test_a_higher_turn_stands_for_those_before_it_in_whatever_order_they_are_read(tmp_path):
    for turn in (1, 2, 0):
        Log(tmp_path).append({"id": "a", "value": turn}, turn=turn)
    assert values(tmp_path) == {"a": 2}


@pytest.fixture
def disk(monkeypatch):
    """A function after which a disk has room for so many bytes more; of None, for all."""
    write = os.write

    def has(room):
        left = [room]

        def full(descriptor, content):
            if not left[0]:
                raise OSError(errno.ENOSPC, "No space left on device")
            count = write(descriptor, bytes(content)[: left[0]])
            left[0] -= count
            return count

        monkeypatch.setattr(module.os, "write", write if room is None else full)

    return has


@pytest.mark.parametrize("room", [0, 20, 150, 170, 400])
def test_a_full_disk_leaves_what_was_stored_and_the_next_record_is_whole(log, tmp_path, disk, room):
    log.append({"id": "a", "value": 1}, {"common": 1}, b"abc")
    disk(room)
    with pytest.raises(OSError):
        log.append({"id": "b", "value": 2}, {"common": 2}, b"x" * 300)
    disk(None)
    assert values(tmp_path) == {"a": 1}
    assert all(path.read_bytes().endswith(b"\n") for path in tmp_path.glob("*.jsonl"))
    log.append({"id": "b", "value": 3}, {"common": 2}, b"xyz")
    assert values(tmp_path) == {"a": 1, "b": 3}
    assert log.read(log.entries["b"].place)[1] == b"xyz"


@pytest.mark.parametrize("body", [b"", b"xyz"])
def test_no_file_is_left_on_a_disk_without_room_for_its_first_line(log, tmp_path, disk, body):
    disk(10)
    with pytest.raises(OSError):
        log.append({"id": "a", "value": 1}, None, body)
    assert not [path for path in tmp_path.iterdir() if not path.stat().st_size]
    disk(None)
    log.append({"id": "a", "value": 1}, None, body)
    assert values(tmp_path) == {"a": 1} and log.read(log.entries["a"].place)[1] == body


WRITER = """
import sys
from pathlib import Path
from dpbench.grid.trial_log import Log
log = Log(Path(sys.argv[1]))
for i in range(10**6):
    log.append({"id": f"{sys.argv[2]}{i}", "value": i}, {"common": i // 10}, bytes(i % 50))
    print(i, flush=True)
"""


def test_what_was_stored_before_a_kill_is_whole(tmp_path):
    """Three writers at once, each killed in the middle of what it does."""
    line = [sys.executable, "-c", WRITER, str(tmp_path)]
    writers = [subprocess.Popen([*line, name], stdout=subprocess.PIPE, text=True) for name in "xyz"]
    told = {}
    for name, writer in zip("xyz", writers, strict=True):
        for _ in range(200):
            told[name] = int(writer.stdout.readline())
        writer.send_signal(signal.SIGKILL)
        told[name] = int((writer.stdout.read().split() or [told[name]])[-1])
        writer.wait()
        writer.stdout.close()
    found = values(tmp_path)
    for name, last in told.items():
        assert [found[f"{name}{i}"] for i in range(last + 1)] == list(range(last + 1))
    other = Log(tmp_path)
    for identity, entry in other.scan().items():
        assert other.read(entry.place)[1] == bytes(int(identity[1:]) % 50)


def test_what_has_the_name_of_a_log_and_cannot_be_read_hides_no_other(log, tmp_path, caplog):
    """A link that leads nowhere or to itself, a folder, and a pipe, of which a reader would wait for a writer."""
    log.append({"id": "a", "value": 1})
    (tmp_path / "0.jsonl").symlink_to("nowhere")
    (tmp_path / "1.jsonl").symlink_to("1.jsonl")
    (tmp_path / "2.jsonl").mkdir()
    os.mkfifo(tmp_path / "3.jsonl")
    other = Log(tmp_path)
    assert other.scan().keys() == {"a"}
    assert sorted(other.unreadable) == ["0.jsonl", "1.jsonl", "2.jsonl", "3.jsonl"]
    assert "0.jsonl cannot be read (No such file or directory)" in caplog.text and "3.jsonl is no file" in caplog.text


def test_a_log_that_may_not_be_read_is_named(log, tmp_path, monkeypatch):
    log.append({"id": "a", "value": 1})
    log_file, opened = next(tmp_path.iterdir()), os.open

    def refused(path, *given, **more):
        if os.fspath(path) == str(log_file):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        return opened(path, *given, **more)

    monkeypatch.setattr(os, "open", refused)
    other = Log(tmp_path)
    assert not other.scan()
    assert other.unreadable == {log_file.name: "cannot be read (Permission denied)"}


@pytest.mark.parametrize("place", [10, 40, 5000])
def test_what_is_damaged_can_be_set_aside_and_all_else_stays(tmp_path, place):
    """In what a record shares with others, in its id, and in a later record."""
    log, aside = Log(tmp_path / "log"), tmp_path / "aside"
    (tmp_path / "log").mkdir()
    for k in range(60):
        log.append({"id": f"{k}", "value": k}, {"common": k // 30}, b"abc")
    (tmp_path / "log" / "empty.jsonl").touch()
    path = tmp_path / "log" / f"{log.entries['0'].place[0]}"
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)
    other = Log(tmp_path / "log")
    left = set(other.scan())
    assert other.empty == ["empty.jsonl"] and len(left) < 60
    assert other.set_aside(aside) > 1
    again = Log(tmp_path / "log")
    assert set(again.scan()) == left == {*again.scan()}
    assert not again.damaged() and not again.empty and not again.unreadable
    assert all(again.read(entry.place)[0]["value"] == int(name) for name, entry in again.entries.items())
    assert sum(len(one.read_bytes()) for one in aside.iterdir()) > 0, "nothing is thrown away"


def test_a_record_of_no_use_is_not_stored_and_what_takes_its_place_is(log, tmp_path):
    log.append({"id": "a", "value": 1})
    log.discard("a")
    assert log.useless() == ["a"] and "a" not in log.scan()
    log.append({"id": "a", "value": 2}, turn=log.next_turn("a"))
    assert not log.useless() and values(tmp_path) == {"a": 2}
