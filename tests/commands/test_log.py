"""`dpbench log`: what a trial printed, whoever printed it and however it ended."""

import shutil

import pytest

from dpbench.cli import main

OWN = '''
import ctypes, os, sys
from dpbench.mechanisms.ssp import ssp
from dpbench.models.linear import linear_statistics

def loud(train, budget, rng, *, design):
    """SSP that prints in all ways there are."""
    print("Python speaks")
    print("of an error", file=sys.stderr)
    os.system("echo a child speaks")
    ctypes.CDLL(None).printf(b"C speaks\\n")
    return ssp(train, budget, rng, design=design)

def dying(release, *, design):
    """A model that says something, and no more."""
    print("goodbye", end="")
    os.kill(os.getpid(), 9)
'''


@pytest.fixture
def own(bench):
    folder = bench.folder / "own"
    for group, config in (
        ("mechanism", "loud: {_target_: own_loud.loud, _offers_: [statistics]}"),
        ("model", "dying: {_target_: own_loud.dying, _needs_: statistics}"),
    ):
        (folder / group).mkdir(parents=True)
        (folder / group / f"{config.split(':')[0]}.yaml").write_text(config)
    (folder / "own_loud.py").write_text(OWN)
    return ["--config-dir", str(folder), "mechanism=[exact,loud]", "repetitions=1", "--unchecked"]


def log(bench, capsys, trial, code=0):
    capsys.readouterr()
    assert main(["log", trial, f"results={bench.results}"]) == code
    return capsys.readouterr()


def test_what_a_trial_printed_is_shown_after_what_it_is(bench, own, capsys):
    assert bench.run(*own, "model=[linear_statistics,dying]") == 1
    assert "dpbench log" in capsys.readouterr().err
    ends = {
        (one["key"]["release"]["mechanism"]["name"], one["key"]["model"]["name"]): one["id"]
        for one in bench.trials().values()
    }
    said = "Python speaks\nof an error\na child speaks\nC speaks\n"
    out = log(bench, capsys, ends["loud", "dying"]).out
    assert out.startswith(f"trial:      {ends['loud', 'dying']} of grid\n")
    assert "mechanism:  loud\n" in out
    assert "status:     crashed in model\nerror:      WorkerKilled: the process was ended by SIGKILL" in out
    assert out.endswith(f"\n--- release ---\n{said}\n--- model ---\ngoodbye\n")
    assert log(bench, capsys, ends["loud", "linear_statistics"][:10]).out.endswith(f"\n--- release ---\n{said}")
    assert "nothing was printed" in log(bench, capsys, ends["exact", "linear_statistics"]).out
    assert "0 trials in" in log(bench, capsys, "x", 2).err
    assert "4 trials in" in log(bench, capsys, "", 2).err


def test_of_a_trial_that_is_in_an_export_alone_it_says_so(bench, capsys):
    assert bench.run("mechanism=[exact]", "repetitions=1") == 0
    (trial,) = (one["id"] for one in bench.trials().values())
    assert main(["figures", "name=grid", f"results={bench.results}"]) == 0
    shutil.rmtree(bench.results / "grid" / "trials")
    out = log(bench, capsys, trial[:12]).out
    assert out.startswith(f"trial:      {trial} of grid\n") and "status:     done" in out
    assert f"it stands in {bench.results / 'grid' / 'trials.jsonl.xz'}, an export, which does not keep" in out
    assert "0 trials in" in log(bench, capsys, "x", 2).err
