"""Workloads, their closure and weights, by hand."""

import pytest

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


@pytest.mark.parametrize("workload", [0, 5, [], [[]], [["height"]]])
def test_a_workload_that_is_none_is_refused(small_domain, workload):
    with pytest.raises(UserError):
        cliques_of(small_domain, workload)
