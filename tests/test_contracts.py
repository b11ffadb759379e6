"""What a plug-in may take and return, and what `dpbench check` finds out about one."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from dpbench.cli import main
from dpbench.commands.plugins import tiny_table
from dpbench.contracts import check_fit, check_release, check_score, check_signature
from dpbench.errors import ContractError, UserError
from dpbench.mechanisms.release import Release, SufficientStatistics
from dpbench.metrics.evaluation import Score
from dpbench.models.fit import Fit
from dpbench.privacy.budget import Budget, Ledger


def fine(train, budget, rng, *, design, strength=1.0): ...


def reordered(train, rng, budget): ...


def positional(train, budget, rng, strength): ...


def open_ended(train, budget, rng, **parameters): ...


def no_design(release, *, strength=1.0): ...


@pytest.mark.parametrize(
    ("kind", "function", "message"),
    [
        (
            "mechanism",
            reordered,
            "another order; a mechanism takes (train, budget, rng, *, ...), and this one (train, rng",
        ),
        ("mechanism", positional, "'strength' must be keyword-only"),
        ("mechanism", open_ended, "each parameter needs a name"),
        ("model", no_design, "no parameter 'design'"),
        ("model", fine, "no positional parameter 'release'"),
        ("metric", fine, "no positional parameter 'evaluation'"),
        ("dataset", print, "no positional parameter 'config'"),
    ],
)
def test_a_wrong_signature_is_told_with_its_file(kind, function, message):
    with pytest.raises(UserError) as caught:
        check_signature(kind, function, "mechanism.mine")
    assert message in str(caught.value)
    assert function is print or "test_contracts.py, line" in str(caught.value)


def test_a_right_signature_passes():
    check_signature("mechanism", fine, "mechanism.mine")


@dataclass(frozen=True)
class Carrier(Release):
    extra: object = None


BUDGET = Budget(1.0)
STATISTICS = SufficientStatistics(np.eye(2), np.zeros(2), 1.0, 1.0)
RELEASE = Release(tiny_table().domain, BUDGET, Ledger(), STATISTICS)


@pytest.mark.parametrize(
    ("release", "message"),
    [
        (None, "not None"),
        (Carrier(**vars(RELEASE)), "test_contracts.Carrier"),
        (replace(RELEASE, statistics=None), "must hold statistics; it holds none"),
        (replace(RELEASE, domain=tiny_table(labels=True).domain), "domain"),
        (replace(RELEASE, budget=Budget(100.0)), "the budget of the release must be the one asked for"),
        (replace(RELEASE, budget=Budget(1.0, relation="replace")), "the budget of the release"),
        (replace(RELEASE, ledger=[]), "must be a Ledger"),
        (replace(RELEASE, diagnostics={"a": np.zeros(3)}), "numpy.ndarray"),
        (replace(RELEASE, diagnostics={"a": np.int64(3)}), "numpy.int64"),
        (replace(RELEASE, diagnostics={"a": float("nan")}), "float nan"),
        (replace(RELEASE, diagnostics={"a": [1] * 10**6}), "must be small"),
        (replace(RELEASE, diagnostics={1: 2}), "the key 1"),
        (
            replace(RELEASE, statistics=replace(STATISTICS, xtx=np.eye(3))),
            "X'X of the release must have the shape (2, 2)",
        ),
        (replace(RELEASE, statistics=replace(STATISTICS, xty=np.full(2, np.inf))), "must be finite"),
        (replace(RELEASE, marginals={("age",): np.zeros(3)}), "the marginal age must have the shape (8,)"),
        (replace(RELEASE, marginals={("height",): np.zeros(3)}), "a tuple of attributes"),
        (replace(RELEASE, coefficients=[1.0]), "must be a numpy array of numbers"),
        (replace(RELEASE, rows=[1, 2]), "rows of the release must be a Table"),
        (replace(RELEASE, nonprivate_inputs="bounds"), "nonprivate_inputs must be a tuple"),
    ],
)
def test_what_is_no_release(release, message):
    with pytest.raises(ContractError) as caught:
        check_release(release, ("statistics",), BUDGET, tiny_table().domain)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("fit", "message"),
    [
        (np.zeros(2), "not numpy.ndarray"),
        (Fit(np.zeros(3)), "must have the shape (2,)"),
        (Fit(np.array([1.0, np.nan])), "must be finite"),
        (Fit(), "must have the shape (2,)"),
        (Fit(np.zeros(2), intervals=np.zeros((3, 2))), "the intervals of the fit must have the shape (2, 2)"),
        (Fit(np.zeros(2), notes={"a": np.float32(1)}), "numpy.float32"),
        (Fit(predictor=5), "must be a function"),
    ],
)
def test_what_is_no_fit(fit, message):
    with pytest.raises(ContractError) as caught:
        check_fit(fit, 2)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("score", "message"),
    [
        (0.5, "not float"),
        (Score("other", 0.5, "", "lower"), "must return a score of this name, not 'other'"),
        (Score("mse", "0.5", "", "lower"), "must be a float, not str"),
        (Score("mse", True, "", "lower"), "must be a float, not bool"),
        (Score("mse", 0.5, "", "down"), "its direction"),
        (Score("mse", 0.5, "", "lower", {"a": np.zeros(2)}), "the detail of mse"),
    ],
)
def test_what_is_no_score(score, message):
    with pytest.raises(ContractError) as caught:
        check_score(score, "mse")
    assert message in str(caught.value)


def test_what_is_right_passes():
    assert check_release(RELEASE, ("statistics",), BUDGET, tiny_table().domain) is RELEASE
    assert check_fit(Fit(np.zeros(2)), 2)
    assert check_score(Score("mse", float("nan"), "", "lower"), "mse")


# --- dpbench check -------------------------------------------------------------------------------------------------

HEAD = """
import numpy as np
from dpbench.data.encode import second_moments
from dpbench.mechanisms.release import Release, SufficientStatistics
from dpbench.metrics.evaluation import Score
from dpbench.models.fit import Fit
from dpbench.privacy.accounting import gaussian_mu
from dpbench.privacy.budget import Budget, Event, Ledger
from dpbench.privacy.noise import gaussian, unperturbed

def mine(train, budget, rng, *, design, sensitivity=4.0, share=1.0):
    ledger = Ledger()
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
BUILD = "    return Release(train.domain, budget, ledger, released)\n"
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
    "budget": (NOISY + "    return Release(train.domain, Budget(100.0), ledger, released)\n", "", "the one asked for"),
    "offers": (
        NOISY + "    return Release(train.domain, budget, ledger, coefficients=noisy_y)\n",
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
        ("figure", "pie", "def pie(frame, labels, spec, notes): return None", "", "not NoneType"),
        ("table", "list", "def list(frame, labels, spec): ...", "", "no positional parameter 'published'"),
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
    "line", ["model=linear_statistics", "metric=mse", "figure=histogram", "table=comparison_table"]
)
def test_what_ships_passes(capsys, line):
    assert main(["check", line]) == 0, capsys.readouterr().out
