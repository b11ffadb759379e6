"""DP-SGD: clipping, public rates, the distribution of both engines, its ledger, its limit, and what it refuses."""

import math

import numpy as np
import pytest
from scipy import stats

from dpbench.data.domain import Attribute, Domain
from dpbench.data.encode import Design, second_moments
from dpbench.data.table import Table
from dpbench.errors import UserError
from dpbench.mechanisms import _opacus
from dpbench.mechanisms.dpsgd import SPARSE_SAMPLE, Setting, descend, dpsgd, sparse_of
from dpbench.models.linear import solve
from dpbench.privacy.accounting import spent
from dpbench.privacy.budget import Budget
from dpbench.privacy.events import Gaussian
from dpbench.privacy.ledger import Ledger
from dpbench.releases import Coefficients

DELTA = 1e-5
ENGINES = [descend, _opacus.descend]
SETTING = {"batch_size": 100, "clip": 0.5, "epochs": 2, "learning_rate": 0.1, "expected_rows": 2500}
NO_NOISE = 1e-12


@pytest.fixture
def design(small_domain):
    return Design(small_domain, "grade")


def run(engine, X, y, setting, *, loss="squared", multiplier=NO_NOISE, seed=0, ledger=None):
    ledger = Ledger() if ledger is None else ledger
    rng = np.random.default_rng(seed)
    return engine(rng, ledger, X, y, loss=loss, settings=[setting], multiplier=multiplier)[:, 0]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_a_step_is_the_sum_of_clipped_gradients_over_the_expected_batch(engine, loss):
    """Without noise and with all rows, two steps by hand; some gradients are clipped, others are not."""
    rng = np.random.default_rng(1)
    X, y = 0.5 * rng.normal(size=(40, 3)), rng.choice([-1.0, 1.0], 40)
    theta, clipped, clip = np.zeros(3), 0, 0.5 if loss == "logistic" else 1.5
    for _ in range(2):
        total = np.zeros(3)
        for x, label in zip(X, y, strict=True):
            s = x @ theta
            gradient = (2 * (s - label) if loss == "squared" else -label / (1 + math.exp(label * s))) * x
            clipped += np.linalg.norm(gradient) > clip
            total += gradient * min(1.0, clip / np.linalg.norm(gradient))
        theta = theta - 0.7 * total / 50
    assert 5 < clipped < 75
    found = run(engine, X, y, Setting(None, clip, 2, 0.7, 50), loss=loss)
    assert np.allclose(found, theta, atol=2e-6)  # Opacus adds 1e-6 to each norm


@pytest.mark.parametrize("batch_size", [None, 20])
def test_products_of_one_hot_features_are_those_of_the_same_features_as_an_array(batch_size):
    rng = np.random.default_rng(3)
    X = np.eye(40)[rng.integers(40, size=200)] + 0.5 * np.eye(40)[rng.integers(40, size=200)]
    y, setting = rng.choice([-1.0, 1.0], 200), Setting(batch_size, 0.2, 2, 0.5, 200)
    sparse = sparse_of(X)
    assert sparse is not None and sparse.nnz < SPARSE_SAMPLE * X.size
    found = [
        descend(
            np.random.default_rng(4),
            Ledger(),
            X,
            y,
            loss="logistic",
            settings=[setting] * 3,
            multiplier=1.0,
            sparse=held,
        )
        for held in (None, sparse)
    ]
    assert np.allclose(*found, rtol=1e-12, atol=1e-15)


def test_one_more_row_moves_a_step_by_the_clipping_norm_at_most():
    rng = np.random.default_rng(2)
    setting = Setting(None, 0.3, 1, 1.0, 10)
    for scale in (1e-3, 1.0, 1e3):
        X, y = scale * rng.normal(size=(11, 4)), rng.normal(size=11)
        change = 10 * np.linalg.norm(run(descend, X, y, setting) - run(descend, X[1:], y[1:], setting))
        assert change <= 0.3 * (1 + 1e-6)
    assert change == pytest.approx(0.3)


