import math
from dataclasses import replace

import pandas as pd

from dpbench.report.export_file import Exported, load_export, write_export
from dpbench.report.frames.by_setting import by_setting
from dpbench.report.frames.frame import joined_frame, rows_of

from ..made_up import make_grid, make_score, make_trial


def test_an_export_gives_the_rows_of_its_trials_without_making_one(tmp_path):
    infinite = make_trial("aim", repetition=7)
    infinite = replace(infinite, scores=(replace(make_score("mse", math.inf), detail={"bins": [1, 2]}),))
    unspent = replace(make_trial("ssp", repetition=8), spent=None, nonprivate_inputs=("b", "a"))
    made = [*make_grid(repetitions=4), infinite, unspent, make_trial("mst", epsilon=0.5, status="failed")]
    cells = load_export(write_export(made, tmp_path))
    exported = Exported([(cell, range(cell.count)) for cell in cells])
    rows = joined_frame([rows_of(exported)])
    assert not any("trials" in vars(cell) for cell in cells)
    pd.testing.assert_frame_equal(rows, joined_frame([rows_of(made)]))
    assert sorted(trial.id for trial in exported) == sorted(trial.id for trial in made)


def test_some_trials_of_a_cell(tmp_path):
    (cell,) = load_export(write_export([make_trial(repetition=k, mse=k / 10) for k in range(4)], tmp_path))
    some = Exported([(cell, [1, 3])])
    (group,) = by_setting(some)
    assert group.fields["repetition"] == [1, 3] and len(some) == 2
    assert [score["value"] for _, score in group.done if score["name"] == "mse"] == [0.1, 0.3]
