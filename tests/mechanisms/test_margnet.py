"""MargNet: its scores and its loss by hand, its limit without noise, how it spends its budget, and what it refuses."""

import math
from itertools import combinations, pairwise

import numpy as np
import pytest

from dpbench.data.domain import Attribute, Domain
from dpbench.data.table import Table
from dpbench.errors import NoEstimateError, UserError
from dpbench.inference import Measurement
from dpbench.inference.product_queries import softmax
from dpbench.mechanisms import margnet as module
from dpbench.mechanisms.margnet import Loss, margnet
from dpbench.privacy.accounting import gaussian_mu, spent, zcdp_rho
from dpbench.privacy.budget import Budget
from dpbench.releases import Distribution, Marginals, SyntheticRows

DELTA = 1e-5
SIZES = {"a": 2, "b": 3}


def made(table, epsilon=1.0, seed=0, relation="add_remove", **settings):
    settings = {"components": 60, "hidden": (32, 32), "rate": 0.005} | settings
    return margnet(table, Budget(epsilon, DELTA, relation), np.random.default_rng(seed), **settings)


def distance(table, release):
    """The mean total variation distance of the released pairs."""
    found = release[Marginals].tables
    return np.mean([np.abs(table.marginal(r) / len(table) - m / m.sum()).sum() / 2 for r, m in found.items()])


def mixture(B=4, seed=0):
    """P of random product distributions, and what it is made of."""
    logits = np.random.default_rng(seed).normal(size=(5, B))
    distributions = softmax(logits, list(SIZES.values()))
    return np.concatenate([distributions, np.ones((1, B))]), distributions


def test_the_loss_by_hand():
    """Three measurements; (a, b) has two, the last of which weighs 4 / 0.5 times 10, and one of its cells is negative.

    n is 100: the noise of a cell of "a" is 4 / 100, that of a weighted mean follows.
    """
    P, p = mixture()
    once, twice = np.array([[10.0, 20, 30], [15, 20, 5]]), np.array([[30.0, -7, 0], [50, 15, 5]])
    measured = [
        Measurement(("a",), np.array([30.0, 50.0]), 4.0),
        Measurement(("a", "b"), once, 4.0),
        Measurement(("a", "b"), twice, 0.5),
    ]
    loss = Loss.of(SIZES, measured, 100.0, 10)
    mean = (once / 100 + 80 * np.maximum(twice, 0) / 100) / 81
    one, both = p[:2].mean(axis=1) - [3 / 8, 5 / 8], p[:2] @ p[2:].T / 4 - mean
    value, slope = loss.slope(P)
    assert value == pytest.approx((one**2).sum() + 81 * (both**2).sum(), rel=1e-5)
    variance = (0.04**2 + 80**2 * 0.005**2) / 81**2
    assert loss.of_noise == pytest.approx(2 * 0.04**2 + 6 * 81 * variance, rel=1e-5)
    step = 1e-3
    for place in np.ndindex(p.shape):
        up, down = P.copy(), P.copy()
        up[place] += step
        down[place] -= step
        assert slope[place] == pytest.approx((loss.slope(up)[0] - loss.slope(down)[0]) / step / 2, rel=1e-3, abs=1e-4)


def test_a_measurement_of_which_no_cell_is_positive_is_uniform():
    loss = Loss.of(SIZES, [Measurement(("b",), np.array([-1.0, 0.0, -3.0]), 1.0)], 10.0, 1)
    assert loss.y[2:5, 5] == pytest.approx(1 / 3)


@pytest.fixture
def asked(monkeypatch):
    """What each round asked of the exponential mechanism, and P after each training."""
    scores, mixtures = [], []
    own, train = module.exponential_mechanism, module.lowered

    def draw(rng, ledger, values, **settings):
        scores.append((np.array(values), settings["sensitivity"]))
        return own(rng, ledger, values, **settings)

    def lowered(*given):
        found = train(*given)
        mixtures.append(found[0])
        return found

    monkeypatch.setattr(module, "exponential_mechanism", draw)
    monkeypatch.setattr(module, "lowered", lowered)
    return scores, mixtures


