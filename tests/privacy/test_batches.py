"""The account of Gaussian noise on batches of a fixed size, against integrals and other accountants."""

import math

import numpy as np
import pytest
from scipy.stats import binom, norm

from dpbench.privacy.accounting import spent
from dpbench.privacy.batches import BatchGaussian
from dpbench.privacy.events import Gaussian
from dpbench.privacy.ledger import Ledger, event_of

DELTA = 1e-6
EPSILONS = np.array([0.0, 0.01, 0.1, 0.5])


def step(rows=200, batch=20, multiplier=1.5, replacement=False, count=1):
    return BatchGaussian("gradients", 2.0, multiplier, rows, batch, replacement, count)


def epsilon(*events):
    return spent(Ledger(events), DELTA).epsilon


def attained(event: BatchGaussian) -> list[float]:
    """delta at each of `EPSILONS` where all rows but the replaced one give -C, and that one C in the first table."""
    x = np.linspace(-12, 12 + 30 / event.multiplier, 400_001)
    times = np.arange(event.batch + 1) if event.replacement else np.array([0, 1])
    p = binom.pmf(times, event.batch, 1 / event.rows) if event.replacement else [1 - event.rate, event.rate]
    kept = [(k, weight) for k, weight in zip(times, p, strict=True) if weight > 1e-20]
    one, two = sum(w * norm.pdf(x, k / event.multiplier) for k, w in kept), norm.pdf(x)
    return [float(np.maximum(one - math.exp(e) * two, 0).sum() * (x[1] - x[0])) for e in EPSILONS]


def test_one_step_without_replacement_costs_what_two_tables_attain():
    assert step().profile(EPSILONS) == pytest.approx(attained(step()), rel=1e-4)


def test_one_step_with_replacement_costs_at_least_what_two_tables_attain_and_little_more():
    event = step(replacement=True)
    ratio = event.profile(EPSILONS) / attained(event)
    assert ratio.min() >= 1 - 1e-4
    assert ratio[:3].max() < 1.01


@pytest.mark.parametrize(("rows", "batch", "multiplier", "count"), [(40_000, 1000, 5.0, 500), (240, 20, 10.0, 1000)])
def test_many_steps_cost_between_a_pair_of_tables_and_the_renyi_accountant(rows, batch, multiplier, count):
    from dp_accounting import dp_event
    from dp_accounting.pld.privacy_loss_distribution import from_mixture_gaussian_mechanism
    from dp_accounting.rdp import RdpAccountant
    from dp_accounting.rdp.rdp_privacy_accountant import NeighborRel

    ours = epsilon(step(rows, batch, multiplier, count=count))
    q = batch / rows
    pair = from_mixture_gaussian_mechanism(multiplier, [0.0, 1.0], [1 - q, q], pessimistic_estimate=False)
    renyi = RdpAccountant(neighboring_relation=NeighborRel.REPLACE_ONE)
    noise = dp_event.GaussianDpEvent(2 * multiplier)  # in units of the clipping norm, of which a replaced row moves two
    renyi.compose(dp_event.SampledWithoutReplacementDpEvent(rows, batch, noise), count)
    assert pair.self_compose(count).get_epsilon_for_delta(DELTA) < ours < renyi.get_epsilon(DELTA)
    assert ours < epsilon(step(rows, batch, multiplier, replacement=True, count=count)) < 1.05 * ours


def test_a_batch_of_all_rows_is_a_gaussian_and_repeated_draws_of_one_row_are_one_larger_change():
    assert epsilon(step(50, 50, 4.0, count=10)) == pytest.approx(epsilon(Gaussian("", 1.0, 4.0, 10)))
    assert epsilon(step(1, 3, 4.0, replacement=True)) == pytest.approx(epsilon(Gaussian("", 1.0, 4.0 / 3)))


def test_the_cost_falls_with_noise_and_rows_and_grows_with_steps():
    one = epsilon(step(count=100))
    assert epsilon(step(count=100, multiplier=3.0)) < one
    assert epsilon(step(count=100, rows=400)) < one < epsilon(step(count=400))
    for multiplier in (0.01, 0.3, 1e6):
        assert 0 <= epsilon(step(multiplier=multiplier, count=100, replacement=True)) < math.inf


def test_it_is_read_back_and_an_impossible_batch_is_refused():
    assert event_of(step().to_dict()) == step()
    with pytest.raises(ValueError, match="no batch of 30 can be drawn from 20 rows"):
        step(rows=20, batch=30)
