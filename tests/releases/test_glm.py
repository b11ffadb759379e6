"""The statistics of generalised linear models as a release: rows in the ball, and what is refused."""

import numpy as np
import pytest

from dpbench.data.domain import Attribute, Domain
from dpbench.data.encode import Design
from dpbench.data.table import Table
from dpbench.errors import ContractError
from dpbench.inference.glm_statistics import sum_statistics
from dpbench.releases.offers import GlmStatistics, bounded_rows

DOMAIN = Domain((Attribute.binned("x", -1, 1, 4), Attribute.binned("z", -1, 1, 4), Attribute.discrete("y", range(10))))
DESIGN = Design(DOMAIN, "y", intercept=False, scaled=False, exact=True)
X, Y = np.array([[0.3, 0.4], [0.6, -0.8]]), np.array([3.0, 8.0])
CODES = np.column_stack([*(DOMAIN[name].code(column) for name, column in zip("xz", X.T, strict=True)), [3, 8]])
TABLE = Table(DOMAIN, CODES, {"x": X[:, 0], "z": X[:, 1], "y": Y})


def statistics(values, **change):
    settings = {"rows": 2.0, "rows_sd": 0.0, "radius": 0.5, "largest_count": 5.0, "outside": "scale"}
    return GlmStatistics("poisson", values, np.ones(len(values)), **{**settings, **change})


@pytest.mark.parametrize(
    ("outside", "kept", "counts"), [("scale", [[0.3, 0.4], [0.3, -0.4]], [3, 5]), ("drop", [[0.3, 0.4]], [3])]
)
def test_rows_outside_the_ball_are_scaled_or_dropped_and_counts_clipped(outside, kept, counts):
    found, y = bounded_rows(TABLE, DESIGN, "poisson", 0.5, 5.0, outside)
    np.testing.assert_allclose(found, kept)
    assert y.tolist() == counts
    exact = statistics(np.zeros(10), outside=outside).exact(TABLE, DESIGN)
    np.testing.assert_allclose(exact.values, sum_statistics(np.array(kept), np.array(counts, dtype=float), "poisson"))
    assert exact.rows == len(kept) and not exact.covariance.any()


def test_statistics_of_no_number_of_features_are_refused():
    assert statistics(np.zeros(10)).features == 2
    statistics(np.zeros(10)).check(DOMAIN)
    with pytest.raises(ContractError, match="the statistics of the release"):
        statistics(np.zeros(11)).check(DOMAIN)
