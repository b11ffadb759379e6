"""`dpbench audit`: a line for each mechanism, calibration and relation, and an exit code that says no."""

import argparse
from functools import partial

import pytest

from dpbench.audit.exact_audit import Exact, Pair
from dpbench.audit.sampled_audit import Audit, not_audited
from dpbench.audit.tilted_audit import Importance
from dpbench.cli import main
from dpbench.commands.audit import _cases, _of_answers
from dpbench.config.parts import declared_parts
from dpbench.errors import NoEstimateError, UserError
from dpbench.grid.audits import read_audits
from dpbench.grid.tiny_tables import made, tiny_table
from dpbench.privacy.accounting import spent
from dpbench.privacy.events import Gaussian
from dpbench.privacy.ledger import Ledger

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
    assert "exact, " in out[0] and "more than" not in out[0] and out[1].endswith("; more than was asked for")
    assert [line.split()[4:6] for line in out] == [["10", "10.000"], ["22.14", "22.143"]]  # spent and measured


def test_a_ledger_that_says_too_little_makes_the_code_1(tmp_path, capsys):
    (tmp_path / "mechanism").mkdir()
    (tmp_path / "lying.py").write_text(LYING)
    (tmp_path / "mechanism" / "lying.yaml").write_text("lying: {_target_: lying.lying, _offers_: [statistics]}\n")
    assert main(["audit", "mechanism=[lying]", "--runs", "100", "--config-dir", str(tmp_path)]) == 1
    assert "more than its ledger says" in capsys.readouterr().out


def test_what_has_no_estimate_on_a_tiny_table_is_not_audited_and_the_code_is_0(capsys):
    assert main(["audit", "mechanism=[tukey_em]", "relation=replace", "epsilon=0.1"]) == 0
    assert "not audited: it has no estimate on a tiny table" in capsys.readouterr().out


def test_releases_are_audited_and_the_result_is_stored(tmp_path, capsys):
    """At eps = 1 and a fixed seed; confidence .95."""
    line = ["audit", "mechanism=[dpsgd_minibatch]", "calibration=[paper]", "relation=replace", f"results={tmp_path}"]
    small = "mechanism.dpsgd_minibatch.steps=20"
    assert main([*line, small, "--releases", "--runs", "50", "--store"]) == 0
    assert "one run, " in capsys.readouterr().out
    (record,) = read_audits(tmp_path)
    assert (record.mechanism, record.calibration, record.relation) == ("dpsgd_minibatch", "paper", "replace")
    assert (record.epsilon, record.delta) == (1.0, 1e-5)
    assert record.command.endswith(f"relation=replace {small} --runs 50 --releases --canaries levels")
    assert str(tmp_path) not in record.command
    assert (record.estimate, record.canaries, record.confidence) == ("one run", "levels", 0.95)
    assert record.parameters["steps"] == 20
    assert 0 <= record.measured <= record.spent <= 1


def test_tables_with_canaries_have_as_many_rows_as_are_asked_for(capsys, monkeypatch):
    """PATE-GAN takes 1,000, and then misses the environment of its library."""
    monkeypatch.setenv("DPBENCH_SNSYNTH_PYTHON", "/nowhere")
    for more, message in ([], "needs at least 1000 training rows"), (["sample.train_rows=1100"], "no /nowhere"):
        assert main(["audit", "mechanism=[pategan]", *more, "--releases"]) == 1
        assert message in capsys.readouterr().out


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


