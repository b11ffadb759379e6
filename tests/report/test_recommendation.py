"""A choice among methods by the tables that are nearest."""

import math

import numpy as np
import pandas as pd
import pytest

from dpbench.errors import UserError
from dpbench.report.recommendation import Size, errors_of, left_out, nearest, ranked, ranking_metric, ratios_of

INF, NAN = math.inf, math.nan
SIZES = {name: Size(rows, 10, 10) for name, rows in (("a", 100), ("b", 200), ("c", 100_000), ("d", 200_000))}


def places(**columns):
    index = pd.MultiIndex.from_tuples([(name, 1.0) for name in SIZES], names=["dataset", "epsilon"])
    return pd.DataFrame(columns, index=index)


def frame(*rows):
    named = [
        dict(zip(("dataset", "mechanism", "epsilon", "value", "direction", "status"), row, strict=True)) for row in rows
    ]
    return pd.DataFrame(named).assign(metric="m", model="x", calibration="", variant="")


def test_errors_are_means_and_inf_where_a_repetition_has_none():
    rows = [
        ("a", "one", 1.0, 0.2, "lower", "done"),
        ("a", "one", 1.0, 0.4, "lower", "done"),
        ("a", "two", 1.0, 0.1, "lower", "done"),
        ("a", "two", 1.0, NAN, "lower", "failed"),
        ("b", "two", 1.0, 0.5, "lower", "done"),
        ("b", "exact", INF, 0.0, "lower", "done"),
    ]
    errors = errors_of(frame(*rows), "m", {"one/x": "One"})
    assert errors.loc[("a", 1.0)].to_dict() == {"One": pytest.approx(0.3), "two / x": INF}
    assert np.isnan(errors.loc[("b", 1.0), "One"]) and errors.loc[("b", 1.0), "two / x"] == 0.5
    assert len(errors) == 2  # the non-private reference has no place


def test_of_a_score_that_should_be_high_the_error_is_what_it_lacks():
    errors = errors_of(frame(("a", "one", 1.0, 0.9, "higher", "done")), "m", {})
    assert errors.iloc[0, 0] == pytest.approx(0.1)


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
    found = ranked(places(steady=[1.0, 1.0, 2.0, 2.0], wild=[10.0, 0.9, 1.9, 1.9], part=[NAN, 0.9, 1.9, 1.9], no=INF))
    assert found.index.tolist() == ["steady", "wild", "part"]  # what was not run everywhere is not put first
    assert found.loc["steady", "close"] == 3 and found.loc["wild", "worst"] == 10 and found.loc["part", "value"] == 3
    assert found.loc["wild", "ratio"] == pytest.approx(10**0.25)


def test_a_method_without_any_error_is_the_best():
    found = ranked(places(none=[0.0, 0.0, 1.0, 0.0], some=[0.1, 0.0, 1.0, 0.2]))
    assert found.index.tolist() == ["none", "some"]
    assert found.loc["none", "ratio"] == 1 and found.loc["some", "ratio"] == INF and (found["value"] == 4).all()


def test_a_method_without_a_value_is_never_first():
    """By its name and by its places, 'a failure' would come first."""
    found = ranked(places(**{"a failure": INF, "b once": [INF, 1.0, 1.0, 1.0], "c": [9.0, 9.0, 9.0, 9.0]}))
    assert found.index.tolist() == ["c", "b once"]
    assert ranked(places(one=INF, two=INF)).empty
    assert left_out(places(one=INF, two=INF), SIZES).isna().all(axis=None)


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
        errors_of(frame(("a", "one", 1.0, value, direction, "done")), "m", {})


def test_where_large_and_small_tables_differ_the_nearest_choose_right_and_one_method_for_all_does_not():
    names = [f"small{place}" for place in range(6)] + [f"large{place}" for place in range(6)]
    sizes = {name: Size(100 if name.startswith("small") else 10**6, 5, 5) for name in names}
    small = np.array([name.startswith("small") for name in names])
    index = pd.MultiIndex.from_tuples([(name, 1.0) for name in names], names=["dataset", "epsilon"])
    errors = pd.DataFrame({"one": np.where(small, 1.0, 3.0), "two": np.where(small, 2.0, 1.0)}, index=index)
    costs = left_out(errors, sizes)
    assert (costs["chosen"] == 1).all() and costs["fixed"].max() == 2


def test_a_table_is_no_evidence_for_itself():
    costs = left_out(places(one=[1.0, 5.0, 5.0, 5.0], two=[5.0, 1.0, 1.0, 1.0]), SIZES)
    assert costs.loc[("a", 1.0), "chosen"] == 5
