"""Encodings: second moments from marginals, and the norms that sensitivities rest on, against brute force."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpbench.data.domain import Attribute, Domain
from dpbench.data.encode import Design, marginal, pairs, second_moments
from dpbench.data.table import Table
from dpbench.errors import UserError


@st.composite
def numeric(draw, name, least=1):
    """Bounds off zero, values off the middles of their bins, bounds narrower than the bins."""
    edges = sorted(draw(st.lists(st.integers(-20, 20), min_size=least + 1, max_size=5, unique=True)))
    place = draw(st.lists(st.floats(0, 1), min_size=len(edges) - 1, max_size=len(edges) - 1))
    values = tuple(a + p * (b - a) for a, b, p in zip(edges[:-1], edges[1:], place, strict=True))
    cut = draw(st.sampled_from([0.0, 0.1, 0.4])) * (edges[-1] - edges[0])
    return Attribute(name, edges=tuple(edges), values=values, bounds=(edges[0] + cut, edges[-1] - cut))


@st.composite
def designs(draw):
    size = draw(st.integers(1, 3))
    features = [
        draw(
            st.one_of(
                numeric(f"x{i}"), st.builds(Attribute.categorical, st.just(f"x{i}"), st.integers(1, 3).map(range))
            )
        )
        for i in range(size)
    ]
    features = [attribute.with_missing() if draw(st.booleans()) else attribute for attribute in features]
    two_levels = st.just(Attribute.categorical("y", ["no", "yes"]))
    features.insert(draw(st.integers(0, size)), draw(st.one_of(numeric("y", least=2), two_levels)))
    encoding = draw(st.sampled_from(["reduced_one_hot", "one_hot", "ordinal"]))
    return Design(Domain(tuple(features)), "y", intercept=draw(st.booleans()), categorical=encoding)


def whole_domain(domain):
    """A table with every possible row once."""
    return Table(domain, np.array(list(product(*(range(size) for size in domain.sizes.values())))))


def by_hand(design, table):
    """X and y, one entry at a time, from the names of the columns alone."""

    def scaled(attribute, code):
        lower, upper = attribute.bounds
        return (attribute.values[code] - (lower + upper) / 2) / ((upper - lower) / 2)

    def entry(row, column):
        if column == "(intercept)":
            return 1.0
        name, _, level = column.partition("=")
        code, attribute = row[design.domain.index(name)], design.domain[name]
        if level == "(missing)":
            return float(code == attribute.size - 1)
        if attribute.numeric:
            return 0.0 if attribute.missing and code == attribute.size - 1 else scaled(attribute, code)
        return float(attribute.levels[code] == level) if level else float(code)

    X = np.array([[entry(row, column) for column in design.columns] for row in table.codes])
    codes, target = table.column(design.target), design.domain[design.target]
    y = np.array([scaled(target, code) if target.numeric else {0: -1.0, 1: 1.0}[code] for code in codes])
    return X.reshape(len(table), len(design.columns)), y


@given(designs(), st.integers(0, 1000), st.integers(0, 30))
def test_moments_from_pairwise_marginals_equal_the_product(design, seed, n):
    sizes = list(design.domain.sizes.values())
    table = Table(design.domain, np.random.default_rng(seed).integers(0, sizes, size=(n, len(sizes))))
    X, y = by_hand(design, table)
    encoded = design.encode(table)
    np.testing.assert_allclose(encoded[0], X, atol=1e-12)
    np.testing.assert_allclose(encoded[1], y, atol=1e-12)
    for moments in (
        design.moments({pair: table.marginal(pair) for pair in pairs(design.domain)}),
        design.moments({pair[::-1]: table.marginal(pair[::-1]) for pair in pairs(design.domain)}),
        second_moments(*encoded),
    ):
        np.testing.assert_allclose(moments[0], X.T @ X, atol=1e-9)
        np.testing.assert_allclose(moments[1], X.T @ y, atol=1e-9)


@given(designs())
def test_bounds_are_the_largest_over_the_domain(design):
    X, y = by_hand(design, whole_domain(design.domain))
    assert design.x_bound == pytest.approx(np.linalg.norm(X, axis=1).max(), abs=1e-9)
    assert design.y_bound == pytest.approx(np.abs(y).max(), abs=1e-9)


def test_bounds_by_hand():
    # a: -1 and 0.2 (its bounds are 0 and 5); b: one of two indicators; the intercept.
    a = Attribute("a", edges=(0, 1, 5), values=(0, 3), bounds=(0, 5))
    domain = Domain((a, Attribute.categorical("b", "pqr"), Attribute.discrete("y", [2, 4, 10], "m")))
    design = Design(domain, "y")
    assert design.columns == ("a", "b=q", "b=r", "(intercept)")
    np.testing.assert_allclose(design.matrices["a"], [[-1, 0.2]])
    assert design.x_bound == pytest.approx(np.sqrt(3))
    assert design.peaks.tolist() == [1, 1, 1]
    assert [corner.round(12).tolist() for corner in design.corners] == [[[-1, 0.2]], [[0, 1, 0], [0, 0, 1]], [[1]]]
    assert design.y_bound == 1
    assert design.target_scale == 4


def test_columns():
    domain = Domain(
        (
            Attribute.categorical("c", ["p", "q", "r"]),
            Attribute.binned("y", 0, 1, 2),
            Attribute.categorical("one", ["only"]),
            Attribute.binned("n", 0, 1, 2),
        )
    )
    assert Design(domain, "y").columns == ("c=q", "c=r", "n", "(intercept)")
    full = Design(domain, "y", intercept=False, categorical="one_hot")
    assert full.columns == ("c=p", "c=q", "c=r", "one=only", "n")
    assert Design(domain, "y", categorical="ordinal").columns == ("c", "one", "n", "(intercept)")
    assert Design(domain, "n").columns == ("c=q", "c=r", "y", "(intercept)")


def test_a_missing_number_has_an_indicator_and_is_no_target():
    number, level = Attribute.binned("a", 0, 4, 2).with_missing(), Attribute.categorical("b", "pq").with_missing()
    domain = Domain((number, level, Attribute.binned("y", 0, 1, 2)))
    design = Design(domain, "y", exact=True)
    assert design.columns == ("a", "a=(missing)", "b=q", "b=(missing)", "(intercept)")
    table = Table(domain, np.array([[0, 0, 0], [2, 2, 1]]), {"a": np.array([0.5, np.nan])})
    assert design.encode(table)[0].tolist() == [[-0.75, 0, 0, 0, 1], [0, 1, 0, 1, 1]]
    with pytest.raises(UserError, match=r"Missing values cannot be predicted.*outside=drop"):
        Design(domain, "a")


def test_target_in_its_own_unit():
    target = Attribute.binned("y", 10, 30, 4)
    design = Design(Domain((target, Attribute.categorical("c", "ab"))), "y")
    _, y = design.encode(whole_domain(design.domain))
    assert sorted(set(20 + design.target_scale * y)) == list(target.values)


def test_a_target_of_two_levels():
    domain = Domain((Attribute.categorical("c", "ab"), Attribute.categorical("d", "pq")))
    design = Design(domain, "c", categorical="one_hot")
    assert design.columns == ("d=p", "d=q", "(intercept)")  # a feature of two levels stays one-hot
    assert design.encode(whole_domain(domain))[1].tolist() == [-1, -1, 1, 1]
    assert (design.y_bound, design.target_scale) == (1, 1)


def test_which_targets_are_binary():
    domain = Domain(
        (
            Attribute.categorical("levels", "ab"),
            Attribute.discrete("numbers", [3, 5]),
            Attribute.binned("bins", 0, 1, 2),
            Attribute.discrete("three", [0, 1, 2]),
        )
    )
    assert [name for name in domain.names if Design(domain, name).binary] == ["levels", "numbers"]


def test_marginals_of_three_serve_as_well():
    domain = Domain(tuple(Attribute.binned(name, -1, 3, 3) for name in "aby"))
    table = Table(domain, np.random.default_rng(0).integers(0, 3, size=(20, 3)))
    triple = table.marginal(("a", "b", "y"))
    given_tables = {("a", "b", "y"): triple}
    assert all(np.array_equal(marginal(given_tables, (name,)), table.marginal((name,))) for name in domain.names)


def test_a_given_single_comes_before_the_sums():
    noisy = {("a", "b"): np.array([[1.0, 2], [3, 4]]), ("a",): np.array([5.0, 5.0])}
    assert marginal(noisy, ("a",)).tolist() == [5, 5]
    assert marginal(noisy, ("b",)).tolist() == [4, 6]


def test_what_is_missing_is_named():
    domain = Domain(tuple(Attribute.binned(name, 0, 1, 2) for name in "aby"))
    table = whole_domain(domain)
    both = {pair: table.marginal(pair) for pair in pairs(domain)}
    del both["a", "b"]
    with pytest.raises(UserError, match=r"no marginal of \(a, b\)"):
        Design(domain, "y").moments(both)
    with pytest.raises(UserError, match=r"no marginal of \(a\)"):
        Design(domain, "y").moments({("b", "y"): both["b", "y"]})


def test_bad_design():
    c, two = Attribute.categorical("c", "abc"), Attribute.categorical("two", "ab")
    one, bin_ = Attribute.categorical("one", "a"), Attribute.binned("bin", 0, 1, 1)
    domain = Domain((c, Attribute.binned("y", 0, 1, 2), two, one, bin_))
    needed = "numeric target of at least two bins or a categorical one of two levels"
    for name, has in [("c", "categorical and has 3"), ("one", "categorical and has 1"), ("bin", "numeric and has 1")]:
        with pytest.raises(UserError, match=f"{needed}; '{name}' is {has}; attributes that can be a target: y, two"):
            Design(domain, name)
    with pytest.raises(UserError, match="target: none"):
        Design(Domain((c,)), "c")
    with pytest.raises(UserError, match="unknown attribute 'z'"):
        Design(domain, "z")
    with pytest.raises(UserError, match="unknown encoding 'onehot'; did you mean 'one_hot'"):
        Design(domain, "y", categorical="onehot")


def test_an_exact_design_in_own_units_uses_the_rows_numbers_and_the_declared_bounds():
    domain = Domain(
        (Attribute.categorical("c", "pq"), Attribute.binned("a", -3, 5, 2), Attribute.binned("y", 0, 10, 5))
    )
    table = Table(domain, np.array([[1, 0, 4], [0, 1, 0]]), {"a": np.array([-2.5, 4.0]), "y": np.array([9.5, 0.5])})
    design = Design(domain, "y", intercept=False, categorical="one_hot", scaled=False, exact=True)
    X, y = design.encode(table)
    assert X.tolist() == [[0, 1, -2.5], [1, 0, 4]] and y.tolist() == [9.5, 0.5]
    assert [end.tolist() for end in design.box] == [[0, 0, -3], [1, 1, 5]]
    assert design.x_bound == pytest.approx(np.sqrt(1 + 25)) and design.y_bound == 10  # by the bounds, not the bins
    assert [corner.tolist() for corner in design.corners] == [[[1, 0], [0, 1]], [[-3, 5]]]
    without = Table(domain, table.codes)  # rows without numbers: the middles of their bins
    assert design.encode(without)[0].tolist() == [[0, 1, -1], [1, 0, 3]]
    scaled = Design(domain, "y", exact=True)
    assert scaled.encode(table)[0].tolist() == [[1, -0.875, 1], [0, 0.75, 1]] and scaled.target_scale == 5
    assert design.target_scale == 1


def test_of_several_levels_y_is_the_code_if_classes_are_asked_for():
    domain = Domain((Attribute.categorical("c", "abc"), Attribute.binned("n", 0, 1, 2)))
    rows = Table(domain, np.array([[2, 0], [0, 1], [1, 1]]))
    design = Design(domain, "c", classes=True)
    assert design.encode(rows)[1].tolist() == [2.0, 0.0, 1.0] and design.several and not design.binary
    assert not Design(domain, "n", classes=True).several
    assert Design(Domain((Attribute.categorical("c", "ab"), domain["n"])), "c", classes=True).binary
