"""A choice among methods by the tables that are nearest."""

import math

import numpy as np
import pandas as pd
import pytest

from dpbench.errors import UserError
from dpbench.report.outcomes import method_cells
from dpbench.report.recommendation import (
    Size,
    beyond,
    evidence_of,
    left_out,
    nearest,
    orders,
    pays_from,
    ranked,
    ranking_metric,
    rates,
    ratios_of,
)

INF, NAN = math.inf, math.nan
SIZES = {name: Size(rows, 10, 10) for name, rows in (("a", 100), ("b", 200), ("c", 100_000), ("d", 200_000))}


def places(**columns):
    index = pd.MultiIndex.from_tuples([(name, 1.0) for name in SIZES], names=["dataset", "epsilon"])
    return pd.DataFrame(columns, index=index)


def cells(*rows, metric="m"):
    names = ("dataset", "mechanism", "epsilon", "value", "direction", "status")
    made = pd.DataFrame([dict(zip(names, row, strict=True)) for row in rows])
    made = made.assign(metric=metric, model="x", calibration="", variant="", peak_mb=1.0)
    return method_cells(made.assign(release_seconds=2.0, model_seconds=1.0), [metric])


def test_errors_are_means_over_the_runs_with_a_value_where_most_have_one():
    rows = [
        ("a", "one", 1.0, 0.2, "lower", "done"),
        ("a", "one", 1.0, 0.4, "lower", "done"),
        ("a", "one", 1.0, NAN, "lower", "failed"),
        ("a", "two", 1.0, 0.1, "lower", "done"),
        ("a", "two", 1.0, NAN, "lower", "no_estimate"),
        ("b", "two", 1.0, 0.5, "lower", "done"),
        ("b", "exact", INF, 0.25, "lower", "done"),
    ]
    evidence = evidence_of(cells(*rows), "m", {"one/x": "One"})
    assert evidence.errors.loc[("a", 1.0), "One"] == pytest.approx(0.3)
    assert np.isnan(evidence.errors.loc[("a", 1.0), "two / x"]) and np.isnan(evidence.errors.loc[("b", 1.0), "One"])
    assert evidence.cells.loc[("a", 1.0, "One"), ["without", "runs", "seconds"]].tolist() == [1, 3, 3.0]
    assert evidence.expected.loc[("b", 1.0), "two / x"] == 2  # multiples of the non-private error
    assert len(evidence.errors) == 2  # the non-private reference has no place


def test_a_run_without_a_value_counts_as_the_trivial_answer():
    rows = [
        ("a", "one", 1.0, 0.8, "higher", "done"),
        ("a", "one", 1.0, NAN, "higher", "failed"),
        ("b", "one", 1.0, -0.1, "higher", "done"),
        *((name, "exact", INF, 0.8, "higher", "done") for name in "ab"),
    ]
    evidence = evidence_of(cells(*rows, metric="r2"), "r2", {})
    assert evidence.errors["one / x"].tolist() == [pytest.approx(0.6), pytest.approx(1.1)]  # 1 - R^2
    assert evidence.expected["one / x"].tolist() == [pytest.approx(0.5), pytest.approx(-0.125)]
    assert evidence.wins["one / x"].tolist() == [1, 0]


def test_a_method_without_any_value_has_no_error_though_there_is_a_trivial_answer():
    rows = [
        ("a", "one", 1.0, NAN, "higher", "failed"),
        ("b", "one", 1.0, 0.6, "higher", "done"),
        ("b", "one", 1.0, NAN, "higher", "failed"),
        *((name, "exact", INF, 0.8, "higher", "done") for name in "ab"),
    ]
    errors = evidence_of(cells(*rows, metric="r2"), "r2", {}).errors["one / x"]
    assert math.isnan(errors["a", 1.0]) and errors["b", 1.0] == pytest.approx(0.7)


def test_a_method_without_a_value_does_not_beat_the_trivial_answer_and_one_that_was_not_run_does_neither():
    rows = [("a", "one", 1.0, 0.6, "higher", "done"), ("b", "one", 1.0, NAN, "higher", "failed")]
    wins = evidence_of(cells(*rows, ("b", "two", 1.0, 0.4, "higher", "done"), metric="auc"), "auc", {}).wins
    assert wins["one / x"].tolist() == [1, 0]
    assert math.isnan(wins["two / x"].iloc[0]) and wins["two / x"].iloc[1] == 0


