"""What the checks find out about a mechanism, a model or a metric."""

import pytest

from dpbench.cli import main

HEAD = """
import numpy as np
from dpbench.data.encode import second_moments
from dpbench.releases import Coefficients, Release, SufficientStatistics
from dpbench.metrics.evaluation import Score
from dpbench.models.fit import Fit
from dpbench.privacy.accounting import gaussian_mu
from dpbench.privacy.budget import Budget
from dpbench.privacy.events import Gaussian
from dpbench.privacy.ledger import Ledger
from dpbench.privacy.noise import gaussian, unperturbed
from dpbench.privacy.sensitivity import of_cross, of_gram

def mine(train, budget, rng, *, design, sensitivity=None, share=1.0):
    ledger = Ledger()
    sensitivity = sensitivity or max(of_gram(design, budget.relation), of_cross(design, budget.relation))
    X, y = design.encode(train)
    xtx, xty = second_moments(X, y)
    m = 2 ** 0.5 / gaussian_mu(budget.epsilon * share, budget.delta)
"""
NOISY = (
    HEAD
    + """
    noisy = gaussian(rng, ledger, xtx, sensitivity=sensitivity, multiplier=m, label="X'X")
    noisy_y = gaussian(rng, ledger, xty, sensitivity=sensitivity, multiplier=m, label="X'y")
    released = SufficientStatistics(noisy, noisy_y, 1.0, 1.0)
"""
)
BUILD = "    return Release(train.domain, budget, ledger, (released,))\n"
BAD = {
    "sensitivity": (NOISY + BUILD, "sensitivity: 0.001", "times the sensitivity in the ledger"),
    "overspent": (NOISY + BUILD, "share: 5.0", "its noise costs epsilon"),
    "none": (HEAD + "    return None\n", "", "not None"),
    "empty": (HEAD + "    released = SufficientStatistics(xtx, xty, 0.0, 0.0)\n" + BUILD, "", "it is empty"),
    "exact": (
        HEAD
        + "    xtx = unperturbed(ledger, xtx, label='X')\n    released = SufficientStatistics(xtx, xty, 0.0, 0.0)\n"
        + BUILD,
        "",
        "'X' is read without noise",
    ),
    "budget": (
        NOISY + "    return Release(train.domain, Budget(100.0), ledger, (released,))\n",
        "",
        "the requested one",
    ),
    "offers": (
        NOISY + "    return Release(train.domain, budget, ledger, (Coefficients(noisy_y),))\n",
        "",
        "must hold statistics",
    ),
    "writes": (NOISY + "    train.codes[0, 0] = 1\n" + BUILD, "", "read-only"),
    "unnoised": (NOISY + "    released = SufficientStatistics(noisy, xty, 1.0, 1.0)\n" + BUILD, "", "without noise"),
    "chance": (NOISY.replace("rng, ledger", "np.random.default_rng(), ledger") + BUILD, "", "it gives another one"),
    "raises": (HEAD + "    return {}['foo']\n", "", "KeyError: 'foo' (plugin.py, line"),
    "signature": ("def mine(table, budget, rng): ...\n", "", "plugin.py, line 1"),
}


@pytest.fixture
def own(tmp_path):
    def write(group, name, code, body):
        (tmp_path / group).mkdir(exist_ok=True)
        (tmp_path / "plugin.py").write_text(code)
        (tmp_path / group / f"{name}.yaml").write_text(f"{name}:\n  _target_: plugin.{name}\n" + body)
        return ["check", f"{group}={name}", "--config-dir", str(tmp_path)]

    return write


def test_a_good_mechanism_passes(own, capsys):
    assert main(own("mechanism", "mine", NOISY + BUILD, "  _offers_: [statistics]\n")) == 0
    assert "wrong" not in capsys.readouterr().out


@pytest.mark.parametrize("case", BAD)
def test_a_bad_mechanism_is_found_out(own, capsys, case):
    code, parameter, message = BAD[case]
    body = "  _offers_: [statistics]\n" + (f"  {parameter}\n" if parameter else "")
    assert main(own("mechanism", "mine", code, body)) == 1
    wrong = [line for line in capsys.readouterr().out.splitlines() if line.startswith("  wrong")]
    assert any(message in line for line in wrong), wrong


@pytest.mark.parametrize(
    ("group", "name", "code", "body", "message"),
    [
        ("model", "ours", "def ours(release, *, design): return [1.0]", "  _needs_: statistics\n", "not list"),
        ("model", "ours", "def ours(release): ...", "  _needs_: statistics\n", "no parameter 'design'"),
        ("metric", "size", HEAD + "def size(evaluation): return Score('mse', 1.0, '', 'lower')", "", "'mse'"),
    ],
)
def test_a_bad_plug_in_of_another_kind_is_found_out(own, capsys, group, name, code, body, message):
    if group == "metric":
        code = code.replace("def mine", "def unused").replace(
            "gaussian_mu(budget.epsilon * share, budget.delta)", "1\n"
        )
    assert main(own(group, name, code, body)) == 1
    assert message in capsys.readouterr().out


@pytest.mark.parametrize(
    "line", ["model=linear_statistics", "model=linear_rows", "metric=[mse,excess_mse]", "mechanism=mst"]
)
def test_what_ships_passes(capsys, line):
    assert main(["check", line]) == 0, capsys.readouterr().out
