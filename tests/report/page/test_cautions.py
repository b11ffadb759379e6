"""What a reader must know before quoting, from cells."""

import pytest

from dpbench.report.page.cautions import differences, failures, overspending, unfinished, unpaid
from dpbench.report.page.trial_cells import Cell


def cell(method="SSP", dataset="Adult", epsilon="1", statuses=None, overspent=0.5, inputs=(), ended=(0, 0)):
    statuses = statuses or {"done": 5}
    return Cell("linreg", dataset, method, epsilon, {}, "", statuses, overspent, inputs, [], [], None, "", 0, 5, *ended)


@pytest.mark.parametrize("block", [failures, overspending, unfinished, unpaid])
def test_where_all_is_well_nothing_is_said(block):
    assert block([cell(), cell("AIM")]).rows == []


def test_failures_are_counted_over_the_epsilons_of_a_method():
    cells = [cell(epsilon="0.1", statuses={"done": 3, "oom": 2}), cell(epsilon="1"), cell("AIM")]
    assert failures(cells).rows == [["linreg", "Adult", "SSP", "0.1", "2 oom of 10"]]


def test_methods_that_spent_more_are_named_once_with_the_most():
    cells = [cell("SSP [x]", overspent=1.2), cell("SSP [y]", "Taxi", overspent=1.6), cell("AIM", overspent=1.0)]
    assert overspending(cells).rows == [["SSP", "Adult, Taxi", "up to 1.6 times"]]


def test_non_private_inputs_are_named_with_all_their_users():
    cells = [cell("SSP", inputs=("the penalty",)), cell("AIM", "Taxi", inputs=("the penalty",)), cell("MST")]
    assert unpaid(cells).rows == [["the penalty", "SSP, AIM", "Adult, Taxi"]]


def test_experiments_that_differ_in_the_same_way_share_a_line():
    one, none = {"differs": ["trials: 3, paper 5"]}, {"differs": []}
    assert differences({"a": one, "b": none, "c": one}).rows == [["a, c", "trials: 3, paper 5"]]


def test_integer_programmes_that_were_ended_are_counted_over_the_epsilons_of_a_method():
    cells = [cell(epsilon="0.1", ended=(12, 2)), cell(epsilon="1", ended=(3, 1)), cell(epsilon="2"), cell("AIM")]
    assert unfinished(cells).rows == [["linreg", "Adult", "SSP", "0.1, 1", "15 in 3 of 10 trials"]]
