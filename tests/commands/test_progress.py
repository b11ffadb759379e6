"""The live line of a run."""

import io

from dpbench.commands.progress import Progress
from dpbench.grid.runner import Summary


def test_the_line_says_what_is_done_stored_failed_and_left():
    summary = Summary(planned=10, stored=2, ran=4, failures=[("a", "failed", "no")])
    line = Progress.line(summary, 100.0)
    assert line == "6/10 trials, 2 stored before, 1 failed, 1m40s elapsed, about 1m40s left"


def test_without_a_terminal_lines_are_few_and_the_last_is_shown():
    stream = io.StringIO()
    with Progress(stream) as progress:
        for ran in range(4):
            progress.show(Summary(planned=3, stored=0, ran=ran))
    lines = stream.getvalue().splitlines()
    assert len(lines) == 2
    assert lines[-1].startswith("3/3 trials")


def test_a_terminal_has_one_line_that_is_written_over():
    stream = io.StringIO()
    stream.isatty = lambda: True
    with Progress(stream) as progress:
        progress.show(Summary(planned=3, stored=0, ran=1))
    assert stream.getvalue().startswith("\r")
    assert stream.getvalue().endswith("1/3 trials, 0 failed, 0s elapsed, about 0s left\n")
