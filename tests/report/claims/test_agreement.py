import math

import pytest

from dpbench.report.claims.agreement import counted, verdict


@pytest.mark.parametrize(
    "mean, se, count, expected",
    [
        (0.3049, 0.0, 100, "within"),  # half a unit of the last digit
        (0.3051, 0.0, 100, "higher"),
        (0.2949, 0.0, 100, "lower"),
        (0.3050 + 1.98 * 0.01 * math.sqrt(2), 0.01, 100, "within"),  # as many repetitions: twice the variance
        (0.3050 + 1.99 * 0.01 * math.sqrt(2), 0.01, 100, "higher"),  # Student's quantile is 1.984
        (0.2950 - 2.27 * 0.01 * math.sqrt(1.1), 0.01, 10, "lower"),  # ours has a tenth of the repetitions
        (0.2950 - 2.26 * 0.01 * math.sqrt(1.1), 0.01, 10, "within"),
        (0.3050 + 12.7 * 0.005 * math.sqrt(1.02), 0.005, 2, "within"),  # two repetitions: the quantile is 12.71
        (0.3050 + 12.8 * 0.005 * math.sqrt(1.02), 0.005, 2, "higher"),
        (0.31, 0.00591, 2, "not precise enough"),  # half of the interval is more than a quarter of the published number
        (0.31, 0.00589, 2, "within"),
        (0.31, 0.0299, 100, "within"),
        (0.31, 0.0301, 100, "not precise enough"),  # more than a tenth of the published number
        (0.9, 0.0301, 100, "higher"),
        (0.3, math.nan, 1, "cannot tell"),
        (math.nan, math.nan, 0, "cannot tell"),
    ],
)
def test_the_verdict_allows_for_both_errors_and_for_rounding_and_needs_power(mean, se, count, expected):
    assert verdict(mean, se, count, published=0.30, paper={"repetitions": 100, "digit": 0.01}) == expected


def test_a_bias_is_precise_on_the_scale_of_the_standard_deviation():
    paper = {"repetitions": 2000, "digit": 0.001}
    assert verdict(0.004, 0.007, 2000, 0.002, paper) == "not precise enough"
    assert verdict(0.004, 0.007, 2000, 0.002, paper, scale=0.25) == "within"


def test_verdicts_are_counted_in_a_sentence():
    reported = counted(["within", "higher", "within", "not run"])
    assert reported == "Of 4 comparisons with published numbers: within 2, higher 1, not run 1"
    assert counted([]) == ""
