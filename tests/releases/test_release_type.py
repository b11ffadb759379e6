"""A release comes back from its parts as it was, is held to its contract, and gives fresh rows."""

import json
import math
from dataclasses import dataclass, replace

import numpy as np
import pytest

from dpbench.data.encode import Design, pairs
from dpbench.data.table import Table
from dpbench.errors import ContractError, UserError
from dpbench.grid.tiny_tables import tiny_table
from dpbench.mechanisms.aim import aim
from dpbench.mechanisms.binagg import binagg
from dpbench.mechanisms.exact import exact, exact_table
from dpbench.mechanisms.mst import mst
from dpbench.mechanisms.mwem_pgm import mwem_pgm
from dpbench.mechanisms.ssp import ssp
from dpbench.privacy.budget import Budget
from dpbench.privacy.events import Gaussian
from dpbench.privacy.ledger import Ledger
from dpbench.releases import (
    Coefficients,
    Marginals,
    Release,
    SufficientStatistics,
    SyntheticRows,
    check_release,
)


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
        assert np.array_equal(back[SufficientStatistics].xtx, made[SufficientStatistics].xtx)
        assert back[SufficientStatistics].xtx_sd == made[SufficientStatistics].xtx_sd
        assert back.budget == made.budget
        assert back.domain == made.domain
        assert back.ledger.events == made.ledger.events


def test_marginals_and_rows_come_back(small_table, small_domain):
    marginals = {clique: small_table.marginal(clique) for clique in pairs(small_domain)}
    rows = Table(small_domain, small_table.codes[:10])
    ledger = Ledger([Gaussian("x", 1.0, 2.0)])
    made = Release(small_domain, Budget(1.0), ledger, (Marginals(marginals), SyntheticRows(rows)), {"rounds": [1]})
    back = round_trip(made)
    assert back.offers == ("marginals", "rows")
    assert list(back[Marginals].tables) == list(marginals)
    assert all(np.array_equal(back[Marginals].tables[clique], table) for clique, table in marginals.items())
    assert np.array_equal(back[SyntheticRows].table.codes, rows.codes)
    assert back.diagnostics == {"rounds": [1]}


@dataclass(frozen=True)
class Carrier(Release):
    extra: object = None


BUDGET = Budget(1.0)
STATISTICS = SufficientStatistics(np.eye(2), np.zeros(2), 1.0, 1.0)
RELEASE = Release(tiny_table().domain, BUDGET, Ledger(), (STATISTICS,))


class Extended(SufficientStatistics):
    pass


def holding(part):
    others = [] if isinstance(part, SufficientStatistics) else [STATISTICS]
    return replace(RELEASE, parts=(*others, part))


@pytest.mark.parametrize(
    ("release", "message"),
    [
        (None, "not None"),
        (Carrier(**vars(RELEASE)), "test_release_type.Carrier"),
        (replace(RELEASE, parts=()), "must hold statistics; it holds none"),
        (replace(RELEASE, domain=tiny_table(labels=True).domain), "domain"),
        (replace(RELEASE, budget=Budget(100.0)), "the budget of the release must be the requested one"),
        (replace(RELEASE, budget=Budget(1.0, relation="replace")), "the budget of the release"),
        (replace(RELEASE, ledger=[]), "must be a Ledger"),
        (replace(RELEASE, diagnostics={"a": np.zeros(3)}), "numpy.ndarray"),
        (replace(RELEASE, diagnostics={"a": np.int64(3)}), "numpy.int64"),
        (replace(RELEASE, diagnostics={"a": float("nan")}), "float nan"),
        (replace(RELEASE, diagnostics={"a": [1] * 10**6}), "must have at most"),
        (replace(RELEASE, diagnostics={1: 2}), "the key 1"),
        (holding(replace(STATISTICS, xtx=np.eye(3))), "X'X of the release must have the shape (2, 2)"),
        (holding(Extended(**vars(STATISTICS))), "must be one of SufficientStatistics, Marginals, "),
        (holding(np.zeros((5, 4))), "must be one of SufficientStatistics, Marginals, "),
        (replace(RELEASE, parts=(STATISTICS, STATISTICS)), "each kind once"),
        (replace(RELEASE, parts=STATISTICS), "must be a tuple"),
        (holding(replace(STATISTICS, xty=np.full(2, np.inf))), "must be finite"),
        (holding(Marginals({("age",): np.zeros(3)})), "the marginal age must have the shape (8,)"),
        (holding(Marginals({("height",): np.zeros(3)})), "a tuple of attributes"),
        (holding(Coefficients([1.0])), "must be a numpy array of numbers"),
        (holding(SyntheticRows([1, 2])), "rows of the release must be a Table"),
        (replace(RELEASE, nonprivate_inputs="bounds"), "nonprivate_inputs must be a tuple"),
    ],
)
def test_what_is_no_release(release, message):
    with pytest.raises(ContractError) as caught:
        check_release(release, ("statistics",), BUDGET, tiny_table().domain)
    assert message in str(caught.value)