@pytest.mark.parametrize("relation", ["add_remove", "replace"])
def test_scores_are_what_a_measurement_is_expected_to_gain(small_table, asked, relation):
    release = made(small_table, relation=relation, iterations=10, rounds=10)
    pairs, total = list(combinations(small_table.domain.names, 2)), release.diagnostics["total"]
    ends = np.cumsum([0, *small_table.domain.sizes.values()])
    part = {name: slice(*ends[j : j + 2]) for j, name in enumerate(small_table.domain.names)}
    scores, mixtures = asked
    assert len(mixtures) == len(scores) + 2
    for (found, sensitivity), P, one in zip(scores, mixtures, release.diagnostics["rounds"], strict=False):
        by_hand = []
        for a, b in pairs:
            h, m = small_table.marginal((a, b)), total * (P[part[a]].astype(float) @ P[part[b]].T) / P.shape[1]
            by_hand.append(np.abs(h - m).sum() - math.sqrt(2 / math.pi) * one["sigma"] * h.size)
        assert found == pytest.approx(by_hand, rel=1e-4, abs=0.1)
        assert sensitivity == (1 if relation == "add_remove" else 2)


def test_almost_without_noise_all_pairs_are_recovered(small_table):
    """The distance of 3,000 rows drawn from the real ones is 0.026 in the mean."""
    release = made(small_table, 1e6, rounds=11, components=30)
    assert distance(small_table, release) < 0.005
    drawn = release[SyntheticRows].table
    for r in combinations(small_table.domain.names, 2):
        assert np.abs(drawn.marginal(r) - small_table.marginal(r)).sum() / 2 < 0.04 * len(small_table)


def test_what_depends_most_is_measured_first():
    """Of "a" and "b", which are equal; "c" has nothing to do with them: its pairs have 10,000 rows less to gain."""
    rng = np.random.default_rng(0)
    a, c = rng.integers(0, 4, (2, 20_000))
    domain = Domain(tuple(Attribute.categorical(name, "stuv") for name in "abc"))
    release = made(Table(domain, np.column_stack([a, a, c])), iterations=20)
    assert release.diagnostics["rounds"][0]["clique"] == ["a", "b"]


def test_better_budgets_answer_better(small_table):
    """Means of 3 seeds that differ by factors: a reversal has odds far below 1e-6."""

    def mean_distance(epsilon):
        return np.mean([distance(small_table, made(small_table, epsilon, s, iterations=20)) for s in range(3)])

    assert mean_distance(0.1) > 2 * mean_distance(1.0)


@pytest.mark.parametrize("relation", ["add_remove", "replace"])
@pytest.mark.parametrize("calibration", ["tight", "paper"])
@pytest.mark.parametrize("epsilon", [0.05, 0.5])
def test_the_rounds_spend_the_budget_whole(small_table, epsilon, calibration, relation):
    release = made(small_table, epsilon, relation=relation, calibration=calibration, iterations=2)
    cost, events, trace = spent(release.ledger, DELTA), release.ledger.events, release.diagnostics["rounds"]
    kinds = [event.kind for event in events]
    assert kinds == ["gaussian"] * 4 + ["exponential", "gaussian"] * len(trace)
    if calibration == "paper":
        total, costs = zcdp_rho(epsilon, DELTA), [event.rho for event in events]
    else:
        total, costs = gaussian_mu(epsilon, DELTA) ** 2, [event.mu**2 for event in events]
    assert sum(costs) == pytest.approx(total, rel=1e-9)
    assert costs[:4] == pytest.approx([0.9 * total / 64] * 4, rel=1e-9)
    assert costs[4:6] == pytest.approx([0.1 * total / 64, 0.9 * total / 64], rel=1e-9)
    assert cost.epsilon <= epsilon * (1 + 1e-9)
    l1, l2 = (1, 1) if relation == "add_remove" else (2, math.sqrt(2))
    assert {event.sensitivity for event in events if event.kind == "gaussian"} == {l2}
    assert {event.sensitivity for event in events if event.kind == "exponential"} == {l1}


