"""The bound by importance sampling is near what a ledger says where paths disagree, and finds one that is wrong."""

import numpy as np
import pytest
from mechanisms.helpers import answering

from dpbench.audit.exact_audit import exact_audit
from dpbench.audit.neighbours import linked_table, odd_tables, random_table, two_ends
from dpbench.audit.tilted_audit import tilted_audit
from dpbench.data.domain import Attribute, Domain
from dpbench.privacy import noise
from dpbench.privacy.budget import Budget

DELTA = 1e-5
DOMAIN = Domain((Attribute.binned("a", -3, 1, 4), Attribute.categorical("c", "xyz")))


def found(answer, epsilon, relation="add_remove"):
    """Of 300 runs, with confidence 1 - 1e-4; and what is found without sampling."""
    make = answering(answer, Budget(10.0, DELTA))
    table = random_table(DOMAIN, 40, 0, numbers=True)
    settings = {name: (make, one) for name, one in odd_tables(table).items()}
    tilted = tilted_audit(settings, epsilon, DELTA, relation=relation, runs=300, confidence=0.9999)
    return tilted, exact_audit(settings, DELTA, relation=relation)


def counts(table):
    return np.bincount(table.codes[:, 0], minlength=4).astype(float)


def spends_the_rest(declared):
    """A noisy count, and one with as much noise as it leaves of mu = 2: how much depends on the first."""

    def answer(table, rng, ledger):
        ledger.open_filter("mu", 2.0)
        distribution = {"sensitivity": declared, "label": "count"}
        first = noise.gaussian(rng, ledger, counts(table), multiplier=1.0, **distribution)
        mus = (3**0.5,) if first[0] > 2 else (1.0, 2**0.5)
        for mu in mus:
            noise.gaussian(rng, ledger, counts(table), multiplier=1 / mu, **distribution)

    return answer


def selections(sensitivity):
    """Of two scores that a record at the upper end moves apart, as often as a noisy count says."""

    def answer(table, rng, ledger):
        told = noise.gaussian(rng, ledger, [float(len(table))], sensitivity=1.0, multiplier=0.6, label="n")
        for k in range(3 if told[0] > 10 else 4):
            scores = counts(table)[3] * np.array([1, -1])
            noise.exponential_mechanism(rng, ledger, scores, sensitivity=sensitivity, epsilon=1.0, label=f"pick {k}")

    return answer


def test_where_the_moves_depend_on_the_answers_all_that_a_tight_ledger_says_is_found_and_no_more():
    tilted, exact = found(spends_the_rest(1.0), 10.0)
    assert 0.95 <= tilted.epsilon / tilted.spent.epsilon <= 1.0
    assert tilted.parts == {"gaussian": pytest.approx(1.0)}
    assert exact.mu == pytest.approx(2.0)


def test_a_sensitivity_that_is_too_small_is_found():
    tilted, _ = found(spends_the_rest(0.8), 10.0)
    assert tilted.epsilon > 1.1 * tilted.spent.epsilon


@pytest.mark.slow
def test_selections_are_counted_and_stay_under_the_ledger():
    tilted, exact = found(selections(1.0), 8.0)
    assert exact is None or exact.epsilon < tilted.epsilon
    assert 0.8 <= tilted.epsilon / tilted.spent.epsilon <= 1.0
    assert set(tilted.parts) == {"gaussian", "exponential"}


def test_selections_with_too_small_a_sensitivity_are_found():
    tilted, _ = found(selections(0.2), 8.0)
    assert tilted.epsilon > tilted.spent.epsilon


def test_noise_without_a_tilted_law_is_not_audited():
    def tree(table, rng, ledger):
        noise.tree_laplace(rng, ledger, scale=1.0, epsilon=1.0, label="tree")(counts(table))

    assert found(tree, 1.0)[0] is None


def test_each_pair_of_linked_attributes_is_equally_far_from_independent_and_the_ends_move_them_apart():
    table = linked_table()
    names = table.domain.names
    far, signs = set(), []
    for one in names[:3]:
        for two in names[3:]:
            h = table.marginal((one, two))
            gap = h - np.outer(h.sum(axis=1), h.sum(axis=0)) / h.sum()
            far.add(round(float(np.abs(gap).sum()), 6))
            signs.append(np.sign(gap[0, 0]))
            assert np.sign(gap[2, 2]) == -np.sign(gap[0, 0]) != 0
    assert len(far) == 1 and far.pop() > 100
    assert sorted(signs) == [-1] * 5 + [1] * 4 or sorted(signs) == [-1] * 4 + [1] * 5
    assert set(table.codes[-1]) == {0}
    assert two_ends(4).codes.tolist() == [[1, 1, 1], [1, 1, 1], [0, 0, 0], [0, 0, 0]]
