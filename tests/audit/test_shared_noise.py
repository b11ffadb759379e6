"""Noise that serves twice is found whatever its offset, sign, scale and kind; independent noise is not reported."""

import copy

import numpy as np
import pytest

from dpbench.audit.replay import shared_noise
from dpbench.privacy import noise
from dpbench.privacy.batches import BatchGaussian
from dpbench.privacy.discrete import DiscreteGaussian
from dpbench.privacy.events import Gaussian, Laplace, PureDP
from dpbench.privacy.ledger import Ledger
from dpbench.privacy.recording import Entry, Tape, Watched, record

EVENTS = {
    "gaussian": lambda label, scale: Gaussian(label, scale, 2.0),
    "sampled": lambda label, scale: Gaussian(label, scale, 2.0, 5, 0.1),
    "batch": lambda label, scale: BatchGaussian(label, scale, 2.0, 50, 5, True),
    "laplace": lambda label, scale: Laplace(label, scale, 2.0),
}


def tape_of(*draws):
    """A tape of (event, asked, answered), whose generators are not known."""
    tape = Tape()
    tape += [Entry(event.label, event, asked, answered, None, 0, None, None) for event, asked, answered in draws]
    return tape


@pytest.mark.parametrize("kind", EVENTS)
@pytest.mark.parametrize(("sign", "minus"), [(1, ""), (-1, "minus ")])
def test_one_entry_that_is_used_again_is_found_at_any_place(kind, sign, minus):
    """Of 2,000 and 30 entries, at another scale; what is asked hides some digits of the noise."""
    rng = np.random.default_rng(0)
    one, two = EVENTS[kind]("one", 3.0), EVENTS[kind]("two", 0.5)
    asked, again = rng.uniform(0, 1000, 2000), rng.uniform(0, 1000, (5, 6))
    z, w = rng.normal(size=2000), rng.normal(size=(5, 6))
    assert list(shared_noise(tape_of((one, asked, asked + 6 * z), (two, again, again + w)))) == []
    w[2, 3] = sign * z[1234]
    found = list(shared_noise(tape_of((one, asked, asked + 6 * z), (two, again, again + w))))
    assert found == [f"adds {minus}the same noise to 'one' and to 'two'"]


def test_noise_that_is_used_again_within_one_draw_is_found():
    z = np.random.default_rng(0).normal(size=10)
    event = Gaussian("x", 1.0, 1.0)
    assert list(shared_noise(tape_of((event, np.zeros(10), z)))) == []
    found = set(shared_noise(tape_of((event, np.zeros(10), np.concatenate([z[:5], -z[:5]])))))
    assert found == {"adds minus the same noise to two entries of 'x'"}


def test_discrete_noise_agrees_by_chance_now_and_then_and_is_reported_where_it_does_so_again():
    """Three pairs of 60 entries, at 2^24 values or more in a standard deviation; one pair is not enough."""
    rng = np.random.default_rng(0)
    event = DiscreteGaussian.of("x", 1.0, 1.0, 1)
    z = np.rint(rng.normal(size=60) * event.scale)
    for pairs, found in (1, False), (3, True):
        again = np.concatenate([z[: 60 - pairs], z[:pairs]]) * event.spacing
        assert bool(list(shared_noise(tape_of((event, np.zeros(60), again))))) is found


def test_counts_of_a_tree_are_compared_with_one_another():
    z = np.random.default_rng(0).laplace(size=8)
    event = PureDP("tree", 0.5)
    for noise_again, found in (z + 1, False), (np.roll(z, 3), True):
        tape = tape_of((event, np.zeros(8), z), (event, np.ones(8), 1 + noise_again))
        assert bool(list(shared_noise(tape))) is found


def test_independent_noise_is_rarely_reported():
    """2,000 runs of 300 entries whose noise has 8 digits left of 16: a false alarm has a probability of 1e-6 each."""
    rng, event = np.random.default_rng(0), Gaussian("x", 1.0, 1e-3)
    for _ in range(2000):
        asked = rng.uniform(0, 1e5, 300)
        assert not list(shared_noise(tape_of((event, asked, asked + 1e-3 * rng.normal(size=300)))))


def gaussian(rng, label="x"):
    return noise.gaussian(rng, Ledger(), [0.0], sensitivity=1.0, multiplier=1.0, label=label)


def select(rng):
    return noise.exponential_mechanism(rng, Ledger(), [0.0, 1.0], sensitivity=1.0, epsilon=1.0, label="pick")


@pytest.mark.parametrize(
    ("run", "said"),
    [
        (lambda rng: (gaussian(rng), select(rng), rng.normal()), []),
        (lambda rng: (rng.random(0), gaussian(rng), rng.integers(3, size=0)), []),  # no numbers taken
        (lambda rng: (select(copy.deepcopy(rng)), select(rng)), ["draws 'pick' and 'pick'"]),
        (lambda rng: (rng.uniform(), gaussian(rng)), []),
        (lambda rng: (copy.deepcopy(rng).uniform(), gaussian(rng)), ["draws 'x' and by rng.uniform"]),
        (lambda rng: (copy.deepcopy(rng).choice(5, 2), rng.permutation(4)), ["draws by rng.choice and by rng.permut"]),
        (lambda rng: [one.random() for one in rng.spawn(3)], []),
        (lambda rng: (copy.deepcopy(rng).spawn(1)[0].random(), rng.spawn(1)[0].bytes(4)), ["draws by rng.random and"]),
        (lambda rng: (gaussian(np.random.default_rng(0)), select(np.random.default_rng(0))), ["draws 'x' and 'pick'"]),
    ],
)
def test_draws_from_equal_states_are_found_whatever_they_are_for(run, said):
    with record() as tape:
        run(Watched(np.random.PCG64(1)))
    found = list(shared_noise(tape))
    assert len(found) == len(said) and all(map(str.startswith, found, said)), found


def test_two_runs_share_what_has_a_seed_of_its_own():
    tapes = []
    for seed in (1, 2):
        with record() as tape:
            gaussian(Watched(np.random.PCG64(seed)))
            select(np.random.default_rng(0))
        tapes.append(tape)
    assert list(shared_noise(*tapes)) == ["draws 'pick' and 'pick' from equal states of a generator"]


def test_a_watched_generator_gives_the_numbers_of_the_usual_one():
    watched, usual = Watched(np.random.PCG64(5)), np.random.default_rng(5)
    with record():
        for draw in ("normal", "random", "standard_exponential"):
            assert getattr(watched, draw)() == getattr(usual, draw)()
        assert (watched.choice(50, 10, replace=False) == usual.choice(50, 10, replace=False)).all()
        assert watched.spawn(2)[1].bytes(8) == usual.spawn(2)[1].bytes(8)
