"""The audit of public packages: tiny packages, one honest, and others that leak, and the committed table."""

import math
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benchmarks.packages import __main__ as command
from benchmarks.packages.audit import cost_of, measured
from dpbench.errors import UserError

HERE = Path(command.__file__).parent
WORKER = """
import sys
sys.path.insert(0, {here!r})
import numpy as np
from worker import Noise, Tape, main, replayed, scored


def mean(rows, scale, clipped=True):
    # "a package": the sum of the rows, each between 0 and 1, with Laplace noise of this scale
    return (np.clip(rows, 0, 1) if clipped else rows).sum() + np.random.laplace(scale=scale)


def steps(given, scale):
    tape = Tape(given.delta)
    run = lambda rows: rows.sum() + Noise(tape, "laplace", scale, np.random.laplace(scale=scale))
    return replayed(tape, run, np.zeros(3), np.r_[np.zeros(3), 1.0])


def fails(given):
    raise ValueError("no such table")


pair = np.zeros(3), np.r_[np.zeros(3), 5.0]
main({{
    "honest": lambda given: scored(lambda rows: mean(rows, 1.0), *pair, given.runs),
    "leaks": lambda given: scored(lambda rows: mean(rows, 1.0, clipped=False), *pair, given.runs),
    "honest_steps": lambda given: steps(given, 1.0),
    "leaks_steps": lambda given: steps(given, 0.25),
    "fails": fails,
}}, "numpy")
"""


def run(folder, case, runs=1000):
    worker = folder / "of_tiny.py"
    worker.write_text(WORKER.format(here=str(HERE)))
    return measured(Path(sys.executable), worker, case, runs=runs, delta=0.0, sources=folder, timeout=60)


def test_an_honest_package_stays_below_what_was_asked_and_one_that_leaks_is_caught(tmp_path):
    """Both are asked for epsilon 1. Error rate: 5% by the confidence of the bound, with a fixed seed."""
    honest, leaks = (run(tmp_path, case) for case in ("honest", "leaks"))
    assert 0.4 < honest.epsilon <= 1 < 2 < leaks.epsilon
    assert honest.estimate == "1000 runs"
    assert honest.versions == {"numpy": np.__version__}


def test_the_noise_of_a_replayed_run_costs_what_its_value_moves_over_its_scale(tmp_path):
    assert run(tmp_path, "honest_steps").epsilon == 1
    assert run(tmp_path, "leaks_steps").epsilon == 4


def test_what_a_worker_raises_is_reported(tmp_path):
    with pytest.raises(UserError, match=r"of_tiny.py fails failed .*no such table"):
        run(tmp_path, "fails")


def test_steps_of_several_kinds():
    gaussian = [{"kind": "gaussian", "moved": 3.0, "scale": 1.0}, {"kind": "gaussian", "moved": 4.0, "scale": 1.0}]
    choice = [{"kind": "choice", "moved": 100.0, "scale": 1.0}]
    epsilon, selection = cost_of(gaussian, 1e-5)
    assert epsilon == pytest.approx(cost_of([{"kind": "gaussian", "moved": 10.0, "scale": 2.0}], 1e-5)[0])
    assert selection is None
    assert cost_of([*gaussian, *choice], 1e-5) == (100.0, 100.0)
    assert cost_of([{"kind": "gaussian", "moved": 1.0, "scale": 0.0}], 1e-5)[0] == math.inf


def test_the_page_is_the_committed_table():
    text, frame = command.PAGE.read_text(), pd.read_csv(command.RESULTS)
    _, rest = text.split(command.MARKS[0])
    assert rest.split(command.MARKS[1])[0].strip() == command.table(frame)
    assert set(frame["case"]) <= set(command.CASES)


def test_every_case_says_what_is_wrong_or_what_cannot_be_seen():
    frame = pd.read_csv(command.RESULTS).set_index("case")
    for name, case in command.CASES.items():
        assert ("wrong" in case) != ("unseen" in case), name
        if name in frame.index:  # others have not been run
            assert ("wrong" in case) == (frame.verdict[name] == "more than asked"), name
        assert (HERE / case["worker"]).is_file()
        assert case.get("source", case["environment"]) in {*command.SOURCES, "diffprivlib", "dpmm", "opendp", "snsynth"}


def test_a_case_that_cannot_be_run_says_why_and_what_to_do(tmp_path, capsys):
    assert command.main(["boosted", "--sources", str(tmp_path)]) == 2
    assert "git clone https://github.com/amazon-science/boostedadassp; git checkout f644481" in capsys.readouterr().out


@pytest.mark.slow
def test_a_real_package(tmp_path):
    """diffprivlib's sum of squares has no noise where a lower bound is 0: exact, so that nothing can fail by chance."""
    case = command.CASES["diffprivlib_linear_steps"]
    if reason := command.missing(case, tmp_path):
        pytest.skip(reason)
    python, worker = command.python_of(case["environment"]), HERE / case["worker"]
    found = measured(python, worker, case["case"], runs=1, delta=0.0, sources=tmp_path, timeout=300)
    assert found.epsilon == math.inf