@pytest.mark.parametrize("engine", ENGINES)
def test_noise_and_samples_have_the_declared_variance(engine):
    """n rows whose gradient is always clipped to -C: theta after T steps has a known mean and variance.

    (lr C / B) (sum of T binomials(n, q) + N(0, T sigma^2)). 600 runs, each moment within 5 standard errors (error rate
    below 1e-5), and the divisor B and rate q are those of the declared number of rows, not of n.
    """
    n, q, steps, sigma, runs = 60, 0.25, 4, 10.0, 600
    setting = Setting(20, 0.1, 1, 1.0, 80)  # B = 20, q = 1/4, T = 4
    thetas = np.array(
        [
            run(engine, np.ones((n, 1)), np.full(n, 50.0), setting, multiplier=sigma, seed=seed)[0]
            for seed in range(runs)
        ]
    )
    unit = 0.1 / 20
    mean, variance = unit * steps * n * q, unit**2 * steps * (n * q * (1 - q) + sigma**2)
    assert abs(thetas.mean() - mean) < 5 * math.sqrt(variance / runs)
    assert abs(thetas.var(ddof=1) / variance - 1) < 5 * math.sqrt(2 / runs)


@pytest.mark.parametrize("engine", ENGINES)
def test_what_is_drawn_is_in_the_ledger_before_the_first_step(engine):
    ledger = Ledger()
    run(engine, np.ones((8, 1)), np.ones(8), Setting(5, 0.1, 1, 1.0, 20), multiplier=3.0, ledger=ledger)
    assert ledger.events == (Gaussian("clipped gradients", 1.0, 3.0, 4, 0.25),)


def test_runs_side_by_side_have_the_law_of_a_run_alone_and_their_ledger_says_that_samples_are_shared():
    """Second column of two against a run alone: two-sample Kolmogorov-Smirnov, 400 runs, level 1e-4."""
    rng = np.random.default_rng(5)
    X, y = rng.normal(size=(50, 1)), rng.normal(size=50)
    pair = [Setting(10, 0.1, 2, 0.1, 50), Setting(10, 0.5, 2, 1.0, 50)]
    alone = [run(descend, X, y, pair[1], multiplier=2.0, seed=seed)[0] for seed in range(400)]
    second, ledger = [], Ledger()
    for seed in range(400, 800):
        ledger = Ledger()
        rng = np.random.default_rng(seed)
        second.append(descend(rng, ledger, X, y, loss="squared", settings=pair, multiplier=2.0)[0, 1])
    assert stats.ks_2samp(alone, second).pvalue > 1e-4
    (event,) = ledger.events
    assert (event.multiplier, event.count, event.rate) == (pytest.approx(2 / math.sqrt(2)), 10, 0.2)
    independent = Ledger([Gaussian("two", 1.0, 2.0, 20, 0.2)])
    assert spent(ledger, DELTA).epsilon > spent(independent, DELTA).epsilon


@pytest.mark.parametrize("epsilon", [0.1, 2.0])
@pytest.mark.parametrize("batch_size", [None, 100])
def test_a_release_spends_its_budget_and_no_more(epsilon, batch_size, small_table, design):
    settings = {**SETTING, "batch_size": batch_size}
    release = dpsgd(small_table, Budget(epsilon, DELTA), np.random.default_rng(0), design=design, **settings)
    assert 0.999 * epsilon <= spent(release.ledger, DELTA).epsilon <= epsilon * (1 + 1e-9)
    assert release[Coefficients].values.shape == (len(design.columns),)
    assert release.nonprivate_inputs == ()


def test_nothing_public_depends_on_the_number_of_rows(small_table, design):
    fewer = small_table.take(np.arange(17))
    released = [
        dpsgd(table, Budget(1.0, DELTA), np.random.default_rng(0), design=design, **SETTING).to_parts()[0]
        for table in (small_table, fewer, small_table.take(np.arange(0)))
    ]
    assert released[0] == released[1] == released[2]


def test_many_steps_without_clipping_and_noise_are_least_squares(small_table, design):
    settings = {"batch_size": None, "clip": 1e3, "epochs": 1500, "learning_rate": 0.3, "expected_rows": 3000}
    release = dpsgd(small_table, Budget(1e12, DELTA), np.random.default_rng(0), design=design, **settings)
    exact = solve(*second_moments(*design.encode(small_table))).coefficients
    assert np.allclose(release[Coefficients].values, exact, atol=1e-2)


