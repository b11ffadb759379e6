"""Frames checked against their domain and coded."""

import numpy as np
import pandas as pd
import pytest

from dpbench.data.coding import code_counted, code_frame, decoded
from dpbench.data.domain import Attribute, Domain
from dpbench.errors import UserError

DOMAIN = Domain(
    (
        Attribute.binned("age", 16, 100, 4),
        Attribute.categorical("sex", ["F", "M"]),
        Attribute.discrete("rank", [1, 2, 4]),
    )
)


def frame(**columns):
    return pd.DataFrame({"age": [20, 40, 99], "sex": ["F", "M", "F"], "rank": [1, 4, 2], **columns})


def test_codes_and_numbers_by_name_not_by_position():
    table = code_frame(frame()[["rank", "sex", "age"]], DOMAIN)
    assert table.domain == DOMAIN
    assert table.codes.tolist() == [[0, 0, 0], [1, 1, 2], [3, 0, 1]]
    assert table.codes.dtype == np.int64
    assert table.numbers["age"].tolist() == [20, 40, 99]
    assert table.numbers["rank"].tolist() == [1, 4, 2]
    assert set(table.numbers) == {"age", "rank"}


def test_text_is_the_same_as_numbers():
    text = frame(age=[" 20", "4e1", "99.0 "], sex=["F ", " M", "F"], rank=["1", "4.0", "2"])
    one, two = code_frame(frame(), DOMAIN), code_frame(text, DOMAIN)
    assert np.array_equal(one.codes, two.codes)
    assert all(np.array_equal(one.numbers[name], two.numbers[name]) for name in one.numbers)


def test_a_bin_holds_its_lower_edge_and_the_last_one_both():
    domain = Domain((Attribute.from_edges("x", [0, 1, 5, 10]),))
    values = [0, 0.999, 1, 4.999, 5, 9.999, 10]
    assert code_frame(pd.DataFrame({"x": values}), domain).codes[:, 0].tolist() == [0, 0, 1, 1, 2, 2, 2]


@pytest.mark.parametrize("levels", [["3", "5"], [3, 5], [3.0, 5.0]])
@pytest.mark.parametrize("values", [["3", "5"], [3, 5], [3.0, 5.0], ["3.0", "5."], pd.array([3, 5], dtype="Int64")])
def test_whole_numbers_as_levels(levels, values):
    domain = Domain((Attribute.categorical("c", levels),))
    assert code_frame(pd.DataFrame({"c": values}), domain).codes[:, 0].tolist() == [0, 1]


def test_levels_that_look_alike_stay_apart():
    domain = Domain((Attribute.categorical("c", ["3", "03", "1.5", "-3"]),))
    values = pd.DataFrame({"c": ["03", "3", "1.5", "-3.0"]})
    assert code_frame(values, domain).codes[:, 0].tolist() == [1, 0, 2, 3]
    with pytest.raises(UserError):
        code_frame(pd.DataFrame({"c": ["1"]}), domain)


def test_an_empty_value_may_be_a_declared_level():
    domain = Domain((Attribute.categorical("c", ["a", ""]),))
    assert code_frame(pd.DataFrame({"c": ["", "a", None]}), domain).codes[:, 0].tolist() == [1, 0, 1]


def test_missing_column():
    with pytest.raises(UserError, match=r"my.csv: declared but missing: sex\. Columns found: age, rank"):
        code_frame(frame().drop(columns="sex"), DOMAIN, where="my.csv")


def test_undeclared_column():
    more = frame(height=[1, 2, 3])
    with pytest.raises(UserError, match=r"not declared: height.*dataset\.drop=\[height\]"):
        code_frame(more, DOMAIN)
    assert code_frame(more, DOMAIN, ignore=["height"]).domain == DOMAIN
    with pytest.raises(UserError, match="did you mean 'height'"):
        code_frame(more, DOMAIN, ignore=["height", "heigth"])


def test_column_twice():
    twice = pd.concat([frame(), frame()[["sex"]]], axis=1)
    with pytest.raises(UserError, match="occurs twice: sex"):
        code_frame(twice, DOMAIN)


@pytest.mark.parametrize(
    ("column", "values", "text"),
    [
        ("age", [20, 101, 102], r"attribute 'age', row 2: '101' is not a number in \[16, 100\] \(2 such values of 3\)"),
        ("age", [20, 40, 15.9], r"'age', row 3: '15\.9'.*\(1 such value of 3\)"),
        ("age", [20, float("inf"), 30], r"'age', row 2: 'inf'"),
        ("age", [20, float("nan"), 30], r"'age', row 2: an empty value"),
        ("age", ["20", "", "30"], r"'age', row 2: an empty value"),
        ("age", ["20", "30", "old"], r"'age', row 3: 'old'"),
        ("sex", ["F", "X", "M"], r"'sex', row 2: 'X' is not one of its levels F, M"),
        ("sex", ["F", None, "M"], r"'sex', row 2: an empty value"),
        ("sex", ["F", "M", " "], r"'sex', row 3: an empty value"),
        ("rank", [1, 3, 2], r"'rank', row 2: '3' is not one of its values 1, 2, 4"),
        ("rank", [1, 4, 2.2], r"'rank', row 3: '2\.2'"),
    ],
)
def test_value_outside_its_domain(column, values, text):
    with pytest.raises(UserError, match=text) as caught:
        code_frame(frame(**{column: values}), DOMAIN)
    assert "dataset.outside=drop" in str(caught.value)
    assert "dataset.outside=clip" in str(caught.value)