def test_a_round_costs_twice_as_much_once_a_new_pair_changes_little(small_table, asked):
    """Between two rounds but for the last one; a pair that was measured before changes no cost."""
    release = made(small_table, 0.4, iterations=10)
    trace, total, (_, mixtures) = release.diagnostics["rounds"], release.diagnostics["total"], asked
    ends = np.cumsum([0, *small_table.domain.sizes.values()])
    part = {name: slice(*ends[j : j + 2]) for j, name in enumerate(small_table.domain.names)}
    seen, kinds = set(), set()
    for t, (one, after) in enumerate(pairwise(trace[:-1])):
        a, b = (part[name] for name in one["clique"])
        answers = [total * (P[a].astype(float) @ P[b].T) / P.shape[1] for P in mixtures[t : t + 2]]
        little = np.abs(answers[1] - answers[0]).sum() < math.sqrt(2 / math.pi) * one["sigma"] * answers[0].size
        again = tuple(one["clique"]) in seen
        assert (one["sigma"] / after["sigma"]) ** 2 == pytest.approx(2 if little and not again else 1)
        seen.add(tuple(one["clique"]))
        kinds.add((bool(little), again))
    assert kinds >= {(True, False), (False, False), (True, True)}


def test_a_training_ends_where_its_loss_is_that_of_the_noise(small_table):
    much, little = (made(small_table, e, rounds=6, iterations=50).diagnostics["rounds"] for e in (0.3, 1e6))
    assert max(one["iterations"] for one in much) < 50
    assert {one["iterations"] for one in little} == {50}


def test_the_newest_pair_counts_once_for_each_attribute_in_its_round_alone(small_table, monkeypatch):
    """One pair in all rounds; the last training is after them."""
    weights, train = [], module.lowered

    def lowered(generator, widths, loss, *settings):
        weights.append(float(loss.w.max()))
        return train(generator, widths, loss, *settings)

    monkeypatch.setattr(module, "lowered", lowered)
    release = made(small_table, workload=[["age", "grade"]], rounds=8, iterations=1)
    first = release.ledger.events[0].multiplier
    each = [first / one["sigma"] for one in release.diagnostics["rounds"]]
    by_hand = [sum(each[:t]) + 4 * each[t] for t in range(len(each))]
    assert weights == pytest.approx([1, *by_hand, sum(each)], rel=1e-5)


def test_n_is_estimated_and_the_number_of_rows_can_be_asked_for(small_table):
    one, other = (made(small_table, 0.2, iterations=2, rows=rows) for rows in (None, 77))
    total = one.diagnostics["total"]
    assert total != len(small_table) and abs(total - len(small_table)) < 300
    assert len(one[SyntheticRows].table) == round(total) and len(other[SyntheticRows].table) == 77
    np.testing.assert_array_equal(one[Distribution].model.logits, other[Distribution].model.logits)


def test_the_same_seed_trains_the_same_network(small_table):
    one, two, other = (made(small_table, seed=s, iterations=5)[Distribution].model.logits for s in (0, 0, 1))
    assert one.tobytes() == two.tobytes() != other.tobytes()


def test_a_workload_of_some_pairs_and_single_attributes_is_all_that_is_measured(small_table):
    release = made(small_table, workload=[["age", "grade"], ["sex"]], iterations=5)
    assert {tuple(one["clique"]) for one in release.diagnostics["rounds"]} <= {("age", "grade"), ("sex",)}


def test_a_rate_that_is_too_large_ends_without_an_estimate(small_table):
    with pytest.raises(NoEstimateError, match="diverged"):
        made(small_table, rate=1e30)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"workload": 3}, "margnet measures marginals of one or two attributes, not age, work, sex"),
        ({"rounds": 0}, "margnet: rounds must be at least 1"),
        ({"rounds": 3}, "margnet: 4 one-way marginals spend the whole budget; raise rounds above 4"),
        ({"components": 1}, "margnet: components must be at least 2"),
        ({"hidden": [4, 0]}, r"margnet: hidden\[1\] must be at least 1"),
        ({"iterations": 0}, "margnet: iterations must be at least 1"),
        ({"rate": 0.0}, "margnet: rate must be greater than 0"),
        ({"alpha": 1.0}, "margnet: alpha must lie between"),
        ({"rows": 0}, "margnet: rows must be at least 1"),
        ({"device": "gpu"}, "unknown device 'gpu'"),
    ],
)
def test_what_is_refused(small_table, settings, message):
    with pytest.raises(UserError, match=message):
        made(small_table, **settings)
