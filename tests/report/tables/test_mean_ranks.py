"""The numbers behind a figure of mean ranks."""

import itertools
import math

import numpy as np
import pytest

from dpbench.report.figures.mean_ranks import SAMPLES, mean_ranks
from dpbench.report.frames.frame import trial_frame
from dpbench.report.tables.mean_ranks import CRITICAL, mean_ranks_table

from ..made_up import LABELS, make_trial

SPEC = {"name": "ranks", "kind": "mean_ranks_table", "metric": "mse", "title": "T"}
MSE = {  # by data set: SSP, AdaSSP, DD-SSP
    "adult": (0.3, 0.2, 0.1),
    "fire": (0.9, 0.5, 0.4),
    "taxi": (0.3, 0.2, 0.4),
    "acs": (0.7, 0.5, 0.5),  # a tie for the first place, and none is second
}
METHODS = (("ssp", "linear_statistics"), ("adassp", "linear_statistics"), ("aim", "linear_marginals"))


def trials(mse=MSE, **settings):
    return [
        make_trial(*method, mse=value, dataset=dataset, **settings)
        for dataset, values in mse.items()
        for method, value in zip(METHODS, values, strict=True)
    ]


def table(stored):
    return mean_ranks_table(trial_frame(stored), LABELS, SPEC, {})


def test_a_row_a_method_the_best_one_on_top_with_places_and_the_critical_difference():
    made = table(trials())
    assert made.header == ["", "mean rank, ε = 0.1", "best, ε = 0.1", "first, ε = 0.1"]
    critical = 2.343 * math.sqrt(3 * 4 / (6 * 4))  # Demšar 2006, Table 5a: q of three methods at 5 %
    assert made.rows == [
        ["AdaSSP", "1.62", "2", "57 %"],  # (2 + 2 + 1 + 1.5) / 4
        ["DD-SSP", "1.62", "3", "62 %"],  # (1 + 1 + 3 + 1.5) / 4
        ["SSP", "2.75", "0", "0 %"],
        [CRITICAL, f"{critical:.2f}", "", ""],
    ]
    assert any(sentence.startswith("ε = 0.1: 4 data sets, Friedman") for sentence in made.footnotes)


def test_how_sure_the_first_place_is_by_other_sets_of_data_sets():
    made = table(trials())
    ranks = np.array([[2, 2, 1, 1.5], [1, 1, 3, 1.5], [3, 3, 2, 3]])  # of AdaSSP, DD-SSP and SSP
    means = np.array([ranks[:, list(drawn)].sum(axis=1) for drawn in itertools.product(range(4), repeat=4)])
    exact = (means == means.min(axis=1, keepdims=True)).mean(axis=0)
    found = made.tidy.set_index("series").loc[["AdaSSP", "DD-SSP", "SSP"], "first"]
    assert found.to_list() == pytest.approx(exact, abs=4 * 0.5 / math.sqrt(SAMPLES))  # fails once in 10,000 seeds
    assert "ε = 0.1: leaving out one data set at a time, first is AdaSSP (3) and DD-SSP (2)" in made.footnotes


def test_its_numbers_are_those_of_the_figure():
    stored = [*trials(), *trials(epsilon=2.0)]
    drawn = mean_ranks(trial_frame(stored), LABELS, SPEC).drawn
    tidy = table(stored).tidy.set_index(["epsilon", "series"])
    points = drawn.set_index(["epsilon", "series"])
    for name in ("mean_rank", "best", "datasets", "friedman_p"):
        assert tidy[name].to_dict() == points[name].to_dict()
    assert tidy["critical_difference"].to_list() == pytest.approx((points["high"] - points["low"]).to_list())


def test_each_epsilon_has_columns_of_its_own_and_a_method_without_it_was_not_run():
    made = table([*trials(), *(one for one in trials(epsilon=2.0) if one.key.release.mechanism.name != "ssp")])
    assert made.header[4:] == ["mean rank, ε = 2", "best, ε = 2", "first, ε = 2"]
    row = next(row for row in made.rows if row[0] == "SSP")
    assert row[4:] == ["not run", "", ""] and made.tidy["datasets"].to_list() == [4] * 5


def test_the_trials_of_a_number_are_those_of_its_method_on_the_data_sets_that_count():
    stored = trials()
    stored = [one for one in stored if one is not stored[-1]]  # DD-SSP was not run on acs
    made = table(stored)
    own = {one.id for one in stored if one.key.release.mechanism.name == "ssp"}
    acs = {one.id for one in stored if one.key.release.dataset["name"] == "acs"}
    row = [line[0] for line in made.rows].index("SSP")
    assert {at: set(ids) for at, ids in made.trials.items() if at[0] == row} == {
        (row, column): own - acs for column in (1, 2, 3)
    }
    assert made.tidy["datasets"].to_list() == [3, 3, 3]


def test_one_data_set_has_no_critical_difference_and_no_common_one_no_ranks():
    assert table(trials({"adult": MSE["adult"]})).rows[-1] == [CRITICAL, "", "", ""]
    apart = [make_trial(*METHODS[place], dataset=name) for place, name in enumerate(("adult", "taxi"))]
    assert [row[1:] for row in table(apart).rows[:-1]] == [["no data set", "", ""]] * 2
    assert table([]).rows == [] and table([]).trials == {}
