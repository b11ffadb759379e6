"""A release comes back from its parts as it was, and holds neither n nor a true value."""

import json
import math

import numpy as np

from dpbench.data.encode import Design, pairs
from dpbench.data.table import Table
from dpbench.mechanisms.exact import exact
from dpbench.mechanisms.release import Release
from dpbench.mechanisms.ssp import ssp
from dpbench.privacy.budget import Budget, Event, Ledger


def round_trip(release: Release) -> Release:
    data, arrays = release.to_parts()
    return Release.from_parts(json.loads(json.dumps(data, allow_nan=False)), arrays)


def test_statistics_come_back(small_table, small_domain):
    design = Design(small_domain, "grade")
    for made in (
        ssp(small_table, Budget(1.0), np.random.default_rng(0), design=design),
        exact(small_table, Budget(math.inf), np.random.default_rng(0), design=design),
    ):
        back = round_trip(made)
        assert back.offers == ("statistics",)
        assert np.array_equal(back.statistics.xtx, made.statistics.xtx)
        assert back.statistics.xtx_sd == made.statistics.xtx_sd
        assert back.budget == made.budget
        assert back.domain == made.domain
        assert back.ledger.events == made.ledger.events


def test_marginals_and_rows_come_back(small_table, small_domain):
    marginals = {clique: small_table.marginal(clique) for clique in pairs(small_domain)}
    rows = Table(small_domain, small_table.codes[:10])
    ledger = Ledger([Event("gaussian", "x", 1.0, 2.0)])
    made = Release(small_domain, Budget(1.0), ledger, marginals=marginals, rows=rows, diagnostics={"rounds": [1]})
    back = round_trip(made)
    assert back.offers == ("marginals", "rows")
    assert list(back.marginals) == list(marginals)
    assert all(np.array_equal(back.marginals[clique], table) for clique, table in marginals.items())
    assert np.array_equal(back.rows.codes, rows.codes)
    assert back.diagnostics == {"rounds": [1]}
