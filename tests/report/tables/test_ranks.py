"""On how many data sets a method is the best, and how many times faster: counted by hand."""

import math

import pandas as pd
import pytest

from dpbench.report.tables.comparison import mean_ratios, ranks


def cells(rows, calibrations=("",)):
    """Cells of {row: {method: (mean, published)}}; a method's mean stands under each of these calibrations."""
    return pd.DataFrame(
        {
            "row": row, "method": method, "calibration": calibration, "mean": mean, "published": published,
            "series": f"{method} ({calibration})" if calibration else method,
            "count": int(not math.isnan(mean)), "failed": 0, "no_estimate": 0,
        }
        for row, methods in rows.items()
        for method, (mean, published) in methods.items()
        for calibration in calibrations
    )  # fmt: skip


ASKED = {"method": "A", "among": ["A", "B", "C"]}
ROWS = {
    "one": {"A": (0.1, 0.3), "B": (0.2, 0.2), "C": (0.3, 0.1)},  # first of ours, third of the published
    "two": {"A": (0.5, 0.1), "B": (0.5, 0.2), "C": (0.6, 0.3)},  # a tie for the first place
    "three": {"A": (0.9, 0.2), "B": (0.8, 0.1), "C": (0.7, 0.3)},  # third
    "four": {"A": (0.4, math.nan), "B": (0.3, 0.1), "C": (0.4, 0.2)},  # second, also in a tie; not published
    "five": {"A": (math.nan, 0.2), "B": (0.3, 0.1), "C": (0.4, math.nan)},  # not run
}


def test_places_are_counted_over_the_data_sets_that_have_the_method_and_ties_share_the_better_one():
    assert ranks(cells(ROWS), ASKED, {}) == [
        "A: lowest mean on 2 and second lowest on 1 of 4 data sets, among A, B, C",
        "A, published: lowest mean on 1 and second lowest on 2 of 4 data sets, among A, B, C",
    ]


def test_a_method_that_was_not_run_is_not_among_those_that_it_was_compared_with():
    rows = {"one": {"A": (0.2, math.nan), "B": (0.1, math.nan), "C": (math.nan, math.nan)}}
    reported = "A: lowest mean on 0 and second lowest on 1 of 1 data sets, among A, B"
    assert ranks(cells(rows), ASKED, {}) == [reported]


@pytest.mark.parametrize("lost", ["failed", "no_estimate"])
def test_a_method_that_lacks_a_value_in_a_repetition_ranks_last_and_is_named(lost):
    """By its one survivor of three A would be the lowest; B, without any value, would not be there."""
    rows = {"one": {"A": (0.1, math.nan), "B": (math.nan, math.nan), "C": (0.3, math.nan)}}
    frame = cells(rows, ("tight",))
    frame.loc[frame["method"] == "A", lost] = 2
    frame.loc[frame["method"] == "B", lost] = 3
    reported = "of 1 data sets, among A, B, C; ranked last because a repetition has no value: A on 1, B on 1"
    assert ranks(frame, ASKED, {}) == [f"A (tight): lowest mean on 0 and second lowest on 0 {reported}"]
    assert ranks(frame, {**ASKED, "method": "C"}, {}) == [
        f"C (tight): lowest mean on 1 and second lowest on 0 {reported}"
    ]
    assert "lowest mean on 0 and second lowest on 0" in ranks(frame, {**ASKED, "method": "B"}, {})[0]


def test_a_data_set_counts_where_every_method_was_run():
    rows = {"one": {"A": (0.2, math.nan), "B": (0.1, math.nan)}, "two": {"A": (0.2, math.nan)}}
    assert ranks(cells(rows), ASKED, {}) == [
        "A: lowest mean on 0 and second lowest on 1 of 1 data sets, among A, B"
    ]  # fmt: skip


def test_each_calibration_is_compared_with_the_same_one_or_the_tight_one():
    both = cells({"one": {"A": (0.2, math.nan), "B": (0.3, math.nan)}}, ("tight", "paper"))
    both.loc[(both["method"] == "B") & (both["calibration"] == "paper"), "mean"] = 0.1
    tight = cells({"one": {"C": (0.25, math.nan)}}, ("tight",))
    assert ranks(pd.concat([both, tight]), ASKED, {}) == [
        "A (tight): lowest mean on 1 and second lowest on 0 of 1 data sets, among A, B, C",
        "A (paper): lowest mean on 0 and second lowest on 1 of 1 data sets, among A, B, C",
    ]


def test_a_method_of_another_name_has_the_published_rank_unless_one_has_that_name():
    named = {"one": {"A": (0.2, 0.1), "B": (0.1, 0.2)}}
    assert len(ranks(cells(named), ASKED, {"A": "Z"})) == 2
    assert len(ranks(cells({"one": {**named["one"], "Z": (0.3, 0.1)}}), ASKED, {"A": "Z"})) == 1


def test_a_ratio_is_that_of_the_means_over_the_data_sets_that_have_both():
    # ours: (0.1 + 0.5 + 0.9 + 0.4) / (0.3 + 0.6 + 0.7 + 0.4), published: (0.3 + 0.1 + 0.2) / (0.1 + 0.3 + 0.3)
    assert mean_ratios(cells(ROWS), "A", "C") == [
        "A / C, means of 4 data sets: 0.95", "A / C, published, means of 3 data sets: 0.857"
    ]  # fmt: skip
    assert mean_ratios(cells({"one": {"A": (1.0, math.nan)}}), "A", "C") == []


def test_a_ratio_is_of_methods_under_the_same_calibration_or_the_tight_one():
    both = cells({"one": {"A": (4.0, math.nan), "C": (2.0, math.nan)}}, ("tight", "paper"))
    both.loc[(both["method"] == "A") & (both["calibration"] == "paper"), "mean"] = 3.0
    assert mean_ratios(both, "A", "C") == [
        "A (tight) / C (tight), means of 1 data sets: 2", "A (paper) / C (paper), means of 1 data sets: 1.5"
    ]  # fmt: skip
    assert mean_ratios(both[(both["method"] == "C") | (both["calibration"] == "tight")], "A", "C") == [
        "A (tight) / C (tight), means of 1 data sets: 2", "A (tight) / C (paper), means of 1 data sets: 2"
    ]  # fmt: skip
    alone = pd.concat([both, cells({"one": {"B": (1.0, math.nan)}})])
    assert mean_ratios(alone, "B", "C")[1] == "B / C (paper), means of 1 data sets: 0.5"