def test_a_method_pays_from_the_amount_of_data_up_from_which_it_wins_on_three_in_four_places():
    """Not from where many larger places make up for those that are lost, nor by chance at one alone."""

    def pays(text, amounts=None):
        won = pd.Series([{"l": 0.0, "W": 1.0, "-": NAN}[one] for one in text])
        found = pays_from(won, pd.Series(range(len(text)) if amounts is None else amounts))
        return None if found is None else (found.least, found.won, found.places, found.won_below, found.below)

    assert pays("lllWWWWWWWWWWWWW") == (3, 13, 13, 0, 3)
    assert pays("lWlWWWlWWWWW") == (3, 8, 9, 1, 3)
    assert pays("l-WW-WWW") == (2, 5, 5, 0, 1)
    assert pays("lllWWWW") is None and pays("llllllll") is None
    assert pays("lWWWWW", [1, 2, 2, 2, 2, 1]) is None  # of the same amount they count together
    assert pays("lWlWWWWWW", [1, 2, 2, 2, 2, 3, 3, 3, 3]) == (2, 7, 8, 0, 1)


def test_for_queries_the_best_trivial_answer_is_the_yardstick():
    rows = [
        ("a", name, INF, error, "lower", "done")
        for name, error in (("zero", 0.5), ("uniform", 0.4), ("real_rows", 0.1))
    ]
    evidence = evidence_of(cells(*rows, ("a", "one", 1.0, 0.1, "lower", "done")), "m", {})
    assert evidence.expected.iloc[0, 0] == pytest.approx(0.75)


def test_intervals_that_cover_too_little_are_never_first():
    scores = [
        ("a", name, 1.0, score, "lower", "done") for name, score in (("good", 2.0), ("narrow", 1.0)) for _ in range(4)
    ]
    covered = zip(["good"] * 4 + ["narrow"] * 4, [1.0, 0.5, 1.0, 1.0, 0.5, 0.75, 0.5, 0.75], strict=True)
    coverage = cells(*(("a", name, 1.0, value, "none", "done") for name, value in covered), metric="coverage")
    evidence = evidence_of(pd.concat([cells(*scores), coverage]), "m", {}, level=0.9)
    assert evidence.cells["below"].to_dict() == {("a", 1.0, "good / x"): False, ("a", 1.0, "narrow / x"): True}
    assert ranked(evidence.errors) == ["good / x"]


def test_what_lies_beyond_the_tables_is_told_by_its_factor():
    errors = places(one=[1.0, 2.0, 3.0, 4.0])
    assert beyond(errors, SIZES, Size(1000, 10, 10), 1.0) == []
    assert beyond(errors, SIZES, Size(1000, 30, 10), 0.05) == [
        "n ε = 50 is 2 times less than the least, 100",
        "columns = 30 is 3 times the most, 10",
        "ε = 0.05 is 20 times less than the least, 1",
    ]


def test_the_nearest_have_as_much_data_for_the_noise():
    """A table of 1,000 rows at epsilon 100 is one of 100,000 at epsilon 1."""
    near = nearest(places(one=[1.0, 2.0, 3.0, 4.0]), SIZES, Size(1000, 10, 10).at(100))
    assert near.index.get_level_values("dataset").tolist() == ["c", "d", "b", "a"]


def test_the_nearest_have_as_many_columns_and_coefficients():
    """Of as many rows: wide tables by their columns, and of these by their levels."""
    sizes = {"a": Size(1000, 10, 10), "b": Size(1000, 10, 90), "c": Size(1000, 10, 100), "d": Size(1000, 80, 100)}
    near = nearest(places(one=[1.0, 2.0, 3.0, 4.0]), sizes, Size(1000, 10, 100).at(1.0))
    assert near.index.get_level_values("dataset").tolist() == ["c", "b", "d", "a"]


def test_methods_are_ranked_by_their_multiples_of_the_lowest_error():
    """What was not run everywhere is ranked by the places where it was, unless these are half or fewer."""
    errors = places(
        steady=[1.0, 1.0, 2.0, 2.0], wild=[10.0, 0.9, 1.9, 1.9], part=[NAN, 0.9, 1.9, 1.9], few=[NAN, NAN, 0.1, 9.0]
    )
    assert ranked(errors) == ["steady", "part", "wild"]


def test_a_method_without_any_error_is_the_best():
    assert ranked(places(none=[0.0, 0.0, 1.0, 0.0], some=[0.1, 0.0, 1.0, 0.2])) == ["none", "some"]


def test_a_choice_that_has_no_error_on_the_left_out_table_was_wrong():
    costs = left_out(places(one=[NAN, 1.0, 1.0, 1.0], two=[2.0, 2.0, 2.0, 2.0]), SIZES)
    assert costs["overall"].tolist() == [INF, 1, 1, 1] and rates(costs).tolist() == [3, 3, 3]
    assert ranked(places(one=INF, two=INF)) == []