@pytest.mark.slow
def test_measured_privacy_loss_stays_under_the_claim_and_a_wrong_rate_is_caught():
    """Clopper-Pearson lower bound on eps (level 1e-6) from 10,000 runs of 4 steps, without and with one row."""
    delta, runs, sigma = 1e-2, 10_000, 1.0

    def lower_bound(batch_size, epochs):
        setting = Setting(batch_size, 1.0, epochs, 1.0, 100)
        without, with_row = (
            setting.batch
            * np.array(
                [
                    run(descend, np.ones((n, 1)), np.full(n, 50.0), setting, multiplier=sigma, seed=seed)[0]
                    for seed in range(runs)
                ]
            )
            for n in (0, 1)
        )
        best = 0.0
        for threshold in np.quantile(with_row, [0.5, 0.8, 0.9, 0.95]):
            hits, false_hits = (with_row > threshold).sum(), (without > threshold).sum()
            p = stats.beta.ppf(1e-6, hits, runs - hits + 1)
            q = stats.beta.ppf(1 - 1e-6, false_hits + 1, runs - false_hits)
            best = max(best, math.log(max(p - delta, 1e-300) / q))
        return best

    claim = spent(Ledger([Gaussian("x", 1.0, sigma, 4, 0.25)]), delta).epsilon
    assert 0.2 * claim < lower_bound(25, 1) < claim  # 4 steps of rate 1/4
    assert lower_bound(None, 4) > claim  # 4 steps of rate 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"batch_size": 2501}, "batch_size = 2501 is larger than expected_rows = 2500"),
        ({"batch_size": 0}, "batch_size must be a whole number of at least 1, not 0"),
        ({"clip": 0.0}, "clip must be a finite number greater than 0, not 0.0"),
        ({"clip": math.inf}, "clip must be a finite number"),
        ({"epochs": 0}, "epochs must be a whole number of at least 1, not 0"),
        ({"epochs": 1.5}, "epochs must be a whole number"),
        ({"learning_rate": -1}, "learning_rate must be a finite number greater than 0"),
        ({"expected_rows": 0}, "expected_rows must be a whole number of at least 1"),
        ({"loss": "hinge"}, "unknown loss 'hinge'"),
        ({"loss": "logistic"}, "'grade' is not; use loss=squared"),
        ({"engine": "opacu"}, "did you mean 'opacus'"),
    ],
)
def test_what_cannot_be_run_is_refused_before_any_draw(change, message, small_table, design):
    rng = np.random.default_rng(0)
    before = rng.bit_generator.state
    with pytest.raises(UserError, match=message):
        dpsgd(small_table, Budget(1.0, DELTA), rng, design=design, **{**SETTING, **change})
    assert rng.bit_generator.state == before


@pytest.mark.parametrize(("budget", "message"), [((1.0, 1e-30), "raise one of them"), ((math.inf, DELTA), "finite")])
def test_a_budget_that_no_noise_meets_is_refused_before_any_draw(budget, message, small_table, design):
    rng = np.random.default_rng(0)
    before = rng.bit_generator.state
    with pytest.raises(UserError, match=message):
        dpsgd(small_table, Budget(*budget), rng, design=design, **SETTING)
    assert rng.bit_generator.state == before


@pytest.mark.parametrize("engine", ["native", "opacus"])
def test_one_seed_gives_one_release(engine, small_table, design):
    one, two = (
        dpsgd(small_table, Budget(1.0, DELTA), np.random.default_rng(9), design=design, **SETTING, engine=engine)
        for _ in range(2)
    )
    assert np.array_equal(one[Coefficients].values, two[Coefficients].values)
    assert np.isfinite(one[Coefficients].values).all()


def test_a_logistic_run_ranks_the_labels(small_domain):
    """A label that is the sign of one attribute: most rows end on their side."""
    domain = Domain((Attribute.binned("x", -1, 1, 8), Attribute.categorical("label", ["no", "yes"])))
    codes = np.random.default_rng(0).integers(0, 8, 2000)
    table = Table(domain, np.stack([codes, codes >= 4], axis=1).astype(np.int64))
    design = Design(domain, "label")
    settings = {**SETTING, "learning_rate": 1.0, "epochs": 10, "loss": "logistic"}
    release = dpsgd(table, Budget(2.0, DELTA), np.random.default_rng(0), design=design, **settings)
    X, y = design.encode(table)
    assert (np.sign(X @ release[Coefficients].values) == y).mean() > 0.9