def test_drop_leaves_out_the_rows_at_fault():
    wrong = pd.concat([frame(), frame(age=[101, 40, "old"], sex=["F", "X", "X"]), frame(rank=[1, 3, 2])])
    result = code_counted(wrong, DOMAIN, "drop")
    assert result.dropped == 4
    assert result.clipped == {}
    assert result.table.codes.tolist() == [[0, 0, 0], [1, 1, 2], [3, 0, 1], [0, 0, 0], [3, 0, 1]]
    assert result.table.numbers["age"].tolist() == [20, 40, 99, 20, 99]


def test_every_faulty_attribute_is_reported_at_once():
    with pytest.raises(UserError) as caught:
        code_frame(frame(age=[1, 2, 3], sex=["x", "F", "M"]), DOMAIN)
    assert "'age', row 1" in str(caught.value)
    assert "'sex', row 1" in str(caught.value)


def test_clip_moves_numbers_to_the_nearest_allowed():
    result = code_counted(frame(age=[-5, 40, float("inf")], rank=[0, 2.9, 3.1]), DOMAIN, "clip")
    assert result.table.numbers["age"].tolist() == [16, 40, 100]
    assert result.table.column("age").tolist() == [0, 1, 3]
    assert result.table.numbers["rank"].tolist() == [1, 2, 4]
    assert result.clipped == {"age": 2, "rank": 3}
    assert result.dropped == 0


@pytest.mark.parametrize("columns", [{"sex": ["F", "X", "M"]}, {"age": [20, "", 30]}, {"age": ["20", "old", "30"]}])
def test_clip_has_no_nearest_level(columns):
    with pytest.raises(UserError, match=r"outside=drop; dataset\.outside=clip has no nearest value"):
        code_frame(frame(**columns), DOMAIN, "clip")


def test_no_row_left():
    with pytest.raises(UserError, match="no row left of 3"):
        code_frame(frame(age=[1, 2, 3]), DOMAIN, "drop")
    with pytest.raises(UserError, match="no row"):
        code_frame(frame().iloc[:0], DOMAIN)


def test_unknown_option():
    with pytest.raises(UserError, match=r"unknown dataset\.outside 'clib'; did you mean 'clip'"):
        code_frame(frame(), DOMAIN, "clib")


# --- missing values --------------------------------------------------------------------------------------------------

MAY_MISS = Domain(tuple(attribute.with_missing() for attribute in DOMAIN.attributes))


@pytest.mark.parametrize("absent", ["", "NA", " n/a ", "NaN", "null", None, float("nan"), pd.NA])
def test_a_missing_value_is_a_level_or_a_bin_of_its_own(absent):
    column = [absent, absent, absent]
    table = code_frame(frame(age=[20, absent, 99], sex=["F", absent, "M"], rank=column), MAY_MISS)
    assert table.codes.tolist() == [[0, 0, 3], [4, 2, 3], [3, 1, 3]]
    assert np.array_equal(table.numbers["age"], [20, np.nan, 99], equal_nan=True)
    back = decoded(table)
    assert back["sex"].tolist() == ["F", "", "M"] and back["rank"].isna().all()
    again = code_frame(back, MAY_MISS)
    assert np.array_equal(again.codes, table.codes)


def test_text_for_a_number_is_no_missing_one_and_clip_keeps_what_is_missing():
    with pytest.raises(UserError, match="'old' is not a number in"):
        code_frame(frame(age=["20", "old", "30"]), MAY_MISS)
    coded = code_counted(frame(age=["200", "", "30"]), MAY_MISS, "clip")
    assert coded.table.column("age").tolist() == [3, 4, 0] and coded.clipped == {"age": 1}
    assert code_counted(frame(age=["200", "", "30"]), MAY_MISS, "drop").dropped == 1


def test_a_declared_level_that_looks_missing_is_that_level():
    domain = Domain((Attribute.categorical("country", ["DE", "NA"]).with_missing(),))
    assert code_frame(pd.DataFrame({"country": ["NA", "DE", ""]}), domain).codes.ravel().tolist() == [1, 0, 2]


def test_without_missing_declared_an_empty_cell_is_refused_as_before():
    with pytest.raises(UserError, match="an empty value is not"):
        code_frame(frame(age=[20, None, 30]), DOMAIN)
    assert all("missing" not in attribute.to_dict() for attribute in DOMAIN.attributes)
    assert Domain.from_list(MAY_MISS.to_list()) == MAY_MISS
