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