UNPAID, CLAIMED = "it reads values that it does not pay for", "its noise is the claim of a third party"
SECRET = "it releases one of its runs, and keeps the others secret"
NO_LIKELIHOOD = "no likelihood is known here of its noise ({})"
NO_ESTIMATE = "it has no estimate on a tiny table"
SEARCHED = ["mwem", "mwem_past", "pep", "rap", "rap_softmax", "dualquery", "gem_small"]  # query_search
BY_RELEASES = {  # what noisy answers cannot tell of, by mechanism, and by relation where it is of one
    **dict.fromkeys(
        ["dpgd", "dpgd_wide", "dpsgd_accountant", "dpsgd_advanced", "dpsgd_optimistic", "dpsgd_test_error"], UNPAID
    ),
    **dict.fromkeys([f"{name}_best" for name in SEARCHED], UNPAID),
    **dict.fromkeys(["dpctgan", "dpgan", "patectgan", "pategan", "snsynth_aim"], CLAIMED),
    **dict.fromkeys(["dpsgd_random", "dpgd_random", *(f"{name}_search" for name in SEARCHED)], SECRET),
    "dpsgd_minibatch replace": NO_LIKELIHOOD.format("gaussian_batch"),
    "kendall_tukey_em": NO_LIKELIHOOD.format("depth_exponential"),
    "tukey_em": NO_ESTIMATE,
    "tukey_em_published": NO_ESTIMATE,
}
PRIVATE = [name for name, part in declared_parts("mechanism").items() if part.private]


@pytest.mark.parametrize("name", PRIVATE)
def test_each_mechanism_has_a_case_and_what_answers_do_not_tell_is_listed(name):
    """Between neighbours of each kind that it is private for."""
    fewer = [f"mechanism.{name}.rounds=3"] if name.startswith("gem") else []  # which take seconds each
    if name.endswith(("_best", "_search")):
        fewer = [f"~mechanism.{name}.grid", f"+mechanism.{name}.grid={{rounds:[2,3]}}"]
    if name == "snsynth_aim":  # as few as it can have, of the four attributes of a tiny table
        fewer = ["mechanism.snsynth_aim.settings.rounds=4"]
    given = argparse.Namespace(overrides=[f"mechanism=[{name}]", *fewer], config_dir=None, releases=False)
    cases = {(case.part.name, case.budget.relation): case for case in reversed(_cases(given)[1])}
    assert cases
    for (_, relation), (part, budget) in cases.items():
        try:
            reason = not_audited(partial(made, part, budget=budget), tiny_table(labels=part.labels), relation)
        except NoEstimateError:
            reason = NO_ESTIMATE
        except UserError as error:  # the environment of a third party, or more rows than a tiny table has
            assert BY_RELEASES.get(name) == CLAIMED, error
            continue
        assert reason == BY_RELEASES.get(name, BY_RELEASES.get(f"{name} {relation}"))


def test_what_the_answers_do_not_tell_is_said(capsys):
    assert main(["audit", "mechanism=[dpsgd_random]", "mechanism.dpsgd_random.batch_sizes=[null]", "--runs", "40"]) == 0
    assert "not audited: it releases one of its runs" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("exact_part", "measured_part", "estimate", "made"),
    [
        (1.0, 0.1, "exact", [("answers", 0.95)]),
        (1.0, 2.0, "Clopper-Pearson", [("answers", 0.95)]),  # less noise was drawn than the ledger says
        (0.5, 0.1, "importance sampling", [("answers", 0.975), ("tilted", 0.975)]),
    ],
)
def test_the_largest_bound_is_reported_at_its_level(exact_part, measured_part, estimate, made, monkeypatch):
    """Where an exact bound leaves something open two bounds are sampled, of an error rate of 2.5% each."""
    cost, levels = spent(Ledger([Gaussian("noise", 1.0, 1.0)]), 1e-5), []

    def measured(*_, confidence, **__):
        levels.append(("answers", pytest.approx(confidence)))
        return Audit(cost, measured_part * cost.epsilon, None, "neighbour", 40, "Clopper-Pearson")

    def tilted(*_, confidence, **__):
        levels.append(("tilted", pytest.approx(confidence)))
        return Importance(cost, 0.6 * cost.epsilon, pair, {})

    pair = Pair("neighbour", None, None, None)
    exact = Exact(cost, exact_part * cost.epsilon, None, pair, {})
    for name, found in ("audit", measured), ("tilted_audit", tilted), ("exact_audit", lambda *_, **__: exact):
        monkeypatch.setattr(f"dpbench.commands.audit.{name}", found)
    monkeypatch.setattr("dpbench.commands.audit.not_audited", lambda *_: None)
    given = argparse.Namespace(overrides=["mechanism=[ssp]"], config_dir=None, releases=False)
    assert _of_answers(_cases(given)[1][0], 40).estimate == estimate
    assert levels == made
