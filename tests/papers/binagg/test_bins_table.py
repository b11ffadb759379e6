from report.made_up import make_trial

from dpbench.papers.binagg import BINS, bins_table
from dpbench.report.frames.frame import trial_frame
from dpbench.report.frames.settings import placed, settings_of

LABELS = {"binagg/bin_regression": "BinAgg"}
SPEC = {"x": "release.mechanism.parameters.theta", "xlabel": "θ", "panels": {"b": "B", "a": "A"}}
PUBLISHED = {"where": "Table 8", "repetitions": 100, "rows": {"a": {0: [5, 12, 7], -70: [4, 24, 14]}}}


def trials_of(bins, dataset="a", theta=0.0, **changes):
    return [
        make_trial(
            "binagg",
            "bin_regression",
            repetition=place,
            dataset=dataset,
            parameters={"theta": theta},
            notes={"bins": number},
            **changes,
        )
        for place, number in enumerate(bins)
    ]


def test_smallest_largest_and_median_by_data_set_and_setting_with_the_published():
    lost = make_trial(
        "binagg", "bin_regression", repetition=9, dataset="a", parameters={"theta": 0.0}, status="no_estimate"
    )
    trials = [*trials_of([6, 9, 7]), *trials_of([30, 20], theta=-70.0), *trials_of([3], "b"), lost]
    made = bins_table(placed(trial_frame(trials, [*settings_of(SPEC), BINS]), SPEC), LABELS, SPEC, PUBLISHED)
    assert made.rows == [
        ["B", "0", "BinAgg", "1", "3", "3", "3", "", "", "", ""],
        ["A", "-70", "BinAgg", "2", "20", "30", "25", "4", "24", "14", "no"],
        ["A", "0", "BinAgg", "3", "6", "9", "7", "5", "12", "7", "yes"],
    ]
    assert any("BinAgg 1 of 7" in sentence for sentence in made.footnotes), "a trial without an estimate is counted"
    ids = [trial.id for trial in trials[:3]]
    assert {column: sorted(own) for (row, column), own in made.trials.items() if row == 2} == dict.fromkeys(
        (3, 4, 5, 6), sorted(ids)
    ), "our numbers are of the trials with bins, the paper's of none"
