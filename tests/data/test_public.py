"""Public data over a private domain: what fits, what is refused, and rows that are in both."""

import numpy as np
import pytest

from dpbench.config import compose
from dpbench.data.domain import Attribute, Domain
from dpbench.data.public import public_domain, public_part, shared_rows
from dpbench.data.table import Table
from dpbench.errors import UserError

AGE, SEX = Attribute.binned("age", 0, 90, 9), Attribute.categorical("sex", ["f", "m"])
JOB = Attribute.categorical("job", ["a", "b", "c"])
PRIVATE = Domain((AGE, SEX, JOB))


def test_rows_come_in_the_order_of_the_private_attributes_that_they_have():
    public = Table(Domain((JOB, AGE)), np.array([[2, 0], [1, 8]]), {"age": np.array([5.0, 85.0])})
    part = public_part(PRIVATE, public)
    assert part.domain.names == ("age", "job")
    assert part.codes.tolist() == [[0, 2], [8, 1]] and part.numbers["age"].tolist() == [5, 85]


@pytest.mark.parametrize(
    ("public", "message"),
    [
        (
            [Attribute.categorical("pet", ["cat"])],
            "none of the attributes of the private ones, age, sex, job; .* pet",
        ),
        ([SEX, Attribute.categorical("pet", ["cat"])], r"lack: pet; .* dataset\.public_data\.drop=\[pet\]"),
        ([Attribute.categorical("sex", ["f", "m", "x"])], "'sex' of the public data .*: only they have x;"),
        ([Attribute.categorical("job", ["a"])], "'job' of the public data .*: they lack b, c;"),
        ([Attribute.categorical("sex", ["m", "f"])], "its levels are in another order"),
        ([Attribute.binned("age", 0, 90, 10)], "10 bins or values instead of 9 bins or values"),
        ([Attribute.binned("age", 0, 99, 9)], "its bins or bounds differ"),
        ([Attribute.categorical("age", range(9))], "9 levels instead of 9 bins or values"),
    ],
)
def test_other_attributes_and_levels_are_refused(public, message):
    with pytest.raises(UserError, match=message):
        public_domain(PRIVATE, Domain(tuple(public)))


def test_rows_that_are_in_both_are_found_and_reported():
    """By hand: of three public rows two equal a private one in age and job; of four private rows two are equal."""
    private = Table(PRIVATE, np.array([[1, 0, 2], [1, 1, 2], [3, 0, 0], [4, 0, 0]]))
    public = Table(Domain((AGE, JOB)), np.array([[1, 2], [4, 0], [4, 1]]))
    expected = "public data: 2 of 3 rows equal a private row in all 2 attributes; 2 of 4 private rows equal another one"
    assert shared_rows(private, public, counted=True) == (expected,)
    # of private rows it is not reported whether there are any: that would tell of a record
    others = Table(private.domain, 0 * private.codes)
    assert shared_rows(private, public, counted=False) == shared_rows(others, public, counted=False) != ()
    assert shared_rows(private, public.take(np.array([2])), counted=True) == ()
    assert shared_rows(private, public.take(np.array([], dtype=int)), counted=True) == ()


# --- as a data set names them ---------------------------------------------------------------------------------------

PAIR = ("dataset=adult_queries", "mechanism=[pate]", "model=[released_coefficients]", "metric=[accuracy]")


def test_a_data_set_names_its_public_data():
    made = compose([*PAIR, "+dataset@dataset.public_data=adult_queries_public", "sample.test_rows=10"])
    assert made.dataset["public_data"]["part"] == "public" and made.dataset["part"] == "private"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["+dataset@dataset.public_data=adult_queries"], "adult_queries reads the same rows as dataset=adult_queries"),
        (["+dataset@dataset.public_data=adult_queries_public", "sample.public_rows=10"], "not both"),
        (["+dataset@dataset.public_data=adult_queries_public", "dataset.public_data.public=false"], "are not public"),
        (["+dataset@dataset.public_data=adult_queries_public", "dataset.public_data.drop=[]"], "drop=.education,age."),
        (["+dataset@dataset.public_data=adult_star"], "attribute.*age, fnlwgt; leave them out"),
        (["+dataset.public_data=adult_queries_public"], "dataset.public_data must be mapping or null"),
    ],
)
def test_public_data_that_cannot_be_used(settings, message):
    with pytest.raises(UserError, match=message):
        compose([*PAIR, "sample.test_rows=10", *settings])
