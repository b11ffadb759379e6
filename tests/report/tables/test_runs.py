from dataclasses import replace

import pytest

from dpbench.grid.audits import AuditRecord
from dpbench.report.tables.runs import write_runs

from ..made_up import make_grid, make_trial


def test_runs_tell_commit_versions_and_cost_of_each_release_once(tmp_path):
    trials = make_grid()
    text = write_runs(trials, tmp_path, "linreg_adult").read_text()
    assert trials[0].provenance["commit"] in text
    rows = [line.split("|")[1:-1] for line in text.splitlines() if line.startswith("| ")][2:]
    assert sum(int(row[3]) for row in rows) == len({trial.release_id for trial in trials})


def test_what_all_releases_together_cost_is_reported_by_data_set(tmp_path):
    trials = [make_trial(repetition=place, mechanism=name) for place in range(3) for name in ("ssp", "exact")]
    trials += [make_trial("exact", epsilon="inf", spent=0.0)]
    text = write_runs(trials, tmp_path, "linreg_adult").read_text()
    assert "all 6 private releases of adult together: ε = 0.6 at δ = 6e-05" in text


def test_the_sum_of_all_releases_names_those_with_non_private_inputs(tmp_path):
    trials = [make_trial(repetition=place) for place in range(3)]
    trials[0] = replace(trials[0], nonprivate_inputs=("the best of 108 runs",))
    text = write_runs(trials, tmp_path, "linreg_adult").read_text()
    assert ", plus non-private inputs of 1\n" in text


def test_a_release_with_several_trials_counts_once(tmp_path):
    trials = [make_trial(repetition=k, model=model) for k in range(3) for model in ("linear_rows", "svr")]
    text = write_runs(trials, tmp_path, "linreg_adult").read_text()
    assert "all 3 private releases of adult together: ε = 0.3 at δ = 3e-05" in text


CLAIM, DRAWN = [{"kind": "claimed"}], [{"kind": "gaussian"}]


@pytest.mark.parametrize(
    ("spent", "events", "reported"),
    [
        ({}, DRAWN, "proven"),
        ({"rho": float("inf")}, CLAIM, "claimed"),
        ({"rho": float("inf")}, DRAWN, "proven"),
        ({"rho": float("inf")}, None, "unknown: the ledger is not stored"),
        ({"ex_post": 0.04}, DRAWN, "proven by a filter; ex post 0.04"),
    ],
)
def test_what_was_measured_and_the_basis_of_a_cost_are_shown_with_it(spent, events, reported, tmp_path):
    trial = make_trial("aim", calibration="tight")
    trial = replace(trial, spent=replace(trial.spent, **spent))
    budget = trial.key.release.budget
    record = AuditRecord(
        *("aim", "tight", budget.relation, budget.epsilon, budget.delta, 0.1, 0.07, "one run", 0.95, 4, "", {}, ""),
        *(None, None),
    )
    smaller = replace(record, delta=budget.delta / 2)  # a bound on what the cost is at a smaller delta, which is more
    other, less = replace(record, epsilon=9.0, spent=8.0, measured=6.0), replace(record, epsilon=3.0, measured=0.01)
    for audits, measured in (
        ([], "not audited"),
        ([replace(record, relation="replace"), replace(record, calibration="paper")], "not audited"),
        ([other, replace(record, measured=0.03), record], "0.07 (one run)"),
        ([less, other], "at ε = 9, δ = 1e-05: 6 of 8 (one run)"),
        ([smaller], "at ε = 0.1, δ = 5e-06: 0.07 of 0.1 (one run)"),
    ):
        text = write_runs([trial], tmp_path, "linreg", audits, lambda _: events).read_text()
        (row,) = [line for line in text.splitlines() if line.startswith("| aim")]
        assert [cell.strip() for cell in row.split("|")[5:8]] == ["0.1", measured, reported]
