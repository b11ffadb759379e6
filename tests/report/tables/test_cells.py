import math

import pandas as pd
import pytest

from dpbench.errors import UserError
from dpbench.report.frames.frame import trial_frame
from dpbench.report.tables.cells import cell_table, terminal_table, write_tables

from ..made_up import LABELS, make_grid, make_trial


def cells(trials, metric="mse"):
    return cell_table(trial_frame(trials), LABELS, metric)


def test_cells_show_mean_error_count_and_failures():
    trials = [make_trial(repetition=k, mse=value) for k, value in enumerate((1.0, 2.0, 4.0))]
    trials += [make_trial(repetition=k, status="failed") for k in (3, 4)]
    trials += [make_trial(epsilon=1.0, repetition=k, status="timeout") for k in range(5)]
    table = cells(trials)
    assert table.loc["SSP", "0.1"] == "2.33 ± 0.88 (3; 2 failed)"
    assert table.loc["SSP", "1"] == "all 5 failed"


def test_what_has_no_estimate_or_is_unconverged_is_not_called_failed():
    statuses = ("no_estimate", "no_estimate", "unconverged", "oom")
    trials = [make_trial(repetition=k, status=status) for k, status in enumerate(statuses)] + [make_trial(repetition=4)]
    trials += [make_trial(epsilon=1.0, repetition=k, status="no_estimate") for k in range(2)]
    table = cells(trials)
    assert table.loc["SSP", "0.1"] == "0.08000 (1; 2 no estimate; 1 unconverged; 1 failed)"
    assert table.loc["SSP", "1"] == "no value (0; 2 no estimate)"


def test_one_trial_and_values_that_are_not_finite():
    assert cells([make_trial(mse=0.08123)]).loc["SSP", "0.1"] == "0.08123 (1)"
    assert cells([make_trial(mse=None)]).loc["SSP", "0.1"] == "no value (0; 1 not finite)"


def test_rows_in_label_order_and_the_reference_in_its_own_row():
    table = cells(make_grid())
    assert list(table.columns) == ["0.05", "0.1", "0.5", "1", "2", "inf"]
    assert list(table.index)[:2] == ["public", "SSP (tight)"]
    assert table.loc["public", "inf"].endswith("(5)")
    assert set(table.loc["public"].drop("inf")) == {""}
    assert table.loc["DD-SSP", "2"].endswith("(3; 2 failed)")


def test_a_budget_without_trials_reads_not_run():
    table = cells([make_trial(epsilon=0.1), make_trial("adassp", epsilon=1.0)])
    assert table.loc["SSP", "1"] == "not run"


def test_models_that_share_a_label_have_rows_of_their_own():
    labels = {"aim/svr": "AIM-Synth, ML", "aim/mlp": "AIM-Synth, ML", "ssp/linear_statistics": "SSP"}
    trials = [make_trial("aim", model, mse=mse) for model, mse in (("svr", 1.0), ("mlp", 2.0))] + [make_trial()]
    table = cell_table(trial_frame(trials), labels, "mse")
    assert dict(table["0.1"]) == {
        "AIM-Synth, ML, mlp": "2.000 (1)",
        "AIM-Synth, ML, svr": "1.000 (1)",
        "SSP": "0.08000 (1)",
    }


def kept(trials, labels, folder):
    """What `write_tables` keeps of the trials of each number of its one table."""
    tables = []
    frame = trial_frame(trials)
    write_tables(frame, labels, ["mse"], folder, "cells", keep=lambda found, *_: tables.extend(found) or [])
    (table,) = tables
    return table


def test_the_trials_of_a_number_are_those_of_its_row_and_column(tmp_path):
    labels = {"aim/svr": "AIM-Synth, ML", "aim/mlp": "AIM-Synth, ML"}
    trials = [make_trial("aim", model, epsilon, k, delta=delta) for model in ("svr", "mlp") for delta in (1e-5, 1e-6)
              for epsilon in (0.1, 1) for k in range(2)]  # fmt: skip
    found = kept(trials, labels, tmp_path)
    (row,) = (
        at
        for at, name in enumerate(cell_table(trial_frame(trials), labels, "mse").index)
        if "1e-05: AIM-Synth, ML, svr" in name
    )
    own = {one.id for one in trials if one.key.fit.model.name == "svr" and one.key.release.budget.delta == 1e-5}
    assert {trial for (at, _), ids in found.items() if at == row for trial in ids} == own
    assert len(found) == 8 and all(len(ids) == 2 for ids in found.values())


