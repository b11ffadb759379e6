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


def test_what_all_releases_together_cost_is_told_by_data_set(tmp_path):
    trials = [make_trial(repetition=place, mechanism=name) for place in range(3) for name in ("ssp", "exact")]
    trials += [make_trial("exact", epsilon="inf", spent=0.0)]
    text = write_runs(trials, tmp_path, "linreg_adult").read_text()
    assert "all 6 private releases of adult together: ε = 0.6 at δ = 6e-05" in text


CLAIM, DRAWN = [{"kind": "claimed"}], [{"kind": "gaussian"}]


@pytest.mark.parametrize(
    ("spent", "events", "told"),
    [
        ({}, DRAWN, "proven"),
        ({"rho": float("inf")}, CLAIM, "claimed"),
        ({"rho": float("inf")}, DRAWN, "proven"),
        ({"rho": float("inf")}, None, "not told: the ledger is not here"),
        ({"ex_post": 0.04}, DRAWN, "proven by a filter; ex post 0.04"),
    ],
)
def test_what_was_measured_and_what_a_cost_rests_on_stand_beside_it(spent, events, told, tmp_path):
    trial = make_trial("aim", calibration="tight")
    trial = replace(trial, spent=replace(trial.spent, **spent))
    budget = trial.key.release.budget
    key = ("aim", "tight", budget.relation, budget.epsilon)
    record = AuditRecord(*key, 1e-5, 0.1, 0.07, "one run", 0.95, 4, "", {}, None, None)
    smaller = replace(record, delta=budget.delta / 2)  # a bound on what the cost is at a smaller delta, which is more
    for audits, measured in (
        ({key: record}, "0.07 (one run)"),
        ({(*key[:3], 9.0): record}, "not audited"),
        ({key: smaller}, "not audited"),
    ):
        text = write_runs([trial], tmp_path, "linreg", audits, lambda _: events).read_text()
        (row,) = [line for line in text.splitlines() if line.startswith("| aim")]
        assert [cell.strip() for cell in row.split("|")[5:8]] == ["0.1", measured, told]
