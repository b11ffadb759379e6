"""Guessing from releases which canaries are in: it stays under what is paid, and finds what no noise was added to."""

from functools import partial

import numpy as np
import pytest

from dpbench.audit.lower_bound import one_run_mu
from dpbench.audit.one_run import corners, features, levels, one_run_audit
from dpbench.config import composed, part_of
from dpbench.config.parts import parts_of
from dpbench.data.table import Table
from dpbench.grid.tiny_tables import made, tiny_settings
from dpbench.mechanisms import snsynth
from dpbench.privacy import noise
from dpbench.privacy.accounting import gaussian_epsilon
from dpbench.privacy.budget import Budget
from dpbench.privacy.ledger import Ledger
from dpbench.releases import Coefficients, Marginals, Release, SufficientStatistics, SyntheticRows

DELTA = 1e-5
ONE, MANY = (levels(1, 20), 400), (levels(50, 40), 8)  # canaries of a table, and tables


def noisy(table, rng, ledger, value, sensitivity=1.0):
    return noise.gaussian(rng, ledger, value, sensitivity=sensitivity, multiplier=4.0, label="noise")


def counts(table):
    return table.marginal(("who",))


def features_of(table):
    """The counts of the levels that are features of the design, and 0 for its intercept."""
    return np.append(counts(table)[1:], 0.0)


def released(answer):
    """`answer` (table, rng, ledger) -> the parts of a release, and its diagnostics."""

    def make(table: Table, seed: int) -> Release:
        ledger = Ledger()
        parts, diagnostics = answer(table, np.random.default_rng(seed), ledger)
        return Release(table.domain, Budget(10.0, DELTA), ledger, parts, diagnostics)

    return make


def honest(table, rng, ledger):
    return (Marginals({("who",): noisy(table, rng, ledger, counts(table))}),), {}


def noiseless_cell(table, rng, ledger):
    told = noisy(table, rng, ledger, counts(table))
    told[-1] = counts(table)[-1]
    return (Marginals({("who",): told}),), {}


def empty_cells(table, rng, ledger):
    """Noise where there are rows, and zeros elsewhere."""
    told = noisy(table, rng, ledger, counts(table))
    return (Marginals({("who",): np.where(counts(table) > 0, told, 0.0)}),), {}


def exact_n(table, rng, ledger):
    return honest(table, rng, ledger)[0], {"rows": len(table)}


def reused_noise(table, rng, ledger):
    """Counts and thrice the counts, whose l2 sensitivity is right and whose noise is the same."""
    value = features_of(table)
    drawn = noisy(table, rng, ledger, value, 10**0.5) - value
    return (SufficientStatistics(np.diag(value + drawn), 3 * value + drawn, 1.0, 1.0),), {}


def seen_rows(table, rng, ledger):
    """Synthetic rows of noisy counts, of which those that no row of the table is like are dropped."""
    told = noisy(table, rng, ledger, counts(table)).clip(0.1)
    who = rng.choice(len(told), 2000, p=told / told.sum())
    who = who[counts(table)[who] > 0]
    return (SyntheticRows(Table(table.domain, np.stack([who, 0 * who], axis=1))),), {}


def refitted(table, rng, ledger):
    """Coefficients that end with a step of least squares on the rows."""
    told = noisy(table, rng, ledger, features_of(table))
    return (Coefficients(0.01 * told + features_of(table)),), {}


def noiseless_rows(table, rng, ledger):
    """As PATE-CTGAN does: a claim, a mean of the rows that no noise protects, and synthetic rows around it."""
    noise.claimed(ledger, 0.5, DELTA, label="claim")
    mean = np.stack(list(table.numbers.values()), axis=1).mean(axis=0)
    drawn = np.where(rng.random((300, len(mean))) < (1 + 0.5 * mean) / 2, 1, 0)
    return (SyntheticRows(Table(table.domain, drawn)),), {}


LEAKS = {
    "a cell without noise": (noiseless_cell, ONE),
    "cells that are empty": (empty_cells, MANY),
    "the exact number of rows": (exact_n, ONE),
    "the same noise twice": (reused_noise, MANY),
    "rows that others are held against": (seen_rows, MANY),
    "a last step on the rows": (refitted, MANY),
    "a network trained on the rows": (noiseless_rows, (corners(50, 200), 2)),
}


QUICK = ("a cell without noise", "the exact number of rows", "a network trained on the rows")


@pytest.mark.parametrize("name", [pytest.param(n, marks=[] if n in QUICK else pytest.mark.slow) for n in LEAKS])
def test_what_no_noise_covers_is_found(name):
    """The bound has confidence .99; seeds are fixed."""
    answer, (canaries, runs) = LEAKS[name]
    found = one_run_audit(released(answer), canaries, DELTA, runs=runs, confidence=0.99)
    assert found.epsilon > found.spent.epsilon
    assert found.estimate == "one run"


