"""The quality of a synthetic table: what is as good as the real rows, what is worse, and in which scores."""

import math

import numpy as np
import pytest

from dpbench.data.domain import Attribute, Domain
from dpbench.data.table import Table
from dpbench.errors import UserError
from dpbench.metrics.quality import SCORES, quality
from dpbench.metrics.similarity import similarity


def whole(found):
    """The scores of the whole table, and those of the bootstrap."""
    return ({one.score: getattr(one, key) for one in found.scores if not one.of} for key in ("value", "bootstrap"))


def shuffled(table, seed=0):
    """Each column by itself: the same one-way marginals, no dependence."""
    rng = np.random.default_rng(seed)
    return Table(table.domain, np.column_stack([rng.permutation(column) for column in table.codes.T]))


def of_codes(codes, sizes):
    attributes = (Attribute.categorical(name, range(size)) for name, size in sizes.items())
    return Table(Domain(tuple(attributes)), np.array(codes, dtype=np.int64))


def test_a_table_against_itself(small_table):
    """The areas: about 750 rows of each table, so that three standard deviations are 0.09."""
    value, bootstrap = whole(quality(small_table, small_table, "grade"))
    assert set(value) == set(SCORES) - {"two_way_measured", "two_way_unmeasured", "rare_levels_kept"}
    for name, score in value.items():
        best = SCORES[name].best
        if name.startswith("auc"):
            assert score == pytest.approx(0.5, abs=1e-9), "copies of a row are on one side, so nothing is known of them"
            assert bootstrap[name] == pytest.approx(0.5, abs=0.09)
        elif not math.isnan(best):
            assert score == pytest.approx(best, abs=1e-9), name
    assert 0 < bootstrap["one_way"] < bootstrap["two_way"] < bootstrap["three_way"] < 0.1
    assert value["efficacy_linear"] == pytest.approx(bootstrap["efficacy_linear"], abs=0.02)


def test_real_rows_drawn_again_are_as_good_as_the_bootstrap(small_table):
    """Distances of two bootstraps differ by a factor of less than 2 (means of four attributes or six pairs)."""
    again = small_table.take(np.random.default_rng(7).integers(3000, size=3000))
    value, bootstrap = whole(quality(small_table, again, "grade"))
    for name in ("one_way", "two_way", "three_way", "correlation", "association"):
        assert 0.4 < value[name] / bootstrap[name] < 2.5, name
    for name in ("auc_logistic", "auc_trees", "findings", "efficacy_linear", "efficacy_trees"):
        assert value[name] == pytest.approx(bootstrap[name], abs=0.1), name
    limit = 20.5 * 0.25 * 0.5 / 6000  # N pMSE / ((1 - c)^2 c) is about chi^2 with 5 degrees: beyond it 0.1 %
    assert max(value["pmse"], bootstrap["pmse"]) < limit


def test_independent_columns_are_seen_in_pairs_and_analyses_not_in_single_attributes(small_table):
    value, bootstrap = whole(quality(small_table, shuffled(small_table), "grade"))
    assert value["one_way"] == 0
    for name in ("two_way", "two_way_max", "three_way", "correlation", "association"):
        assert value[name] > 2 * bootstrap[name], name
    assert value["auc_logistic"] == pytest.approx(0.5, abs=0.09)
    assert value["auc_trees"] > 0.7
    assert value["efficacy_linear"] < 0.05 < 0.7 < bootstrap["efficacy_linear"]
    assert value["findings_significant"] < 0.5 < bootstrap["findings_significant"]


def test_distances_and_levels_by_hand():
    real = of_codes([[0, 0, 0]] * 99 + [[1, 1, 1]] + [[0, 1, 0]] * 100, {"a": 2, "b": 2, "c": 3})
    other = of_codes([[0, 0, 0]] * 3 + [[0, 1, 2]], {"a": 2, "b": 2, "c": 3})
    found = similarity(real, other, [("a", "b")], real.domain.names)
    assert [found["one_way", (name,)] for name in "abc"] == pytest.approx([0.005, 0.255, 0.25])
    assert found["one_way", ()] == pytest.approx(0.17)
    pairs = {("a", "b"): 0.255, ("a", "c"): 0.25, ("b", "c"): 0.505}
    assert {pair: found["two_way", pair] for pair in pairs} == pytest.approx(pairs)
    assert found["two_way", ()] == pytest.approx(1.01 / 3)
    assert found["two_way_max", ()] == pytest.approx(0.505)
    assert found["two_way_measured", ()] == pytest.approx(0.255)
    assert found["two_way_unmeasured", ()] == pytest.approx(0.755 / 2)
    assert found["three_way", ()] == found["three_way_max", ()] == pytest.approx(0.505)
    assert found["levels_covered", ()] == pytest.approx((0.5 + 1 + 0.5) / 3)
    assert found["rare_levels_kept", ()] == 0  # a = 1 and c = 1, one row of 200 each
    r = np.corrcoef(real.column("a"), real.column("b"))[0, 1]
    assert found["correlation", ()] == pytest.approx(abs(r)), "the other's a does not vary: 0"