def test_of_no_finite_error_there_are_no_multiples():
    ratios = ratios_of(places(one=[INF, 1.0, 1.0, 1.0], two=[INF, 2.0, INF, NAN]))
    assert ratios.iloc[0].isna().all() and ratios["two"].iloc[1:3].tolist() == [2.0, INF]


def test_an_arena_ranks_by_the_metric_of_its_mean_ranks():
    figures = [{"name": "c", "metric": "coverage"}, {"name": "r", "kind": "mean_ranks", "metric": "interval_score"}]
    assert ranking_metric({"metrics": ["coverage"], "figures": figures}) == "interval_score"
    assert ranking_metric({"metrics": ["mse", "r2"], "figures": figures[:1]}) == "mse"
    with pytest.raises(UserError, match="names no metric to rank by"):
        ranking_metric({"metrics": None, "figures": []})


@pytest.mark.parametrize(
    ("value", "direction", "why"), [(0.9, "none", "neither low nor high"), (-1.0, "lower", "zero")]
)
def test_what_cannot_rank_is_refused(value, direction, why):
    with pytest.raises(UserError, match=f"m cannot rank methods: .*{why}"):
        evidence_of(cells(("a", "one", 1.0, value, direction, "done")), "m", {})


def test_where_large_and_small_tables_differ_the_nearest_choose_right_and_one_method_for_all_does_not():
    names = [f"small{place}" for place in range(6)] + [f"large{place}" for place in range(6)]
    sizes = {name: Size(100 if name.startswith("small") else 10**6, 5, 5) for name in names}
    small = np.array([name.startswith("small") for name in names])
    index = pd.MultiIndex.from_tuples([(name, 1.0) for name in names], names=["dataset", "epsilon"])
    errors = pd.DataFrame({"one": np.where(small, 1.0, 3.0), "two": np.where(small, 2.0, 1.0)}, index=index)
    costs = left_out(errors, sizes)
    assert (costs["near"] == 1).all() and costs["overall"].max() == 2
    assert rates(costs).index[0] == "near"


def test_where_the_budget_decides_the_best_over_all_tables_at_it_are_right():
    """With little data at a large epsilon the nearest places are those of a small one."""
    sizes = {
        name: Size(rows, 5, 5) for name, rows in zip("abcdef", (100, 1000, 10**4, 10**5, 10**6, 10**7), strict=True)
    }
    index = pd.MultiIndex.from_product([[*sizes], [0.1, 10.0]], names=["dataset", "epsilon"])
    low = index.get_level_values("epsilon") == 0.1
    errors = pd.DataFrame({"one": np.where(low, 1.0, 2.0), "two": np.where(low, 2.0, 1.0)}, index=index)
    costs = left_out(errors, sizes)
    assert (costs["budget"] == 1).all() and rates(costs).index[0] == "budget" and costs["overall"].max() == 2
    assert orders(errors, sizes, Size(100, 5, 5), 7.0)["budget"] == ["two", "one"], "the nearest budget"


def test_a_method_that_covers_on_one_table_alone_is_no_yardstick():
    """Its score there is by chance; and where nothing else has an error, no choice was right or wrong."""
    errors = places(covers=[2.0, 2.0, 2.0, NAN], chance=[1.0, INF, INF, 1.0])
    costs = left_out(errors, SIZES)
    assert costs.loc[("a", 1.0)].tolist() == [1, 1, 1] and costs.loc[("d", 1.0)].isna().all()


def test_without_a_trivial_answer_a_method_wins_where_it_has_intervals_that_cover():
    scores, covered = list[tuple](), list[tuple]()
    for name, exist, coverage in (("often", 3, 1.0), ("seldom", 2, 1.0), ("narrow", 4, 0.5)):
        scores += [("a", name, 1.0, 2.0, "lower", "done")] * exist
        scores += [("a", name, 1.0, NAN, "lower", "no_estimate")] * (4 - exist)
        covered += [("a", name, 1.0, coverage, "none", "done")] * exist
    evidence = evidence_of(pd.concat([cells(*scores), cells(*covered, metric="coverage")]), "m", {}, level=0.9)
    assert evidence.wins.loc[("a", 1.0)].to_dict() == {"often / x": 1, "seldom / x": 0, "narrow / x": 0}


def test_a_table_is_no_evidence_for_itself():
    costs = left_out(places(one=[1.0, 5.0, 5.0, 5.0], two=[5.0, 1.0, 1.0, 1.0]), SIZES)
    assert costs.loc[("a", 1.0), "near"] == 5