@pytest.mark.parametrize(("canaries", "runs"), [ONE, MANY])
@pytest.mark.parametrize("relation", ["add_remove", "replace"])
def test_noise_that_covers_all_is_not_exceeded(canaries, runs, relation):
    """eps = 1.1 at mu = 1/4; a change of a record under `replace` is of two cells. Confidence 1 - 1e-4."""
    found = one_run_audit(released(honest), canaries, DELTA, relation=relation, runs=runs, confidence=0.9999)
    assert found.epsilon <= found.spent.epsilon


def test_tables_hold_the_canaries_that_are_in_and_as_many_rows_where_n_is_public():
    coins = np.array([True, False, True])
    canaries = levels(3, 10)
    added, replaced = (canaries.table(coins, relation) for relation in ("add_remove", "replace"))
    assert counts(added).tolist() == [9, 1, 0, 1] and counts(replaced).tolist() == [10, 1, 0, 1]
    assert len(levels(3, 10, labels=True).table(coins, "replace")) == 12
    assert set(np.unique(corners(4, 6).records.numbers["x0"])) <= {-1.0, 1.0}


def test_each_kind_of_release_says_something_of_each_canary():
    canaries = levels(5, 10)
    table, p = canaries.table(np.ones(5, dtype=bool), "add_remove"), 6
    parts = (SyntheticRows(table), Coefficients(np.arange(p) * 1.0), SufficientStatistics(np.eye(p), np.ones(p), 1, 1))
    seen = features(Release(table.domain, Budget(1.0, DELTA), Ledger(), parts, {"rows": 7}), canaries)
    assert {"mean product", "nearest", "prediction", "X'X", "X'y", "rows"} <= set(seen)
    assert {column.shape for column in seen.values()} == {(5,)}
    assert len(set(seen["prediction"])) == 5


def test_too_few_coins_are_refused():
    with pytest.raises(ValueError, match="20 coins at least"):
        one_run_audit(released(honest), levels(4, 10), DELTA, runs=2, confidence=0.95)


@pytest.mark.parametrize("name", [pytest.param("aim", marks=pytest.mark.slow), "dpsgd"])
def test_shipped_mechanisms_are_not_exceeded(name):
    """Confidence 1 - 1e-4 each, at a fixed seed."""
    settings = ["mechanism.dpsgd.batch_size=75"] if name == "dpsgd" else []
    (part,) = parts_of("mechanism", composed([f"mechanism=[{name}]", *tiny_settings(), *settings]))
    canaries = levels(100, 300)

    def make(table, seed):
        return made(part, table, seed, budget=Budget(1.0, DELTA), canaries=canaries)

    found = one_run_audit(make, canaries, DELTA, runs=1, confidence=0.9999)
    assert found.epsilon <= found.spent.epsilon == pytest.approx(1, rel=1e-3)


@pytest.mark.slow
def test_patectgan_costs_more_than_it_claims():
    """Its networks are trained on the rows without noise. 60 to 120 s; confidence .95, at fixed seeds."""
    try:
        snsynth._python()
    except Exception as error:
        pytest.skip(str(error))
    settings = ["mechanism.patectgan.settings.moments_order=30"]  # fewer orders, which are slow; the claim is the same
    (part,) = parts_of("mechanism", composed(["mechanism=[patectgan]", *tiny_settings(), *settings]))
    canaries = corners(50, 200)

    def make(table, seed):
        return made(part, table, seed, budget=Budget(0.5, DELTA), canaries=canaries)

    found = one_run_audit(make, canaries, DELTA, runs=2, confidence=0.95)
    assert found.epsilon > found.spent.epsilon == 0.5


def test_statistics_of_a_generalised_linear_model_tell_which_canaries_are_in():
    """At epsilon 100, where more than the half that chance gives is right; without these features it was 54 of 100."""
    part = part_of("mechanism", "pass_glm_logistic")
    canaries = levels(20, 40, labels=True)
    budget = Budget(100.0, DELTA)
    make = partial(made, part, budget=budget, canaries=canaries)
    found = one_run_audit(make, canaries, DELTA, runs=10, confidence=0.95)
    assert 1.0 < found.epsilon <= found.spent.epsilon


def test_in_one_run_the_numbers_of_guesses_cost_confidence_and_in_two_they_do_not():
    """In one run they are learnt from the release that is guessed from."""
    for runs, exact in (1, False), (2, True):
        found = one_run_audit(released(all_cells), levels(40, 40), DELTA, runs=runs, confidence=0.8)
        correct, guesses = (int(word) for word in found.neighbour.split() if word.isdigit())
        plain = gaussian_epsilon(one_run_mu(correct, guesses, 20 * runs, 0.8), DELTA)
        assert plain > 0 and (found.epsilon == plain) is exact and found.epsilon <= plain


def all_cells(table, rng, ledger):
    noisy(table, rng, ledger, counts(table))
    return (Marginals({("who",): counts(table)}),), {}
