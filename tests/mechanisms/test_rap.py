"""RAP and RAP-softmax: their loss by hand, their steps, their limit without noise, and what they refuse."""

import numpy as np
import pytest
from inference.helpers import answers_of

from dpbench.data.domain import Attribute, Domain
from dpbench.data.table import Table
from dpbench.errors import UserError
from dpbench.inference.mixture import adam
from dpbench.inference.product_queries import ProductQueries
from dpbench.inference.query_workload import QueryWorkload
from dpbench.mechanisms.adaptive import Asked
from dpbench.mechanisms.rap import Rap, rap, squared_loss
from dpbench.mechanisms.rap_softmax import RapSoftmax, rap_softmax
from dpbench.mechanisms.workload import cliques_of
from dpbench.privacy.accounting import spent
from dpbench.privacy.budget import Budget
from dpbench.releases import Distribution, Marginals, SyntheticRows

DELTA = 1e-7
METHODS = [rap, rap_softmax]
QUERIES = QueryWorkload({"a": 2, "b": 3}, (("a", "b"), ("b",)))
FEW = {"rounds": 30, "components": 50, "iterations": 50}


def asked(queries, answers):
    return Asked(np.array(queries), np.ones(len(queries)), np.array(answers), 1, 0.1)


def made(method, table, epsilon=1.0, seed=0, **settings):
    return method(table, Budget(epsilon, DELTA, "replace"), np.random.default_rng(seed), **{**FEW, **settings})


def answers(table, release):
    """The release's own to all marginals of three attributes, and the true ones."""
    cliques = cliques_of(table.domain, 3)
    tables = found.answer(cliques) if (found := release.get(Distribution)) else release[Marginals].tables
    found = np.concatenate([tables[clique].ravel() for clique in cliques]) / len(table)
    return found, QueryWorkload(table.domain.sizes, cliques).of_rows(table.codes)


def test_the_loss_of_one_round_by_hand():
    """(a = 1, b = 2) is measured as 0.5, and b = 0 as 1.2, which counts as 1."""
    D = np.array([[0.3, 0.3], [0.4, 0.6], [0.1, 0.3], [0.0, 0.0], [0.5, 1.0]])
    told = asked([5, 6], [0.5, 1.2])
    measured = ProductQueries(QUERIES.columns(told.queries), 5)
    value, slope = squared_loss(measured, D, told)
    assert value == pytest.approx((0.4 - 0.5) ** 2 + (0.2 - 1) ** 2)
    gap = 2 * (0.4 - 0.5)
    np.testing.assert_allclose(slope[1], gap * D[4] / 2)
    np.testing.assert_allclose(slope[4], gap * D[1] / 2)
    np.testing.assert_allclose(slope[2], 2 * (0.2 - 1) / 2)
    assert not slope[0].any() and not slope[3].any()


def test_the_loss_of_one_round_of_rap_softmax_by_hand(monkeypatch):
    """(a = 1, b = 2) is measured as 0.5 and is (1/2 1/3 + 3/4 1/2) / 2 = 13/48; its slope goes through the softmax."""
    distributions = np.array([[1 / 2, 1 / 4], [1 / 2, 3 / 4], [1 / 3, 1 / 4], [1 / 3, 1 / 4], [1 / 3, 1 / 2]])
    looked = []

    def look(loss, logits, *_, **__):
        looked.append(loss(logits))
        return logits, 1

    monkeypatch.setattr("dpbench.mechanisms.rap_softmax.adam", look)
    RapSoftmax(QUERIES, 2, 0.1, 1, np.random.default_rng(0)).update(np.log(distributions), asked([5], [0.5]))
    value, slope = looked[0]
    assert value == pytest.approx((13 / 48 - 0.5) ** 2)
    outer = 2 * (13 / 48 - 0.5) / 2  # of each of the two components
    first, second = 1 / 2 * 1 / 3, 3 / 4 * 1 / 2
    np.testing.assert_allclose(slope[1], outer * np.array([first * (1 - 1 / 2), second * (1 - 3 / 4)]))
    np.testing.assert_allclose(slope[0], outer * np.array([first * -1 / 2, second * -1 / 4]))
    np.testing.assert_allclose(slope[4], outer * np.array([first * (1 - 1 / 3), second * (1 - 1 / 2)]))
    np.testing.assert_allclose(slope[2:4], outer * np.array([[first * -1 / 3, second * -1 / 4]] * 2))


@pytest.mark.parametrize(("module", "family"), [("rap", Rap), ("rap_softmax", RapSoftmax)])
def test_a_round_ends_at_a_plateau_if_it_may(monkeypatch, module, family):
    """One answer is met in less than a hundred steps; then the loss no longer falls."""
    taken = []

    def count(*given, **options):
        found, steps = adam(*given, **options)
        taken.append(steps)
        return found, steps

    monkeypatch.setattr(f"dpbench.mechanisms.{module}.adam", count)
    for patience in (5, None):
        begun = family(QUERIES, 10, 0.1, 5000, np.random.default_rng(0), patience)
        D = begun.update(begun.initial(), asked([5], [0.3]))
        assert begun.answers(D)[5] == pytest.approx(0.3, abs=0.02)
    assert taken[0] < 100 and taken[1] == 5000


