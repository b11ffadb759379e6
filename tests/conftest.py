"""Small tables that any test may ask for."""

import numpy as np
import pytest

from dpbench.data.domain import Attribute, Domain
from dpbench.data.table import Table


@pytest.fixture
def small_domain() -> Domain:
    return Domain(
        (
            Attribute.binned("age", 16, 100, 6, unit="years"),
            Attribute.categorical("work", ["private", "public", "none"]),
            Attribute.categorical("sex", ["f", "m"]),
            Attribute.discrete("grade", range(1, 6), unit="grades"),
        )
    )


@pytest.fixture
def small_table(small_domain: Domain) -> Table:
    """3,000 rows whose grade depends on the other attributes."""
    rng = np.random.default_rng(1)
    n = 3000
    age, work, sex = rng.integers(0, 6, n), rng.integers(0, 3, n), rng.integers(0, 2, n)
    grade = np.clip(np.round(0.5 * age + work - 0.5 * sex + rng.normal(0, 0.7, n)), 0, 4)
    return Table(small_domain, np.stack([age, work, sex, grade], axis=1).astype(np.int64))
