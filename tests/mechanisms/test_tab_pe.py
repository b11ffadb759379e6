"""Tab-PE: its votes, what is kept and varied, its budget, and what it refuses. `tests/audit` replays it."""

import math
from itertools import combinations

import numpy as np
import pytest

from dpbench.data.domain import Attribute, Domain
from dpbench.data.table import Table
from dpbench.errors import UserError
from dpbench.mechanisms.tab_pe import EXACT, coordinates, drawn, highest, tab_pe, varied, votes
from dpbench.privacy.accounting import gaussian_mu, spent
from dpbench.privacy.budget import Budget
from dpbench.releases import SyntheticRows
from mechanisms.test_privbayes import chain

DELTA = 1e-5
DOMAIN = Domain(
    (
        Attribute.binned("age", 10, 90, 8),
        Attribute.discrete("pay", [0, 1, 5]).with_missing(),
        Attribute.categorical("work", "abcd"),
        Attribute.categorical("sex", "fm"),
    )
)


def made(table, epsilon=1.0, relation="add_remove", seed=0, **settings):
    return tab_pe(table, Budget(epsilon, DELTA, relation), np.random.default_rng(seed), **settings)


def some_rows(n, seed):
    return np.random.default_rng(seed).integers(0, list(DOMAIN.sizes.values()), (n, len(DOMAIN.names)))


def distances(records, candidates):
    """By the authors' definition, in double precision, each attribute by itself; a missing number is in the middle."""
    found = np.zeros((len(records), len(candidates)))
    for j, attribute in enumerate(DOMAIN.attributes):
        levels, others = records[:, j, None], candidates[None, :, j]
        if attribute.numeric:
            lower, upper = attribute.bounds
            scaled = np.append((np.array(attribute.values) - lower) / (upper - lower), 0.5)
            found += (scaled[levels] - scaled[others]) ** 2
            found += 1 / 9 * ((levels == len(attribute.values)) != (others == len(attribute.values)))
        else:
            found += 2 / 9 * (levels != others)
    return found


def each_vote(domain, records, candidates, place=None):
    """The candidate (n,) that each record votes for, if it is the only one."""
    one = np.ones(1, dtype=np.int64)
    alone = np.array([votes(domain, record[None], one, candidates, place) for record in records])
    assert (alone.sum(axis=1) == 1).all() and alone.min() == 0
    return alone.argmax(axis=1)


@pytest.mark.parametrize("place", [None, 3])
def test_each_record_votes_for_the_nearest_candidate(place):
    records, candidates = some_rows(400, 0), some_rows(40, 1)
    away = distances(records, candidates)
    if place is not None:
        away += 100 * (records[:, place, None] != candidates[None, :, place])
    voted = each_vote(DOMAIN, records, candidates, place)
    assert away[np.arange(400), voted] == pytest.approx(away.min(axis=1), abs=3e-3)  # of whole numbers in 1/2322


def test_a_vote_goes_to_the_first_of_the_nearest_whatever_the_other_records():
    domain, weights = chain().domain, np.arange(1, 501)
    records, candidates = chain(500).codes, chain(300).codes[200:]  # most distances are equal
    nearest = (records[:, None] != candidates).sum(axis=2).argmin(axis=1)
    assert each_vote(domain, records, candidates).tolist() == nearest.tolist()
    together = votes(domain, records, weights, candidates, None)
    assert together.tolist() == np.bincount(nearest, weights=weights, minlength=100).tolist()


def test_distances_are_exact_in_single_precision_whatever_the_domain():
    numbers = [Attribute.binned(f"x{j}", 0, 1, 50).with_missing() for j in range(300)]
    domain = Domain((*numbers, Attribute.categorical("y", "abc")))
    ends = np.random.default_rng(0).choice([0, 7, 49, 50], (20, 300))
    points = coordinates(domain, np.column_stack([ends, np.arange(20) % 3]))
    whole = points.astype(np.int64)
    assert (points @ points.T).astype(np.int64).tolist() == (whole @ whole.T).tolist()
    most = 2 * np.abs(whole) @ np.abs(whole).T + (whole**2).sum(axis=1)
    assert most.max() <= EXACT


def test_rows_are_drawn_by_their_votes_or_those_with_most_are_kept():
    rng = np.random.default_rng(0)
    noisy, copies = np.array([-5.0, 30.0, 10.0, 60.0]), np.array([2, 1, 4, 3])
    assert highest(noisy, copies, 5, rng).tolist() == [3, 1, 3, 3, 2]
    shares = np.bincount(drawn(noisy, copies, 10_000, rng), minlength=4) / 10_000
    assert shares == pytest.approx([0, 0.3, 0.1, 0.6], abs=0.03)  # 6 standard deviations
    assert set(drawn(-noisy[1:], copies[1:], 100, rng).tolist()) == {0, 1, 2}


