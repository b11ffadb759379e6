"""Workloads, their closure and weights, by hand."""

import math

import pytest

from dpbench.data.domain import Attribute, Domain
from dpbench.errors import UserError
from dpbench.mechanisms.workload import cliques_of, closure, weights


def test_all_pairs_and_listed_cliques(small_domain):
    assert len(cliques_of(small_domain, 2)) == 6
    assert cliques_of(small_domain, [["grade", "age"], ["sex"]]) == (("age", "grade"), ("sex",))


def test_closure_and_weights_by_hand(small_domain):
    workload = (("age", "work"), ("work", "sex"))
    assert closure(workload) == (("age",), ("work",), ("sex",), ("age", "work"), ("work", "sex"))
    assert weights(closure(workload), workload) == {
        ("age",): 1,
        ("work",): 2,
        ("sex",): 1,
        ("age", "work"): 3,
        ("work", "sex"): 3,
    }


def test_marginals_of_a_degree(small_domain):
    """The sizes are 6, 3, 2 and 5."""
    assert cliques_of(small_domain, {"degree": 2}) == cliques_of(small_domain, 2)
    assert [len(r) for r in cliques_of(small_domain, {"degree": 4, "up_to": True})] == 4 * [1] + 6 * [2] + 4 * [3] + [4]
    few = cliques_of(small_domain, {"degree": 3, "max_cells": 60})
    assert few == (("age", "work", "sex"), ("age", "sex", "grade"), ("work", "sex", "grade"))
    more = cliques_of(small_domain, {"degree": 3, "up_to": True, "max_cells": 6})
    assert more == (("age",), ("work",), ("sex",), ("grade",), ("work", "sex"))


def test_a_random_workload_is_that_of_its_seed():
    """ADULT* has 64 of the 278 marginals of three attributes with at most n cells, and 458,996 queries."""
    sizes = {"age": 85, "workclass": 9, "fnlwgt": 100, "education-num": 16, "marital-status": 7, "occupation": 15}
    sizes |= {"relationship": 6, "race": 5, "sex": 2, "capital-gain": 100, "capital-loss": 100, "hours-per-week": 99}
    sizes |= {"native-country": 42, "income>50K": 2}
    domain = Domain(tuple(Attribute.categorical(name, range(size)) for name, size in sizes.items()))
    settings = {"degree": 3, "max_cells": 48842}
    drawn = cliques_of(domain, {**settings, "marginals": 64})
    assert len(cliques_of(domain, settings)) == 278
    assert len(drawn) == 64 and sum(math.prod(domain.shape(r)) for r in drawn) == 458_996
    assert drawn == cliques_of(domain, {**settings, "marginals": 64, "seed": 0})
    assert drawn != cliques_of(domain, {**settings, "marginals": 64, "seed": 1})


@pytest.mark.parametrize(
    ("workload", "message"),
    [
        ({"degree": 3, "marginals": 5}, "marginals=5: there are 4 such"),
        ({"degree": 3, "marginals": 0}, "at least 1, not 0"),
        ({"degree": 3, "marginals": 2, "seed": -1}, "at least 0, not -1"),
        ({"degree": 5}, "k between 1 and 4"),
        ({"degree": 5, "up_to": True}, "k between 1 and 4"),
        ({"degree": 4, "max_cells": 100}, "max_cells=100: the smallest of the marginals has 180 cells"),
        ({"degree": 4, "max_cell": 100}, "unknown setting of the workload 'max_cell'.*max_cells"),
        ({"max_cells": 100}, "needs a degree"),
        ({"degree": 2, "up_to": 1}, "true or false"),
        ({"degree": 2, "max_cells": 0}, "at least 1, not 0"),
    ],
)
def test_a_degree_that_cannot_be_is_refused(small_domain, workload, message):
    with pytest.raises(UserError, match=message):
        cliques_of(small_domain, workload)


@pytest.mark.parametrize("workload", [0, 5, [], [[]], [["height"]]])
def test_a_workload_that_is_none_is_refused(small_domain, workload):
    with pytest.raises(UserError):
        cliques_of(small_domain, workload)
