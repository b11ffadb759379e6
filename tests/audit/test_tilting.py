"""Runs at a tilt: eps of distributions that are known, of the confidence that is stated, and two runs side by side."""

from itertools import product

import numpy as np
import pytest

from dpbench.audit.lower_bound import tilted_bound
from dpbench.audit.tilted_audit import Tilted, lockstep
from dpbench.privacy import noise
from dpbench.privacy.accounting import gaussian_epsilon
from dpbench.privacy.events import Laplace
from dpbench.privacy.ledger import Ledger
from dpbench.privacy.pld import composed_epsilon
from dpbench.privacy.projections import projection_epsilon
from dpbench.privacy.recording import ReplayError

DELTA = 1e-5


def losses(asked, tilt, runs, seed=0):
    """(m,) losses and cumulants of `asked` (rng, ledger, move), where the value is moved by 1 or by 0."""
    made = []
    for k in range(runs):
        tilted = Tilted(tilt, np.random.default_rng([seed, k]))
        one, two = ((lambda move=move: asked(np.random.default_rng(0), Ledger(), move)) for move in (1.0, 0.0))
        lockstep(one, two, tilted.answer_of)
        made.append((tilted.loss, tilted.cumulant))
    return np.array(made).T


def gaussian(rng, ledger, move):
    noise.gaussian(rng, ledger, [move, 2.0], sensitivity=1.0, multiplier=0.5, label="sum")


def laplace(rng, ledger, move):
    for _ in range(4):
        noise.laplace(rng, ledger, [2 - move, 0.0], sensitivity=1.0, multiplier=1.0, label="sum")


def selections(rng, ledger, move):
    for _ in range(4):
        noise.exponential_mechanism(rng, ledger, [move, -move], sensitivity=1.0, epsilon=1.0, label="pick")


def rows(rng, ledger, move):
    """Of an empty table and of one with a record of norm 1, among noise that the record moves too."""
    gram = 16 * np.eye(2) + move * np.array([[0.36, 0.48], [0.48, 0.64]])
    noise.projection(rng, ledger, gram, sensitivity=1.0, multiplier=4.0, count=60, label="rows")
    noise.gaussian(rng, ledger, [move], sensitivity=1.0, multiplier=2.0, label="sum")


KNOWN = {
    "gaussian": (gaussian, gaussian_epsilon(2.0, DELTA), 2.0),
    "rows": (rows, projection_epsilon(4.0, 60, DELTA, 0.5), 6.0),
    "laplace": (laplace, composed_epsilon([Laplace("", 1.0, 1.0, 4)], DELTA), 2.0),
}


@pytest.mark.parametrize("name", KNOWN)
def test_the_bound_is_near_what_is_known_and_not_above(name):
    """Confidence 1 - 1e-4, 1,000 runs at a fixed seed; the distribution of Laplace noise is on a grid (0.1%)."""
    asked, epsilon, tilt = KNOWN[name]
    bound = tilted_bound(*losses(asked, tilt, 1000), tilt, DELTA, 0.9999)
    assert 0.93 * epsilon < bound <= epsilon * 1.001


def test_a_tilt_at_which_the_cumulant_is_infinite_is_said_so():
    """Of rows of 1 + t against 1 it is from a tilt of 1 / t on."""
    assert np.isfinite(losses(rows, 15.9, 1)).all()
    with pytest.raises(ValueError, match="cumulant of the projections is infinite"):
        losses(rows, 16.1, 1)


@pytest.mark.slow
def test_selections_compose_as_by_hand():
    """The largest delta at which eps = 1 is refuted is near that of the four selections; confidence 1 - 1e-4."""
    p = 1 / (1 + np.exp(-1.0))
    loss = np.log(np.array([p, 1 - p]) / 0.5)
    delta = sum(
        np.prod([p if pick == 0 else 1 - p for pick in picks]) * max(-np.expm1(1.0 - loss[list(picks)].sum()), 0)
        for picks in product((0, 1), repeat=4)
    )
    made = losses(selections, 1.0, 1000)
    assert tilted_bound(*made, 1.0, 1.02 * delta, 0.9999) < 1.0 < tilted_bound(*made, 1.0, 0.7 * delta, 0.9999)


@pytest.mark.slow
def test_a_bound_is_seldom_above_the_truth():
    """Noise of exactly mu = 2: of 400 bounds at confidence .95 at most 40 exceed its eps (error rate 1e-5)."""
    rng, mu, tilt = np.random.default_rng(0), 2.0, 2.0
    epsilon = gaussian_epsilon(mu, DELTA)
    cumulants = np.full(200, tilt * (tilt + 1) * mu**2 / 2)
    drawn = (mu**2 * (tilt + 0.5) + mu * rng.normal(size=200) for _ in range(400))
    bounds = np.array([tilted_bound(x, cumulants, tilt, DELTA, 0.95) for x in drawn])
    assert np.sum(bounds > epsilon) <= 40
    assert np.median(bounds) > 0.95 * epsilon


@pytest.mark.slow
@pytest.mark.parametrize("replacement", [True, False])
def test_weights_of_several_indices_have_mean_1(replacement):
    """Of 1,000 runs the mean is 1 within 5 standard errors."""

    def picks(rng, ledger, move):
        settings = {"sensitivity": 1.0, "epsilon": 1.0, "label": "picks", "count": 3, "replacement": replacement}
        answered = noise.exponential_mechanisms(rng, ledger, [move, -move, 0.0, 1.0], **settings)
        assert replacement or len(set(answered)) == 3

    loss, cumulants = losses(picks, 1.0, 1000)
    weights = np.exp(cumulants - loss)
    assert abs(np.mean(weights) - 1) < 5 * np.std(weights) / np.sqrt(1000)


def test_both_runs_get_the_same_answers_and_what_fails_is_raised():
    answered = []

    def asks(times, then=None):
        def run():
            answered.append([gaussian_of(k) for k in range(times)])
            if then:
                raise then

        return run

    def gaussian_of(k):
        value = noise.gaussian(np.random.default_rng(0), Ledger(), [k], sensitivity=1.0, multiplier=1.0, label="x")
        return float(value[0])

    lockstep(asks(2), asks(2), lambda one, two: one.asked + two.asked + 0.5)
    assert answered == [[0.5, 2.5], [0.5, 2.5]]
    for one, two, error in [
        (asks(1, KeyError("one")), asks(2), KeyError),
        (asks(2), asks(1, KeyError("two")), KeyError),
        (asks(1), asks(2), ReplayError),
        (asks(2), asks(1), ReplayError),
    ]:
        with pytest.raises(error):
            lockstep(one, two, lambda one, two: one.asked)


def test_noise_without_a_tilted_distribution_is_refused():
    def tree(move):
        noise.tree_laplace(np.random.default_rng(0), Ledger(), scale=1.0, epsilon=1.0, label="tree")(np.array([move]))

    with pytest.raises(ValueError, match="no tilted distribution is known for pure"):
        lockstep(lambda: tree(0.0), lambda: tree(1.0), Tilted(1.0, np.random.default_rng(0)).answer_of)
