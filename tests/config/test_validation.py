"""What must hold of an experiment: each rule is refused with what is allowed."""

import pytest

from dpbench.config import compose
from dpbench.errors import UserError


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["model=[linear_rows]", "mechanism=[ssp]"], "given .linear_rows. reads what ssp .* do: .*linear_statistics"),
        (["mechanism=[ssp]", "calibration=[authors]"], "mechanism ssp has no calibration authors; it has tight, paper"),
        (["mechanism=[dpctgan]", "relation=replace"], "dpctgan is private under add_remove, and not proven .* aim"),
        (["sample.protocol=authors"], "exact would release them as they are: .* sample.protocol=split"),
        (["sample.test_rows=0"], "leaves mse, mse_unit, r2 without test rows"),
        (["calibration=[tight,tight]"], "calibration must list at least one value, and none twice"),
    ],
)
def test_what_is_refused_says_what_is_allowed(settings, message):
    with pytest.raises(UserError, match=message):
        compose(settings)


def test_what_is_allowed_composes():
    assert compose(["mechanism=[ssp]", "calibration=[authors,tight]"]).calibrations == ("authors", "tight")
    assert compose(["mechanism=[aim]", "relation=replace"]).relation == "replace"
    assert compose(["mechanism=[adassp]", "sample.protocol=authors"]).sample.protocol == "authors"
