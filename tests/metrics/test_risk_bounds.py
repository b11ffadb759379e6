"""The bounds of excess risk: their constants against what they bound, and where the paper's own would not hold."""

import math

import numpy as np
import pytest

from dpbench.errors import UserError
from dpbench.mechanisms.gen import gen_distance, gen_sigma
from dpbench.mechanisms.selection_bound import unselected_distance
from dpbench.metrics.excess_risk import general_bound, logistic_bound, lower_bound
from dpbench.models.logistic import phi
from dpbench.models.polynomials import polynomial_coefficients
from dpbench.privacy.ledger import Ledger
from dpbench.privacy.noise import exponential_mechanism

LIPSCHITZ = {  # 1-Lipschitz losses
    "logistic": lambda s: -phi(s),
    "hinge": lambda s: np.maximum(0.0, 1 - s),
    "kink": np.abs,
    "steps": lambda s: np.abs(np.mod(s, 0.5) - 0.25),
}
CASES = [(features, degree, norm) for features in (1, 4, 25) for degree in (2, 4, 7) for norm in (0.1, 1.0, 2.0)]


def bernstein(loss, degree, radius):
    """The distance of the polynomial of degree d - 1 from the loss, and the sum of its |coefficients|."""
    b = polynomial_coefficients(loss, degree - 1, radius, "bernstein")
    s = np.linspace(-radius, radius, 4001)
    return np.abs(np.polynomial.polynomial.polyval(s, b) - loss(s)).max(), np.abs(b).sum()


@pytest.mark.parametrize("loss", LIPSCHITZ.values(), ids=list(LIPSCHITZ))
@pytest.mark.parametrize(("features", "degree", "norm"), CASES)
def test_the_general_bound_holds_what_its_proof_needs_of_the_polynomial(loss, features, degree, norm):
    at_zero = float(loss(np.zeros(1))[0])
    bound = general_bound(degree=degree, features=features, norm=norm, rows=1.0, distance=1.0, at_zero=at_zero)
    error, coefficients = bernstein(loss, degree, max(norm * math.sqrt(features), 1.0))
    assert 4 * error <= bound.approximation
    assert 2 * coefficients * (features * max(1.0, norm)) ** (degree - 1) <= bound.marginal


@pytest.mark.parametrize(("features", "degree", "norm"), CASES)
def test_the_logistic_bound_holds_what_its_proof_needs_of_the_polynomial(features, degree, norm):
    bound = logistic_bound(degree=degree, features=features, norm=norm, rows=1.0, distance=1.0)
    error, coefficients = bernstein(LIPSCHITZ["logistic"], degree, max(norm * math.sqrt(features), 1.0))
    assert 4 * error <= bound.approximation
    assert 2 * coefficients * (features * max(1.0, norm)) ** (degree - 1) <= bound.marginal


def test_the_approximation_of_theorem_3_2_as_its_proof_has_it_is_less_than_the_distance_of_figure_1():
    """A degree of 4 on [-5, 5]: 3/(4 * 4) times 5/4, the derivative's Lipschitz constant by appendix A.2."""
    assert 3 / 16 * 5 / 4 < 0.545 < logistic_bound(degree=5, features=25, norm=1, rows=1, distance=0).approximation / 4


def test_the_bounds_in_the_unit_ball_by_hand():
    general = general_bound(degree=5, features=16, norm=0.25, rows=1000, distance=3, lipschitz=2, at_zero=0.5)
    assert general.approximation == pytest.approx(4 * 2.5 * 2 / 2)
    assert general.marginal == pytest.approx(2 * 2.5 * 48**4 * 3 / 1000)
    logistic = logistic_bound(degree=5, features=16, norm=0.25, rows=1000, distance=3)
    assert logistic.approximation == pytest.approx(3 / 4)
    assert logistic.marginal == pytest.approx(2 * (math.log(2) + 1) * 32**4 * 3 / 1000)
    assert logistic.total == pytest.approx(logistic.approximation + logistic.marginal)


