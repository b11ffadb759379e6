import math

import pytest
from report.made_up import make_trial

from dpbench.papers.binagg import averages_table
from dpbench.report.frames.frame import trial_frame

LABELS = {"binagg/linear_rows": "BinAgg, rows", "pate/linear_rows": "PATE", "aim/linear_rows": "AIM-Synth"}
SPEC = {"metric": "seconds", "beside": {"BinAgg, rows": "BinAgg", "PATE": "PATE", "AIM-Synth": "AIM"}}
PUBLISHED = {
    "where": "section 5",
    "repetitions": 10,
    "rows": [
        {"method": "BinAgg", "value": 2.0, "digit": 0.1},
        {"method": "PATE", "value": 3.0, "digit": 0.1},
        {"method": "PATE", "by": "BinAgg", "value": 50, "digit": 1},
        {"method": "AIM", "by": "BinAgg", "value": 10, "digit": 1},
    ],
}


def trials_of(mechanism, seconds, **changes):
    """A trial with each of these, data set -> seconds."""
    return [
        make_trial(mechanism, "linear_rows", 1.0, k, dataset=name, release_seconds=value, model_seconds=0.0, **changes)
        for name, values in seconds.items()
        for k, value in enumerate(values)
    ]


def test_means_over_the_data_sets_and_their_ratios_by_calibration_with_the_published():
    trials = trials_of("binagg", {"a": [0.9, 1.0, 1.1], "b": [2.9, 3.0, 3.1]}, calibration="paper")
    trials += trials_of("binagg", {"a": [1.9, 2.0, 2.1], "b": [5.9, 6.0, 6.1]}, calibration="tight")
    trials += trials_of("pate", {"a": [50.0, 150.0], "b": [299.0, 301.0]})
    trials += [make_trial("pate", "linear_rows", 1.0, 7, dataset="a", release_seconds=9e9, status="timeout")]
    table = averages_table(trial_frame(trials), LABELS, SPEC, PUBLISHED)
    found = {(row["average"], row["calibration"]): row for row in table.tidy.to_dict("records")}
    assert {name: (row["ours"], row["verdict"]) for name, row in found.items()} == {
        ("BinAgg", "paper"): (pytest.approx(2.0), "within"),
        ("BinAgg", "tight"): (pytest.approx(4.0), "higher"),
        ("PATE", ""): (pytest.approx(200.0), "higher"),
        ("PATE / BinAgg", "paper"): (pytest.approx(100.0), "not precise enough"),
        ("PATE / BinAgg", "tight"): (pytest.approx(50.0), "not precise enough"),
    }
    error = math.hypot(0.1, 0.1) / math.sqrt(3) / 2  # of the mean of two means
    assert found["BinAgg", "paper"]["se"] == pytest.approx(error)
    relative = math.hypot(math.hypot(50.0, 1.0) / 2 / 200, error / 2)
    assert found["PATE / BinAgg", "paper"]["se"] == pytest.approx(100 * relative)
    assert found["PATE", ""]["least repetitions"] == 2 and found["PATE", ""]["data sets"] == 2
