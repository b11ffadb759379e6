"""The cost on the very votes is read from where PATE puts it, and is NaN for other releases."""

import math

import numpy as np

from dpbench.data.domain import Attribute, Domain
from dpbench.data.encode import Design
from dpbench.data.table import Split, Table
from dpbench.mechanisms.pate import pate
from dpbench.metrics.evaluation import Evaluation, Reference
from dpbench.metrics.votes import data_dependent_epsilon
from dpbench.models.released import released_coefficients
from dpbench.privacy.budget import Budget


def test_it_is_below_the_budget_where_teachers_agree_and_nan_where_it_was_not_asked_for():
    domain = Domain((Attribute.discrete("x", range(10)), Attribute.categorical("y", ["no", "yes"])))
    x = np.random.default_rng(0).integers(0, 10, 2000)
    table = Table(domain, np.stack([x, x >= 5], axis=1).astype(np.int64))
    design, budget = Design(domain, "y"), Budget(1.0, relation="replace")
    settings = {"design": design, "public": table.take(np.arange(20)), "teachers": 100, "expected_rows": 2000}
    values = []
    for asked in (True, False):
        release = pate(table, budget, np.random.default_rng(1), data_dependent=asked, **settings)
        fit = released_coefficients(release, design=design)
        values.append(data_dependent_epsilon(Evaluation(fit, release, Reference(Split(table, table), design))).value)
    assert 0 < values[0] < 0.5
    assert math.isnan(values[1])