def test_a_round_of_rap_answers_what_was_measured_alone_and_stays_in_its_cube():
    family = Rap(QUERIES, 100, 0.01, 500, np.random.default_rng(0))
    D = family.update(family.initial(), asked([5, 6], [0.3, 0.6]))
    found = family.answers(D)
    assert found[[5, 6]] == pytest.approx([0.3, 0.6], abs=1e-3)
    assert found[6:].sum() < 0.9  # they need not sum to 1, which F.3 says of them
    far = family.update(family.initial(), asked([6], [1.0]))
    assert family.answers(far)[6] == pytest.approx(1.0, abs=0.03)
    assert np.abs(D).max() <= 1 and np.abs(far).max() <= 1


def test_a_round_of_rap_softmax_answers_what_was_measured_by_a_distribution():
    family = RapSoftmax(QUERIES, 100, 0.1, 200, np.random.default_rng(0))
    D = family.update(family.initial(), asked([5, 6], [0.3, 0.6]))
    found = family.answers(D)
    assert found[[5, 6]] == pytest.approx([0.3, 0.6], abs=1e-3)
    assert found[6:].sum() == pytest.approx(1) and found[:6].sum() == pytest.approx(1)


def test_steps_are_as_many_as_are_said():
    """A softmax logit moves by the rate at most in a step, but for rounding."""
    for steps in (2, 5):
        family = RapSoftmax(QUERIES, 3, 0.1, steps, np.random.default_rng(0))
        start = family.initial()
        moved = np.abs(family.update(start, asked([6], [1.0])) - start).max()
        assert 0.1 * (steps - 2) < moved < 0.1 * (steps - 1) * 1.01  # the last point is not looked at


@pytest.mark.parametrize(("method", "bound"), [(rap, 0.01), (rap_softmax, 0.003)])
def test_almost_without_noise_the_workload_is_recovered(small_table, method, bound):
    """RAP must see most of the 216 queries, which constrain nothing but themselves."""
    settings = {"rounds": 20, "per_round": 10} if method is rap else {"rounds": 40, "per_round": 4}
    found, true = answers(small_table, made(method, small_table, 1e6, iterations=100, **settings))
    assert np.abs(found - true).max() < bound


def test_the_softmax_is_the_better_one(small_table):
    """What the paper says of their mean errors (F.3), in the mean of 2 seeds at epsilon = 1."""
    errors = []
    for method in METHODS:
        runs = [answers(small_table, made(method, small_table, seed=seed, rounds=20)) for seed in range(2)]
        errors.append(np.mean([np.abs(found - true).mean() for found, true in runs]))
    assert errors[1] < errors[0]


@pytest.mark.parametrize("method", METHODS)
def test_the_release_keeps_its_budget_and_holds_pairs_and_rows(small_table, method):
    for calibration in ("tight", "paper"):
        release = made(method, small_table, 0.7, calibration=calibration, rounds=5)
        assert spent(release.ledger, DELTA).epsilon <= 0.7 * (1 + 1e-9)
    assert len(release[SyntheticRows].table) == len(small_table)
    for pair in cliques_of(small_table.domain, 2):
        assert release[Marginals].tables[pair].sum() == pytest.approx(len(small_table))


def test_rows_have_the_answers_of_the_mixture_that_they_are_drawn_from(small_table):
    """All marginals of three attributes, of as many rows as tell them to 0.01."""
    release = made(rap_softmax, small_table, 5.0, rows=40_000)
    queries = QueryWorkload(small_table.domain.sizes, cliques_of(small_table.domain, 3))
    distribution, rows = (
        answers_of(release[Distribution].model, queries.cliques),
        queries.of_rows(release[SyntheticRows].table.codes),
    )
    assert np.abs(rows - distribution).max() < 0.01 < np.abs(distribution - distribution.mean()).max()


@pytest.mark.parametrize("method", METHODS)
def test_no_query_is_measured_twice(method):
    """After all 6 cells have been measured none is left, and one more is refused beforehand."""
    domain = Domain((Attribute.categorical("a", "uv"), Attribute.categorical("b", "rst")))
    table = Table(domain, np.array([[0, 0], [1, 2], [1, 1]] * 20))
    made(method, table, workload=2, rounds=6)
    with pytest.raises(UserError, match="7 different queries, and the workload has 6"):
        made(method, table, workload=2, rounds=7)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"rounds": 0}, "rounds must be at least 1"),
        ({"components": 0}, "components must be at least 1"),
        ({"iterations": 0}, "iterations must be at least 1"),
        ({"rate": 0.0}, "rate must be greater than 0"),
        ({"workload": {"degree": 5}}, "k between 1 and 4"),
    ],
)
def test_what_is_refused(small_table, method, settings, message):
    with pytest.raises(UserError, match=message):
        made(method, small_table, **settings)
