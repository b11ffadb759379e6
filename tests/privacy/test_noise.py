"""Noise has the distribution in the ledger. Each statistical test uses a fixed seed and states its error rate."""

import numpy as np
import pytest
from scipy import stats

from dpbench.privacy import noise
from dpbench.privacy.events import ExponentialMechanism, Gaussian
from dpbench.privacy.ledger import Ledger

DRAWS = 20_000


@pytest.fixture
def rng():
    return np.random.default_rng(5)


@pytest.mark.parametrize(
    ("draw", "distribution"),
    [(noise.gaussian, stats.norm(3, 6)), (noise.laplace, stats.laplace(3, 6))],
)
def test_additive_noise_has_its_scale(rng, draw, distribution):
    """Kolmogorov-Smirnov at level 1e-4."""
    ledger = Ledger()
    values = draw(rng, ledger, np.full(DRAWS, 3.0), sensitivity=2.0, multiplier=3.0, label="x")
    assert stats.kstest(values, distribution.cdf).pvalue > 1e-4
    assert [(event.sensitivity, event.multiplier) for event in ledger.events] == [(2.0, 3.0)]


def test_a_tree_an_objective_and_steps_have_the_scale_of_their_event(rng):
    """Kolmogorov-Smirnov at level 1e-4 each; the trees' scale is its own argument."""
    scale = {"sensitivity": 2.0, "multiplier": 3.0, "label": "x"}
    value = np.full(DRAWS, 3.0)
    drawn = {
        "tree": noise.tree_laplace(rng, Ledger(), scale=6.0, epsilon=0.5, label="x")(value),
        "objective": noise.perturbed_minimiser(
            rng, Ledger(), lambda theta: theta, lambda b: 3 + b, size=DRAWS, offset=0.1, **scale
        ),
        "steps": next(noise.sampled_gaussian(rng, Ledger(), 5, lambda rows: value, rate=0.5, count=1, **scale)),
    }
    for name, values in drawn.items():
        distribution = stats.laplace(3, 6) if name == "tree" else stats.norm(3, 6)
        assert stats.kstest(values, distribution.cdf).pvalue > 1e-4, name


def test_exponential_mechanism_has_its_weights(rng):
    """Chi-square at level 1e-4 against exp(eps u / (2 sensitivity))."""
    scores, epsilon, sensitivity = np.array([0.0, 1.0, 4.0]), 1.5, 2.0
    picks = [
        noise.exponential_mechanism(rng, Ledger(), scores, sensitivity=sensitivity, epsilon=epsilon, label="s")
        for _ in range(DRAWS)
    ]
    weights = np.exp(epsilon * scores / (2 * sensitivity))
    expected = DRAWS * weights / weights.sum()
    assert stats.chisquare(np.bincount(picks, minlength=3), expected).pvalue > 1e-4


def test_an_index_that_is_drawn_exactly_has_the_weights_of_a_little_less_epsilon(rng):
    """Chi-square at level 1e-4. A record may move a level by 2 more than `LEVELS`, which is what epsilon pays for."""
    scores, epsilon, sensitivity, ledger = np.array([0.0, 1.0, 4.0]), 1.5, 2.0, Ledger()
    picks = [
        noise.exponential_mechanism(
            rng, ledger, scores, sensitivity=sensitivity, epsilon=epsilon, label="s", noise="discrete"
        )
        for _ in range(1000)
    ]
    assert {type(event) for event in ledger.events} == {ExponentialMechanism}
    weights = np.exp(epsilon * scores / (2 * sensitivity) * noise.LEVELS / (noise.LEVELS + 2))
    assert stats.chisquare(np.bincount(picks, minlength=3), 1000 * weights / weights.sum()).pvalue > 1e-4


@pytest.mark.parametrize("replacement", [True, False])
def test_several_exponential_mechanisms_are_that_many_in_a_row(rng, replacement):
    """Chi-square at level 1e-4 of pairs, the second drawn from all scores or from those that are left."""
    scores, epsilon, sensitivity, ledger = np.array([0.0, 1.0, 4.0]), 1.5, 2.0, Ledger()
    settings = {"sensitivity": sensitivity, "epsilon": epsilon, "label": "s"}
    pairs = [
        noise.exponential_mechanisms(rng, ledger, scores, count=2, replacement=replacement, **settings)
        for _ in range(DRAWS)
    ]
    assert ledger.events[0].to_dict() | settings == ledger.events[0].to_dict() | {"count": 2}
    weights = np.exp(epsilon * scores / (2 * sensitivity))
    distribution = np.outer(weights, weights) / weights.sum()
    if not replacement:
        np.fill_diagonal(distribution, 0)
        distribution /= distribution.sum(axis=1, keepdims=True) / weights[:, None]
    expected, found = DRAWS * distribution.ravel() / weights.sum(), np.bincount(np.array(pairs) @ [3, 1], minlength=9)
    assert stats.chisquare(found[expected > 0], expected[expected > 0]).pvalue > 1e-4
    assert not found[expected == 0].any()


