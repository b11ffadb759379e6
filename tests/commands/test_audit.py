"""`dpbench audit`: a line for each mechanism, calibration and relation, and an exit code that says no."""

import pytest

from dpbench.cli import main
from dpbench.grid.audits import read_audits

LYING = '''
import numpy as np
from dpbench.privacy.ledger import Ledger
from dpbench.privacy.noise import gaussian
from dpbench.releases import Release, SufficientStatistics

def lying(train, budget, rng):
    """A sum of numbers between 10 and 90, taken to be at most 10."""
    ledger = Ledger()
    told = gaussian(rng, ledger, [train.numbers["age"].sum()], sensitivity=10.0, multiplier=1.0, label="sum")
    return Release(train.domain, budget, ledger, (SufficientStatistics(np.eye(1), told, 0.0, 1.0),))
'''


def test_published_constants_of_ssp_are_caught_and_those_that_are_tight_are_not(capsys):
    """Confidence .95 a line, at a fixed seed; the published noise spends 22 of 10."""
    assert main(["audit", "mechanism=[ssp]", "relation=add_remove", "--runs", "100"]) == 0
    out = [line for line in capsys.readouterr().out.splitlines() if line.startswith("ssp")]
    assert [line.split()[1] for line in out] == ["tight", "paper"]
    assert "more than" not in out[0] and out[1].endswith("Gaussian DP, with one more record; more than was asked for")


def test_a_ledger_that_says_too_little_makes_the_code_1(tmp_path, capsys):
    (tmp_path / "mechanism").mkdir()
    (tmp_path / "lying.py").write_text(LYING)
    (tmp_path / "mechanism" / "lying.yaml").write_text("lying: {_target_: lying.lying, _offers_: [statistics]}\n")
    assert main(["audit", "mechanism=[lying]", "--runs", "100", "--config-dir", str(tmp_path)]) == 1
    assert "more than its ledger says" in capsys.readouterr().out


def test_releases_are_audited_and_the_result_is_stored(tmp_path, capsys):
    """At eps = 1 and a fixed seed; confidence .95."""
    line = ["audit", "mechanism=[dpsgd_minibatch]", "calibration=[paper]", "relation=replace", f"results={tmp_path}"]
    small = "mechanism.dpsgd_minibatch.steps=20"
    assert main([*line, small, "--releases", "--runs", "50", "--store"]) == 0
    assert "one run, " in capsys.readouterr().out
    (record,) = read_audits(tmp_path).values()
    assert record.key == ("dpsgd_minibatch", "paper", "replace", 1.0)
    assert (record.estimate, record.confidence, record.parameters["steps"]) == ("one run", 0.95, 20)
    assert 0 <= record.measured <= record.spent <= 1


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (["--runs", "3"], "40 runs at least"),
        (["mechanism=[exact]"], "nothing to audit"),
        (["mechanism=[objpert]", "relation=replace"], "nothing to audit"),
        (["mechanism=[aimm]"], "did you mean 'aim'"),
        (["mechanism=[ssp]", "epsilon=[0]"], "epsilon must be greater than 0"),
    ],
)
def test_what_cannot_be_audited_is_told(line, message, capsys):
    assert main(["audit", *line]) == 2
    assert message in capsys.readouterr().err


def test_what_the_answers_do_not_tell_is_said(capsys):
    assert main(["audit", "mechanism=[dpsgd_random]", "mechanism.dpsgd_random.batch_sizes=[null]", "--runs", "40"]) == 0
    assert "not audited: it releases one of its runs" in capsys.readouterr().out
