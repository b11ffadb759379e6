"""Gen: the nearest rows by hand and by trying all, its noise, and what it refuses."""

import math
from itertools import combinations, combinations_with_replacement

import numpy as np
import pytest

from dpbench.data.domain import Attribute, Domain
from dpbench.data.table import Table
from dpbench.errors import UserError
from dpbench.mechanisms.gen import _answers, _nearest, count_marginals, gen, gen_sigma
from dpbench.privacy.accounting import gaussian_epsilon, spent
from dpbench.privacy.budget import Budget
from dpbench.releases import SyntheticRows

DOMAIN = Domain(
    (Attribute.categorical("a", "uvw"), Attribute.categorical("b", "st"), Attribute.categorical("y", ["no", "yes"]))
)
QUERIES = [q for k in (1, 2) for q in combinations(DOMAIN.names, k)]


def table(rows, seed=0):
    rng = np.random.default_rng(seed)
    return Table(DOMAIN, np.stack([rng.integers(0, attribute.size, rows) for attribute in DOMAIN.attributes], axis=1))


def made(train, epsilon=1.0, delta=1e-5, relation="add_remove", seed=0, **parameters):
    return gen(train, Budget(epsilon, delta, relation), np.random.default_rng(seed), **parameters)


def test_almost_without_noise_the_rows_have_the_marginals_of_the_data():
    train = table(200)
    rows = made(train, epsilon=1e9)[SyntheticRows].table
    for q in QUERIES:
        np.testing.assert_array_equal(rows.marginal(q), train.marginal(q))


@pytest.mark.parametrize("seed", range(5))
def test_the_search_finds_the_least_distance_of_all_tables_of_three_rows(seed):
    """364 tables of three rows over 12 cells, each tried."""
    answers = _answers(DOMAIN, QUERIES)
    noisy = np.random.default_rng(seed).normal(0.7, 1.0, sum(a.shape[0] for a in answers))
    ends = np.cumsum([a.shape[0] for a in answers])[:-1]

    def distance(counts):
        parts = np.split(noisy, ends)
        return max(np.abs(part - a @ counts).sum() for part, a in zip(parts, answers, strict=True))

    tried = [distance(np.bincount(cells, minlength=12)) for cells in combinations_with_replacement(range(12), 3)]
    counts, found = _nearest(answers, noisy, 3, 0.0, 10_000)
    assert counts.sum() == 3
    assert found["distance"] == pytest.approx(distance(counts)) == pytest.approx(min(tried))


def test_the_rows_are_nearer_to_the_noisy_marginals_than_the_data_are():
    """What Lemma 3.4 rests on; the distance from the data's own marginals is at most twice the noise's."""
    for seed in range(5):
        train = table(300, seed)
        release = made(train, epsilon=0.5, seed=seed, gap=0.01)
        sigma, distance = release.diagnostics["sigma"], release.diagnostics["distance"]
        noise = np.random.default_rng(seed).normal(0.0, sigma, sum(math.prod(DOMAIN.shape(q)) for q in QUERIES))
        ends = np.cumsum([math.prod(DOMAIN.shape(q)) for q in QUERIES])[:-1]
        of_data = max(np.abs(part).sum() for part in np.split(noise, ends))
        assert distance <= of_data * (1 + release.diagnostics["gap"])
        rows = release[SyntheticRows].table
        largest = max(np.abs(rows.marginal(q) - train.marginal(q)).sum() for q in QUERIES)
        assert largest <= distance + of_data + 1e-6


@pytest.mark.parametrize(("relation", "sensitivity"), [("add_remove", math.sqrt(6)), ("replace", math.sqrt(12))])
def test_all_marginals_are_paid_for_at_once(relation, sensitivity):
    release = made(table(300), relation=relation)
    (event,) = release.ledger.events
    assert event.sensitivity == pytest.approx(sensitivity)
    assert spent(release.ledger, 1e-5).epsilon == pytest.approx(1.0)
    if relation == "replace":
        assert len(release[SyntheticRows].table) == 300


def test_published_noise_spends_more_than_its_budget_on_three_attributes_and_less_on_many():
    """Two attributes besides the label: 6 marginals, where the paper counts 2^2."""
    release = made(table(300), epsilon=0.9, relation="replace", calibration="paper")
    assert release.diagnostics["sigma"] == pytest.approx(2 * 2 * math.sqrt(math.log(1.25e5)) / 0.9)
    (event,) = release.ledger.events
    assert event.sensitivity * event.multiplier == pytest.approx(release.diagnostics["sigma"])
    assert count_marginals(2, 2) == 6
    assert spent(release.ledger, 1e-5).epsilon > 0.9 * math.sqrt(2) * 0.6


def test_the_published_noise_is_private_where_the_marginals_are_no_more_than_the_paper_counts():
    """The ledger's own account, that of Gaussian differential privacy, at the sensitivity of all marginals."""
    epsilon, delta = 0.8, 1e-5
    for degree, features in [(2, 4), (3, 3), (3, 14), (4, 14)]:
        assert count_marginals(degree, features) <= features**degree
        sigma = gen_sigma(degree=degree, features=features, epsilon=epsilon, delta=delta)
        mu = math.sqrt(2 * count_marginals(degree, features)) / sigma
        assert gaussian_epsilon(mu, delta) < epsilon
    assert count_marginals(2, 3) > 3**2 and count_marginals(1, 14) > 14


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"degree": 4}, "gen: degree must lie between 1 and 3, not 4"),
        ({"max_cells": 11}, "gen searches over the 12 cells of the domain, and the limit is 11"),
        ({"gap": -0.1}, "gap must be at least 0"),
        ({"epsilon": math.inf}, "gen needs a finite epsilon"),
        ({"calibration": "loose"}, "calibration"),
    ],
)
def test_what_is_refused(parameters, message):
    with pytest.raises(UserError, match=message):
        made(table(10), **parameters)