def test_permute_and_flip_has_its_weights(rng):
    """Chi-square at level 1e-4 against flips of a coin of weight exp(eps (u - max u) / (2 sensitivity))."""
    scores, epsilon = np.array([0.0, 2.0]), 1.0
    picks = [
        noise.permute_and_flip(rng, Ledger(), scores, sensitivity=1.0, epsilon=epsilon, label="s") for _ in range(DRAWS)
    ]
    first = np.exp(epsilon * (0 - 2) / 2) / 2  # the worse one comes first with probability 1/2, and is then accepted
    assert stats.chisquare(np.bincount(picks, minlength=2), DRAWS * np.array([first, 1 - first])).pvalue > 1e-4


def test_selection_is_safe_with_huge_scores(rng):
    scores = np.array([-1e300, 1e300, 0.0])
    assert noise.exponential_mechanism(rng, Ledger(), scores, sensitivity=1.0, epsilon=1.0, label="s") == 1


def test_nothing_else_in_the_project_draws_noise():
    """Mechanisms reach randomness only through privacy.noise (AIM's synthetic rows are sampled by the engine), but for
    the worker that runs a library, whose noise it is.
    """
    from dpbench.resources import PACKAGE

    drawing = (".normal(", ".laplace(", ".gumbel(", ".exponential(", ".standard_normal(", "np.random.rand")
    for path in {*(PACKAGE / "mechanisms").glob("*.py")} - {PACKAGE / "mechanisms" / "_snsynth_worker.py"}:
        text = path.read_text()
        assert not [call for call in drawing if call in text], path.name


def test_samples_and_noise_have_the_distribution_that_the_ledger_says():
    """Binomial sizes, rows in equal parts, normal noise: chi-square and Kolmogorov-Smirnov at level 1e-4 each."""
    ledger, n, steps, rate = Ledger(), 12, 20_000, 0.3
    samples = []

    def sizes_of(rows):
        samples.append(rows)
        return np.full((2, 1), float(len(rows)))

    drawn = noise.sampled_gaussian(
        np.random.default_rng(3),
        ledger,
        n,
        sizes_of,
        sensitivity=2.0,
        multiplier=3.0,
        rate=rate,
        count=steps,
        label="g",
    )
    assert ledger.events == (Gaussian("g", 2.0, 3.0, steps, rate),)  # before anything is drawn
    noises = [noisy - len(rows) for noisy, rows in zip(drawn, samples, strict=False)]
    assert len(noises) == len(samples) == steps
    assert all(len(set(rows)) == len(rows) for rows in samples)
    sizes = np.bincount([len(rows) for rows in samples], minlength=n + 1)
    expected = steps * stats.binom(n, rate).pmf(np.arange(n + 1))
    common = expected > 5
    assert stats.chisquare(sizes[common], expected[common] * sizes[common].sum() / expected[common].sum()).pvalue > 1e-4
    assert stats.chisquare(np.bincount(np.concatenate(samples), minlength=n)).pvalue > 1e-4
    assert stats.kstest(np.concatenate(noises).ravel(), stats.norm(0, 6).cdf).pvalue > 1e-4


def test_at_rate_one_every_row_takes_part():
    (noisy,) = noise.sampled_gaussian(
        np.random.default_rng(0),
        Ledger(),
        5,
        lambda rows: 10.0 * np.arange(5)[rows],
        sensitivity=1.0,
        multiplier=1e-6,
        rate=1.0,
        count=1,
        label="g",
    )
    assert noisy == pytest.approx(np.array([0.0, 10, 20, 30, 40]), abs=1e-4)


def test_a_step_is_asked_for_after_the_answer_to_the_one_before():
    """Gradient descent needs that: without noise, theta halves its distance to 8 in each step."""
    theta = np.zeros(1)
    steps = noise.sampled_gaussian(
        np.random.default_rng(0),
        Ledger(),
        1,
        lambda rows: 8 - theta,
        sensitivity=1.0,
        multiplier=1e-9,
        rate=1.0,
        count=3,
        label="g",
    )
    for noisy in steps:
        theta += noisy / 2
    assert theta[0] == pytest.approx(7.0, abs=1e-6)