def test_a_rare_level_has_one_row_in_a_hundred_at_most():
    real = of_codes([[0]] * 960 + [[1]] * 35 + [[2]] * 5, {"a": 3})
    for present, kept in (([0, 1], 0), ([0, 2], 1)):
        other = of_codes([[code] for code in present], {"a": 3})
        assert similarity(real, other, (), ())["rare_levels_kept", ()] == kept


def test_numbers_are_correlated_by_the_values_of_their_bins(small_table):
    other = shuffled(small_table)
    found = similarity(small_table, other, (), ())
    names = ("age", "sex", "grade")
    attributes = [small_table.domain[name] for name in names]
    columns = [
        [np.array(one.values or (0, 1))[table.column(one.name)] for one in attributes] for table in (small_table, other)
    ]
    r, s = map(np.corrcoef, columns)
    assert found["correlation", ()] == pytest.approx(np.abs(r - s)[np.triu_indices(3, 1)].mean())


def test_missing_numbers_are_left_out_of_correlations_and_seen_by_classifiers():
    """y is x where it is there; of the synthetic rows none is missing."""
    domain = Domain((Attribute.discrete("x", range(4)), Attribute.discrete("y", range(4)).with_missing()))
    x = np.random.default_rng(0).integers(4, size=4_000)
    y = np.where(np.arange(4_000) % 2, x, 4)
    values, _ = whole(quality(Table(domain, np.column_stack([x, y])), Table(domain, np.column_stack([x, x]))))
    assert values["correlation"] == pytest.approx(0)
    assert values["auc_logistic"] > 0.6


def test_a_classifier_knows_no_copies_of_rows():
    """Of 40 distinct rows, each many times in both tables, whoever knew the copies would know nothing either."""
    rng = np.random.default_rng(0)
    real = of_codes(rng.integers(0, [5, 8], size=(4000, 2)), {"a": 5, "b": 8})
    value, _ = whole(quality(real, real.take(rng.integers(4000, size=4000))))
    assert value["auc_trees"] == pytest.approx(0.5, abs=0.05)


def test_a_target_that_others_determine_or_of_several_levels_has_no_findings(small_table):
    copied = Table(
        Domain((*small_table.domain.attributes, Attribute.categorical("copy", range(5)))),
        np.column_stack([small_table.codes, small_table.column("grade")]),
    )
    found = quality(copied, copied, "grade")
    assert "findings" not in {one.score for one in found.scores}
    assert found.notes == ("No findings on grade are compared: the other attributes determine it.",)
    several = quality(small_table, shuffled(small_table), "work")
    value, bootstrap = whole(several)
    assert "several levels" in several.notes[0]
    assert value["efficacy_trees"] < bootstrap["efficacy_trees"] - 0.05


def test_collinear_columns_and_levels_that_are_missing_give_no_false_findings():
    """The second attribute is a function of the first, in the real rows alone."""
    rng = np.random.default_rng(3)
    a, y = rng.integers(0, 4, 3000), rng.integers(0, 2, 3000)
    y = np.where(rng.random(3000) < 0.3, a // 2, y)
    sizes = {"a": 4, "half": 2, "y": 2}
    real = of_codes(np.column_stack([a, a // 2, y]), sizes)
    value, bootstrap = whole(quality(real, real.take(rng.integers(3000, size=3000)), "y"))
    assert value["findings"] == bootstrap["findings"] == 1
    missing = real.take(np.flatnonzero(a != 3))
    value, _ = whole(quality(real, missing, "y"))
    assert value["findings"] == pytest.approx(2 / 3), "the coefficient of level 3 is not found"


def test_rows_of_one_label_train_no_classifier(small_table):
    one = small_table.take(np.flatnonzero(small_table.column("sex") == 0))
    value, bootstrap = whole(quality(small_table, one, "sex"))
    assert math.isnan(value["efficacy_linear"]) and math.isnan(value["efficacy_trees"])
    assert not math.isnan(bootstrap["efficacy_trees"])


def test_of_many_attributes_some_have_their_triples():
    rng = np.random.default_rng(0)
    table = of_codes(rng.integers(0, 2, size=(50, 33)), {f"a{i}": 2 for i in range(33)})
    found = quality(table, table)
    assert found.notes[0] == "Triples are those of 31 of the 33 attributes, chosen at random."
    assert sum(one.score == "two_way" for one in found.scores) == 1 + 33 * 32 // 2


def test_same_seed_same_scores_and_one_attribute_is_enough(small_table):
    one = small_table.project(["work"])
    first, second = (quality(one, one.take(np.arange(100))) for _ in range(2))
    assert first == second
    assert {one.score for one in first.scores} == {
        "one_way", "levels_covered", "auc_logistic", "auc_trees", "pmse",
    }  # fmt: skip


def test_tables_over_other_domains_or_of_one_row_are_refused(small_table):
    with pytest.raises(UserError, match="same domain"):
        quality(small_table, small_table.project(["age"]))
    with pytest.raises(UserError, match="the synthetic table has 1 rows"):
        quality(small_table, small_table.take(np.arange(1)))