def test_of_two_methods_in_one_place_it_is_not_told_whose_trials_are_shown(tmp_path):
    labels = {"ssp/linear_statistics": "one", "adassp/linear_statistics": "one", "aim/linear_marginals": "two"}
    trials = [make_trial(), make_trial("adassp"), make_trial("aim", "linear_marginals")]
    assert kept(trials, labels, tmp_path) == {(1, 1): [trials[2].id]}


def test_data_sets_and_deltas_have_rows_of_their_own():
    several = [make_trial(), make_trial(dataset="taxi"), make_trial(delta=1e-6)]
    assert list(cells(several).index) == ["adult, δ = 1e-06: SSP", "adult, δ = 1e-05: SSP", "taxi, δ = 1e-05: SSP"]


def test_terminal_table_keeps_to_the_width_and_shows_every_cell():
    frame = trial_frame(make_grid())
    text = terminal_table(frame, LABELS, "mse", width=80)
    assert max(map(len, text.splitlines())) <= 80
    for cell in cell_table(frame, LABELS, "mse").to_numpy().ravel():
        assert cell in text
    assert "lower is better" in text


def test_files_hold_every_metric(tmp_path):
    frame = trial_frame(make_grid())
    paths = write_tables(frame, LABELS, ["mse", "r2", "absent"], tmp_path, "linreg_adult", "limits: smoke")
    assert [path.suffix for path in paths] == [".csv", ".md", ".tex"]
    tidy = pd.read_csv(paths[0])
    assert len(tidy) == 2 * 31
    row = tidy[(tidy["series"] == "SSP (paper)") & (tidy["epsilon"] == 0.1) & (tidy["metric"] == "mse")].iloc[0]
    assert row["spent_epsilon_max"] == pytest.approx(0.16)
    assert tidy["failed"].sum() == 2 * 4
    text = paths[1].read_text()
    assert "## mse" in text and "## r2" in text and "## absent" in text
    assert "limits: smoke" in text
    assert "SSP (paper) 0.08 at ε = 0.05" in text
    assert paths[2].read_text().count("\\begin{table}") == 2


def test_latex_is_escaped(tmp_path):
    frame = trial_frame([make_trial("a_b", "c&d")])
    text = write_tables(frame, {"a_b/c&d": "50% $A_B$ & #1"}, ["mse"], tmp_path, "x_y")[2].read_text()
    assert r"50\% \$A\_B\$ \& \#1 & 0.08000 (1) \\" in text
    assert r"\caption{x\_y: mse (scaled target$^2$" in text


def test_markdown_cells_cannot_break_the_table(tmp_path):
    frame = trial_frame([make_trial("a", "b")])
    text = write_tables(frame, {"a/b": "x|y"}, ["mse"], tmp_path, "t")[1].read_text()
    assert "| x\\|y | 0.08000 (1) |" in text


def test_an_unwritable_folder_is_the_users_matter(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="cannot write"):
        write_tables(trial_frame([make_trial()]), LABELS, ["mse"], tmp_path / "file", "t")


def test_latex_has_the_best_private_method_in_bold_and_data_sets_above_their_methods(tmp_path):
    values = {"ssp": (0.1, 0.11), "adassp": (0.105, 0.1), "aim": (0.3, 0.31), "exact": (0.01, 0.01)}
    trials = [make_trial(name, "svr", math.inf if name == "exact" else 0.1, k, v, dataset=data)
              for name, some in values.items() for k, v in enumerate(some) for data in ("adult", "taxi")]  # fmt: skip
    labels = {f"{name}/svr": name for name in values}
    text = write_tables(trial_frame(trials), labels, ["mse"], tmp_path, "t")[2].read_text()
    bold = [line.split(" & ")[0].strip() for line in text.splitlines() if "textbf" in line]
    assert bold == ["ssp", "adassp"] * 2 and "In bold: the best private method" in text
    assert text.count(r"\emph{adult}") == 1 and r"\label{tab:t-mse}" in text and "adult: ssp" not in text
