"""Declarations: attributes and domains."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpbench.data.domain import Attribute, Domain
from dpbench.errors import UserError

increasing = st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=6, unique_by=lambda x: round(x, 3)).map(sorted)


def test_bins_are_of_equal_width_and_stood_for_by_their_middle():
    age = Attribute.binned("age", 16, 100, 4, "years")
    assert age.edges == (16, 37, 58, 79, 100)
    assert age.values == (26.5, 47.5, 68.5, 89.5)
    assert age.bounds == (16, 100)
    assert (age.size, age.numeric, age.unit) == (4, True, "years")


def test_discrete_values_stand_for_themselves():
    grade = Attribute.discrete("grade", [1, 2, 4])
    assert grade.values == (1, 2, 4)
    assert grade.bounds == (1, 4)
    assert grade.edges == (0.5, 1.5, 3, 5)


def test_levels_keep_their_order():
    sex = Attribute.categorical("sex", ["M", "F", 3])
    assert sex.levels == ("M", "F", "3")
    assert (sex.size, sex.numeric, sex.bounds) == (3, False, None)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Attribute("x"),
        lambda: Attribute("x", levels=("a",), edges=(0, 1), values=(0.5,), bounds=(0, 1)),
        lambda: Attribute("x", edges=(0, 1), values=(0.5,)),
        lambda: Attribute("x", edges=(0, 1), values=(2,), bounds=(0, 1)),
        lambda: Attribute("x", edges=(0, 1), values=(0.5, 0.6), bounds=(0, 1)),
        lambda: Attribute("x", edges=(0, 1), values=(0.5,), bounds=(-1, 1)),
        lambda: Attribute("x", edges=(0, 1), values=(0.5,), bounds=(1, 0)),
        lambda: Attribute("x", edges=(0, math.inf), values=(0.5,), bounds=(0, 1)),
        lambda: Attribute.categorical("x", ["a", "b", "a"]),
        lambda: Attribute.categorical("x", [1, "1"]),
        lambda: Attribute.categorical("x", []),
        lambda: Attribute.binned("x", 1, 1, 3),
        lambda: Attribute.binned("x", 2, 1, 3),
        lambda: Attribute.binned("x", 0, math.inf, 3),
        lambda: Attribute.binned("x", math.nan, 1, 3),
        lambda: Attribute.binned("x", 0, 1, 0),
        lambda: Attribute.from_edges("x", [0, 2, 1]),
        lambda: Attribute.from_edges("x", [0, 1, 1]),
        lambda: Attribute.from_edges("x", [1]),
        lambda: Attribute.from_edges("x", []),
        lambda: Attribute.discrete("x", [1]),
        lambda: Attribute.discrete("x", [1, 1]),
        lambda: Attribute.discrete("x", [2, 1]),
    ],
)
def test_a_wrong_declaration_names_the_attribute(make):
    with pytest.raises(UserError, match="attribute 'x'"):
        make()


@given(increasing)
def test_each_value_lies_in_its_bin(points):
    for attribute in (Attribute.from_edges("x", points), Attribute.discrete("x", points)):
        bins = zip(attribute.edges[:-1], attribute.values, attribute.edges[1:], strict=True)
        assert all(low <= value <= high for low, value, high in bins)


@given(increasing, st.lists(st.text(max_size=4), min_size=1, unique=True))
def test_a_domain_survives_json(points, levels):
    domain = Domain(
        (
            Attribute.from_edges("a", points, "m"),
            Attribute.discrete("b", points),
            Attribute.categorical("c", levels),
            Attribute("d", edges=(-1, 0, 9), values=(-0.9, 8), bounds=(-0.5, 5)),
        )
    )
    assert Domain.from_list(json.loads(json.dumps(domain.to_list()))) == domain


def test_domain():
    domain = Domain(tuple(Attribute.categorical(name, range(size)) for name, size in {"a": 2, "b": 3, "c": 4}.items()))
    assert domain.names == ("a", "b", "c")
    assert domain.sizes == {"a": 2, "b": 3, "c": 4}
    assert domain.shape(("c", "a")) == (4, 2)
    assert domain.shape(()) == ()
    assert domain["b"].size == 3
    assert domain.index("c") == 2
    assert domain.project(["c", "a"]).names == ("a", "c")
    for use in (lambda: domain["bb"], lambda: domain.project(["a", "bb"])):
        with pytest.raises(UserError, match="unknown attribute 'bb'; did you mean 'b'"):
            use()
    with pytest.raises(UserError, match="at least one"):
        Domain(())
    with pytest.raises(UserError, match="twice"):
        Domain((domain["a"], domain["a"]))