@pytest.mark.parametrize("bound", [general_bound, logistic_bound])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"degree": 1}, "degree must be at least 2, not 1"),
        ({"rows": 0}, "rows above 0"),
        ({"distance": -1.0}, "distance of at least 0"),
        ({"norm": math.nan}, "norm"),
    ],
)
def test_what_the_bounds_refuse(bound, change, message):
    with pytest.raises(UserError, match=message):
        bound(**{"degree": 4, "features": 3, "norm": 1.0, "rows": 10, "distance": 0.1, **change})


# --- Mechanism 1 -----------------------------------------------------------------------------------------------------


def test_the_noise_on_every_marginal_is_within_lemma_3_4():
    """200 draws of all marginals of 5 attributes of 3 levels: at lambda = 1 more than 100 + 4 sd may not fail."""
    degree, features, levels, sigma = 2, 4, 3, 2.0
    bound = gen_distance(degree=degree, features=features, levels=levels, sigma=sigma, exponent=1)
    rng = np.random.default_rng(0)
    cells = [levels**k for k in (1, 2) for _ in range(math.comb(features + 1, k))]
    failed = sum(max(np.abs(rng.normal(0, sigma, c)).sum() for c in cells) * 2 > bound for _ in range(200))
    assert failed <= 100 + 4 * math.sqrt(50)
    assert bound == pytest.approx(2 * 9 * math.sqrt(2 * (2 * math.log(2) + 2 * math.log(12))) * 2.0)


def test_the_distance_of_the_corollaries_is_that_of_lemma_3_4():
    """The introduction's own formula of the distance, by the noise of Lemma 3.3."""
    distance = 4 * 6**1.5 * 2**3 * math.sqrt(2 * math.log(1.25e6) * (math.log(2) * 11 + 3 * math.log(12))) / 0.5
    sigma = gen_sigma(degree=3, features=6, epsilon=0.5, delta=1e-6)
    assert gen_distance(degree=3, features=6, levels=2, sigma=sigma, exponent=10) == pytest.approx(distance)


# --- AIM, and the lower bound -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("far", [2.0, 6.0, 10.7])
def test_what_aim_did_not_select_is_no_farther_than_theorem_c_3(far):
    """2,000 selections among one far marginal and 50 exact ones; a rate above 0.5 by 4 standard errors would be 0.545.

    At 10.7, just above 2 (log 51 + log 4), the promise fails whenever the far one is not selected: in 0.19 of cases.
    """
    rng, sigma, distances = np.random.default_rng(0), 1e-6, np.array([far, *[0.0] * 50])
    failed = 0
    for _ in range(2000):
        i = exponential_mechanism(rng, Ledger(), distances, sensitivity=1.0, epsilon=1.0, label="")
        selected = (1.0, np.zeros(4), distances[i] / 4 + sigma * rng.normal(size=4))
        promised = unselected_distance([(1.0, 4)] * 51, selected, sigma=sigma, epsilon=1.0, sensitivity=1.0, fails=0.5)
        failed += far > promised
    assert failed / 2000 < 0.5 + 4 * math.sqrt(0.25 / 2000)
    assert (failed / 2000 > 0.1) == (far > 10)


def test_the_promise_of_theorem_c_3_by_hand():
    """q_i has w = 2 and 8 cells, each 1 off; lambda_1 = sqrt(2 log 4), lambda_2 = log 4. The last candidate counts."""
    candidates, selected = [(2.0, 8), (3.0, 2), (0.5, 32)], (2.0, np.zeros(8), np.ones(8))
    noise, selection = math.sqrt(2 / math.pi) * 0.4, 2 * 3.0 / 2.0
    terms = 2 * 8 + noise * (0.5 * 32 - 2 * 8) + selection * math.log(3)
    terms += math.sqrt(2 * math.log(4)) * 0.4 * 2 * math.sqrt(8) + math.log(4) * selection
    promised = unselected_distance(candidates, selected, sigma=0.4, epsilon=2.0, sensitivity=3.0, fails=0.5)
    assert promised == pytest.approx(terms / 0.5)


def test_the_lower_bound_falls_like_the_cube_of_log_n():
    assert lower_bound(1e4) / lower_bound(1e8) == pytest.approx(8)
    assert lower_bound(math.e) == pytest.approx(1 / 16)