def test_a_variation_draws_levels_anew_and_moves_numbers_by_a_part_of_their_range():
    rows = np.tile([4, 1, 2, 0], (20_000, 1))
    other = varied(DOMAIN, rows, 0.2, np.random.default_rng(0), 3)
    assert (other[:, 3] == 0).all()
    assert (other[:, 2] != 2).mean() == pytest.approx(0.2 * 3 / 4, abs=0.015)  # 6 standard deviations
    assert (other[:, 1] == 3).mean() == pytest.approx(0.2 / 4, abs=0.01)
    assert set(other[:, 0].tolist()) == {2, 3, 4, 5, 6}  # 0.2 of the range is 1.6 bins
    missing = varied(DOMAIN, np.tile([4, 3, 2, 0], (20_000, 1)), 0.2, np.random.default_rng(0), None)
    assert (missing[:, 1] != 3).mean() == pytest.approx(0.2 * 3 / 4, abs=0.015)


@pytest.mark.parametrize("relation", ["add_remove", "replace"])
def test_rows_have_the_pairs_where_there_is_budget_and_nearly_so_where_there_is_less(relation):
    table = chain()

    def worst(epsilon):
        rows = made(table, epsilon, relation)[SyntheticRows].table
        pairs = combinations(table.domain.names, 2)
        return max(np.abs(rows.marginal(r) / len(rows) - table.marginal(r) / len(table)).sum() for r in pairs)

    assert worst(1e4) < 0.03 < worst(1.0) < worst(0.05) < 1.0


@pytest.mark.parametrize("label", [None, "y"])
def test_rows_have_a_parity_of_three_attributes_which_no_three_way_marginal_shows(label):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 8, (20_000, 5))
    numbers = (Attribute.binned(name, 0, 1, 8) for name in "abcde")
    domain = Domain((*numbers, Attribute.categorical("y", ["even", "odd"])))
    table = Table(domain, np.column_stack([X, (X[:, :3] > 3).sum(axis=1) % 2]))
    codes = made(table, label=label, iterations=20)[SyntheticRows].table.codes
    assert ((codes[:, :3] > 3).sum(axis=1) % 2 == codes[:, 5]).mean() > 0.75


@pytest.mark.parametrize("relation", ["add_remove", "replace"])
@pytest.mark.parametrize("label", [None, "work"])
def test_all_answers_share_the_budget_alike(small_table, relation, label):
    release = made(small_table, 0.7, relation, label=label, iterations=12)
    events = release.ledger.events
    first = [] if relation == "replace" and label is None else [f"marginal {label or ''}"]
    assert [one.label for one in events] == [*first, *(f"votes {t}" for t in range(1, 13))]
    assert {one.sensitivity for one in events} == {1.0 if relation == "add_remove" else math.sqrt(2)}
    assert math.fsum(one.mu**2 for one in events) == pytest.approx(gaussian_mu(0.7, DELTA) ** 2)
    assert spent(release.ledger, DELTA).epsilon == pytest.approx(0.7, rel=1e-6)


def test_the_number_of_rows_is_set_by_the_budget(small_table):
    big = small_table.take(np.tile(np.arange(len(small_table)), 10))
    mu = gaussian_mu(1.0, DELTA)
    assert len(made(big, 1.0, "replace")[SyntheticRows].table) == round(len(big) / 1.5 / math.sqrt(2 * 30) * mu)
    assert len(made(big, 0.01)[SyntheticRows].table) == 150
    assert len(made(big, rows=77, iterations=6)[SyntheticRows].table) == 77


def test_each_level_of_the_label_has_its_share_of_the_rows(small_table):
    release = made(small_table, 10.0, label="work", rows=200, iterations=6)
    shares = small_table.marginal(("work",)) / len(small_table)
    assert release[SyntheticRows].table.marginal(("work",)) == pytest.approx(200 * shares, abs=2)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"iterations": 0}, "iterations must be at least 1"),
        ({"rows": 0}, "rows must be at least 1"),
        ({"label": "wrok"}, "work"),
        ({"epsilon": math.inf}, "finite epsilon"),
        ({"noise": "pink"}, "unknown noise"),
    ],
)
def test_invalid_settings_are_named(small_table, settings, said):
    with pytest.raises(UserError, match=said):
        made(small_table, **settings)