def test_asking_for_a_kind_that_is_not_there_names_it_and_what_is():
    assert RELEASE[SufficientStatistics] is STATISTICS
    assert RELEASE.get(Marginals) is None
    with pytest.raises(ContractError, match="holds no marginals; it offers statistics"):
        RELEASE[Marginals]


def test_a_right_release_passes():
    assert check_release(RELEASE, ("statistics",), BUDGET, tiny_table().domain) is RELEASE


# --- more sets of synthetic rows -----------------------------------------------------------------------------------


def made_by(mechanism, table, **settings):
    return mechanism(table, Budget(1.0, 1e-5), np.random.default_rng(0), iterations=50, **settings)


@pytest.mark.parametrize(
    ("mechanism", "settings"),
    [(aim, {}), (aim, {"engine": "mixture", "components": 5}), (mst, {}), (mst, {"rows": 70}), (mwem_pgm, {})],
)
def test_fresh_rows_have_the_distribution_of_the_first_and_are_as_many(mechanism, settings):
    made = made_by(mechanism, tiny_table(), **settings)
    first, n = made[SyntheticRows].table, len(made[SyntheticRows].table)
    assert made.redrawn(0, np.random.default_rng(1)) is made
    fresh = [made.redrawn(draw, np.random.default_rng(draw))[SyntheticRows].table for draw in range(1, 30)]
    assert all(len(rows) == n and rows.domain == made.domain for rows in fresh)
    assert len({rows.codes.tobytes() for rows in [first, *fresh]}) == 30
    for name in made.domain.names:  # randomised rounding keeps one-way counts near the model's; merged levels vary more
        counts = np.array([rows.marginal((name,)) for rows in fresh])
        spread = counts.std(axis=0) + np.sqrt(counts.mean(axis=0)) + 1
        assert np.all(np.abs(first.marginal((name,)) - counts.mean(axis=0)) < 4 * spread)


@pytest.mark.parametrize("mechanism", [aim, mst, mwem_pgm])
def test_rows_are_drawn_to_the_same_bits_from_a_stored_release(mechanism):
    made = made_by(mechanism, tiny_table())
    one, two = (release.redrawn(1, np.random.default_rng(5)) for release in (made, round_trip(made)))
    assert np.array_equal(one[SyntheticRows].table.codes, two[SyntheticRows].table.codes)
    assert one[Marginals] is made[Marginals]
    again = round_trip(round_trip(made)).redrawn(1, np.random.default_rng(5))
    assert np.array_equal(one[SyntheticRows].table.codes, again[SyntheticRows].table.codes)


def test_the_rows_of_bins_are_drawn_by_the_model_and_others_are_not_drawn_again():
    table, rng = tiny_table(), np.random.default_rng(0)
    bins = binagg(table, Budget(5.0, 1e-5), rng, design=Design(table.domain, "y"))
    assert bins.redrawn(3, rng) is bins
    for release in (RELEASE, exact_table(table, Budget(math.inf), rng)):
        with pytest.raises(UserError, match="can give several sets of synthetic rows"):
            release.redrawn(1, rng)


# --- without noise -------------------------------------------------------------------------------------------------


def test_without_noise_a_release_is_what_the_mechanism_measured():
    """The same cliques, the training rows, the same bins; nothing is left of what no rows stand behind."""
    table, rng = tiny_table(), np.random.default_rng(0)
    design = Design(table.domain, "y")
    exact_one = made_by(aim, table).exact(table, design)
    assert exact_one.offers == ("marginals", "rows")
    assert exact_one[SyntheticRows].table is table
    for clique, counts in exact_one[Marginals].tables.items():
        assert np.array_equal(counts, table.marginal(clique))
    statistics = ssp(table, Budget(1.0, 1e-5), rng, design=design, intervals=True).exact(table, design)
    wanted = exact(table, Budget(math.inf), rng, design=design)[SufficientStatistics]
    found = statistics[SufficientStatistics]
    assert np.array_equal(found.xtx, wanted.xtx)
    assert (found.yty, found.xtx_sd, found.ridge) == (wanted.yty, 0.0, 0.0)
    assert holding(Coefficients(np.zeros(2))).exact(table, design).offers == ("statistics",)
