"""What a release cost is held against the budget of the plan, whatever the release says of itself."""

from dataclasses import replace

import numpy as np
import pytest

from dpbench.grid.records import PartKey, ReleaseKey
from dpbench.grid.releases import find_release, read_release, write_release
from dpbench.grid.spending import OverspentError, check_cost, cost_of, holds
from dpbench.grid.store import Store
from dpbench.privacy.accounting import Spent, gaussian_mu
from dpbench.privacy.budget import Budget
from dpbench.privacy.ledger import Ledger
from dpbench.privacy.noise import gaussian, unperturbed
from dpbench.releases import Release, SufficientStatistics


def key_of(epsilon=1.0, delta=1e-5, target="dpbench.mechanisms.m.m", **parameters):
    return ReleaseKey({}, {}, 0, 0, PartKey("m", target, parameters), Budget(epsilon, delta))


@pytest.fixture
def release(small_domain):
    """One Gaussian with multiplier 10: eps about 0.4 at delta 1e-5."""
    ledger = Ledger()
    gaussian(np.random.default_rng(0), ledger, np.zeros(2), sensitivity=1.0, multiplier=10.0, label="sums")
    statistics = SufficientStatistics(np.eye(2), np.ones(2), 1.0, 1.0)
    return Release(small_domain, Budget(1.0), ledger, (statistics,))


def test_what_a_release_spent_must_not_exceed_what_was_asked(release):
    cost = cost_of(release, key_of())
    check_cost(cost, key_of())
    with pytest.raises(OverspentError, match=r"the budget was 0\.1"):
        check_cost(cost, key_of(0.1))
    check_cost(cost, key_of(0.1, calibration="paper"))  # published constants: the record shows both numbers
    with pytest.raises(OverspentError, match=r"the budget was 0\.1"):  # of one's own nothing is published
        check_cost(cost, key_of(0.1, target="own.m", calibration="paper"))


def test_a_thousandth_more_than_was_asked_is_too_much_and_rounding_is_not():
    check_cost(Spent(1.0 + 1e-12, 1e-5, 0.1, None), key_of(1.0))
    with pytest.raises(OverspentError, match="the budget was 1"):
        check_cost(Spent(1.001, 1e-5, 0.1, None), key_of(1.0))


@pytest.mark.parametrize("delta", [1e-3, 1e-10, 1e-13, 1e-20])
def test_the_least_noise_for_a_tiny_epsilon_is_not_refused(small_domain, delta):
    ledger, key = Ledger(), key_of(1e-6, delta=delta)
    mu = gaussian_mu(1e-6, delta)
    for share in (0.5, 0.5):
        scale = {"sensitivity": 1.0, "multiplier": share**-0.5 / mu}
        gaussian(np.random.default_rng(0), ledger, np.zeros(2), label="sums", **scale)
    statistics = SufficientStatistics(np.eye(2), np.ones(2), 1.0, 1.0)
    release = Release(small_domain, key.budget, ledger, (statistics,))
    check_cost(cost_of(release, key), key)


def test_a_private_release_has_noise_and_nothing_without_noise(release):
    with pytest.raises(OverspentError, match="ledger of the release is empty"):
        cost_of(replace(release, ledger=Ledger()), key_of())
    unperturbed(release.ledger, 1.0, label="the mean")
    with pytest.raises(OverspentError, match="holds the mean without noise"):
        cost_of(release, key_of())


def test_a_stored_release_holds_if_it_costs_what_was_recorded(release):
    cost = cost_of(release, key_of())
    assert holds(release, cost, key_of())
    assert not holds(release, replace(cost, epsilon=2 * cost.epsilon), key_of())
    assert not holds(release, cost, key_of(2.0))  # another budget than the plan's


def test_a_stored_release_that_cost_something_else_is_made_again(bench):
    """Its ledger is costed anew whenever it is read."""
    settings = ["mechanism=[adassp]", "repetitions=1"]
    assert bench.run(*settings) == 0
    expected, store = bench.trials(), Store(bench.results, "grid")
    (trial,) = expected.values()

    def read():
        store.releases.scan()
        return read_release(store, trial["release_id"], find_release(store, trial["release_id"]))

    stored = read()
    release, key = stored.release, ReleaseKey.from_dict(stored.record["key"])
    record = {name: stored.record[name] for name in ("provenance", "runtime", "spent")}
    xtx = release[SufficientStatistics].xtx
    for ledger in (Ledger(), Ledger(release.ledger.events[:1])):
        turn = store.releases.next_turn(key.id)
        write_release(store, key, replace(release, ledger=ledger), record, turn)
        bench.drop_trials()
        assert bench.run(*settings) == 0
        assert bench.trials() == expected
        made = read().release
        assert len(made.ledger.events) > 1
        assert np.array_equal(made[SufficientStatistics].xtx, xtx)
