"""The processes below a process are found and ended."""

import subprocess
import sys

from dpbench.grid import process_tree
from dpbench.grid.process_tree import Process, below, processes


def process(parent, session=0, dead=False):
    return Process(parent, session, dead, 0)


def test_all_that_descends_from_a_process_or_is_of_its_session_is_below_it():
    table = {
        1: process(0),
        2: process(1),
        3: process(2),
        4: process(1, session=2),
        5: process(4),
        6: process(1),
        7: process(2, dead=True),
    }
    assert below([2], table) == {2, 3, 4, 5}
    assert below([9], table) == set()


def test_what_is_watched_when_the_parent_is_gone_is_ended_and_what_was_let_go_is_not():
    line = [sys.executable, "-c", "import time; time.sleep(60)"]
    kept, freed = (subprocess.Popen(line, start_new_session=True) for _ in range(2))
    try:
        assert kept.pid in processes()
        process_tree.guard([f"+{kept.pid}\n", f"+{freed.pid}\n", f"-{freed.pid}\n"])
        assert kept.wait(5) == -9
        assert freed.poll() is None
    finally:
        freed.kill()
        freed.wait()
