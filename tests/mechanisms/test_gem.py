"""GEM and GEM-Pub: their loss by hand, a round, the averages, their limit without noise, and what they refuse."""

import numpy as np
import pytest
from inference.helpers import answers_of

from dpbench.errors import NoEstimateError, UserError
from dpbench.inference.product_queries import ProductQueries, softmax
from dpbench.inference.query_workload import QueryWorkload
from dpbench.mechanisms.adaptive import Asked
from dpbench.mechanisms.gem import Gem, absolute_loss, cosine_rate, gem, generator_of, worst
from dpbench.mechanisms.gem_pub import gem_pub, pretrain, pretrain_on_worst, public_answers
from dpbench.mechanisms.workload import cliques_of
from dpbench.privacy.accounting import spent
from dpbench.privacy.budget import Budget
from dpbench.releases import Distribution, Marginals, SyntheticRows

DELTA = 1e-7
QUERIES = QueryWorkload({"a": 2, "b": 3}, (("a", "b"), ("b",)))
SMALL = {"components": 60, "latent": 8, "hidden": (32, 32), "rate": 0.005}


def asked(queries, answers):
    return Asked(np.array(queries), np.ones(len(queries)), np.array(answers), 1, 0.1)


def family(*, queries=QUERIES, seed=0, hidden=(16,), **change):
    generator = generator_of("gem", queries, 40, 5, hidden, "cpu", np.random.default_rng(seed))
    settings = {"rounds": 1, "rate": 0.01, "cosine": True, "iterations": 100, "most": None, "resample": False, "ema": 0}
    return Gem(queries, generator, **{**settings, **change})


def made(table, epsilon=1.0, seed=0, method=gem, **settings):
    budget, rng = Budget(epsilon, DELTA, "replace"), np.random.default_rng(seed)
    return method(table, budget, rng, **{"rounds": 5, **SMALL, **settings})


def error(table, release):
    queries = QueryWorkload(table.domain.sizes, cliques_of(table.domain, 3))
    return np.abs(queries.of_rows(table.codes) - answers_of(release[Distribution].model, queries.cliques)).max()


def test_the_loss_of_one_round_by_hand():
    """(a = 1, b = 2) is measured as 0.5 and is (0.7 0.5 + 0.7 1) / 2 = 0.525; b = 0 is measured as 0.6 and is 0.2."""
    distributions = np.array([[0.3, 0.3], [0.7, 0.7], [0.3, 0.1], [0.2, -0.1], [0.5, 1.0]])
    measured = ProductQueries(QUERIES.columns(np.array([5, 6])), 5)
    c = np.array([0.5, 0.6]) - measured.answers(measured.entries(distributions))
    value, slope = absolute_loss(measured, distributions, c)
    assert value == pytest.approx((0.025 + 0.4) / 2)
    np.testing.assert_allclose(slope[1], distributions[4] / 2 / 2)  # to answer less is better
    np.testing.assert_allclose(slope[4], distributions[1] / 2 / 2)
    np.testing.assert_allclose(slope[2], -1 / 2 / 2)


def test_a_step_is_of_the_errors_of_gamma_or_more_and_of_so_many_at_most():
    c = np.array([0.1, -0.5, 0.2, 0.3, -0.2])
    assert worst(c, 0.2, None).tolist() == [1, 2, 3, 4]
    assert sorted(worst(c, 0.2, 2)) == [1, 3]
    assert worst(c, 0.6, 2).size == 0


@pytest.mark.parametrize("resample", [False, True])
def test_a_round_ends_as_soon_as_all_errors_are_half_of_the_largest(resample):
    """The errors are those before the round; here none was averaged before."""
    one = family(resample=resample)
    start, told = one.initial(), asked([5, 6], [0.5, 0.1])
    before = np.abs(told.answers - one.answers(start)[[5, 6]])
    D = one.update(start, told)
    after = np.abs(told.answers - one.answers(D)[[5, 6]])
    assert D.largest == pytest.approx(before.max(), abs=1e-6)
    assert after.max() < before.max() / 2 and 1 < D.steps < 100
    last = family(iterations=D.steps - 1, resample=resample)
    short = last.update(last.initial(), told)
    assert np.abs(told.answers - last.answers(short)[[5, 6]]).max() >= before.max() / 2


def test_measurements_beyond_0_and_1_are_those_ends():
    found = set()
    for answers in ([1.7, -0.3], [1.0, 0.0]):
        one = family()
        D = one.update(one.initial(), asked([5, 6], answers))
        found.add((D.largest, D.steps, D.logits.tobytes()))
    assert len(found) == 1


def test_the_threshold_is_a_moving_average_of_the_largest_errors():
    one = family(rounds=9)
    first = one.update(one.initial(), asked([5], [0.5]))
    error = np.abs(0.9 - one.answers(first)[6])
    second = one.update(first, asked([5, 6], [0.5, 0.9]))
    assert second.largest == pytest.approx((first.largest + error) / 2, abs=1e-6)


def test_the_steps_are_those_of_adam_on_a_cosine():
    """Against PyTorch's own optimiser and schedule."""
    import torch

    ours, theirs = family().generator, family().generator
    slopes = np.random.default_rng(0).normal(size=(3, 5, 40)).astype(np.float32)
    adam = torch.optim.Adam(theirs.network.parameters(), lr=0.01)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(adam, 3, eta_min=1e-8)
    ours.restart()
    for i, slope in enumerate(slopes):
        ours.logits()
        ours.step(slope, cosine_rate(0.01, i / 3))
        theirs.logits()
        adam.zero_grad()
        theirs.output.backward(torch.from_numpy(np.ascontiguousarray(slope.T)))
        adam.step()
        schedule.step()
    np.testing.assert_allclose(ours.logits(), theirs.logits(), atol=1e-4)


def test_the_weights_of_the_second_half_are_averaged():
    """Rounds 2 and 3 of 3: beta theta_2 + (1 - beta) theta_3, and the last ones at beta = 0."""
    found = {}
    for beta in (0, 0.25):
        one = family(rounds=3, ema=beta)
        D, thetas = one.initial(), []
        for queries, answers in (([5], [0.9]), ([5, 6], [0.9, 0.8]), ([5, 6, 0], [0.9, 0.8, 0.5])):
            D = one.update(D, asked(queries, answers))
            thetas.append(one.generator.averaged(None, 0))
        assert (D.rounds, D.average is None) == (3, False)
        found[beta] = D.average
        for name, weight in thetas[2].items():
            expected = beta * thetas[1][name] + (1 - beta) * weight
            np.testing.assert_allclose(D.average[name].numpy(), expected.numpy(), rtol=1e-5, atol=1e-7)
        assert np.allclose(one.output(D), D.logits, atol=1e-6) == (beta == 0)
    assert any((found[0][name] != found[0.25][name]).any() for name in found[0])


def test_a_rate_that_is_too_large_ends_without_an_estimate(small_table):
    with pytest.raises(NoEstimateError, match="diverged"):
        made(small_table, rate=1e30)


def test_almost_without_noise_the_workload_is_recovered(small_table):
    assert error(small_table, made(small_table, 1e6, rounds=60)) < 0.015


def test_almost_without_noise_the_workload_is_recovered_from_other_public_rows(small_table):
    """Public rows of three attributes, the first fifth of the private ones."""
    public = small_table.take(np.arange(len(small_table) // 5)).project(["grade", "sex", "age"])
    release = made(small_table, 1e6, rounds=60, method=gem_pub, public=public, pretraining=2)
    assert error(small_table, release) < 0.015


def test_one_round_of_gem_pub_is_one_of_gem_from_the_pretrained_generator(small_table):
    """Almost without noise T = 1 measures the query that it answers worst, and its error falls below a half."""
    public = small_table.take(np.arange(len(small_table) // 5))
    queries = QueryWorkload(small_table.domain.sizes, cliques_of(small_table.domain, 3))
    generator = generator_of("gem_pub", queries, 60, 8, (32, 32), "cpu", np.random.default_rng(0).spawn(2)[0])
    one = Gem(queries, generator, 1, rate=0.005, cosine=True, iterations=100, most=100, resample=False, ema=0)
    pretrain(one, *public_answers(queries, public), 2)
    true, start = queries.of_rows(small_table.codes), one.initial()
    before = np.abs(true - one.answers(start))
    query = int(before.argmax())
    expected = one.answers(one.update(start, asked([query], [true[query]])))
    release = made(small_table, 1e6, rounds=1, ema=0, method=gem_pub, public=public, pretraining=2)
    found = answers_of(release[Distribution].model, queries.cliques)
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert np.abs(true - found)[query] < before[query] / 2


def test_the_same_seed_trains_the_same_network_and_leaves_the_global_generator_alone(small_table):
    import torch

    before = torch.random.get_rng_state()
    one, two, other = (made(small_table, seed=seed)[Distribution].model.logits for seed in (0, 0, 1))
    assert one.tobytes() == two.tobytes() != other.tobytes()
    assert torch.equal(before, torch.random.get_rng_state())


@pytest.mark.parametrize("method", [gem, gem_pub])
def test_the_release_keeps_its_budget_and_holds_pairs_and_rows(small_table, method):
    public = {} if method is gem else {"public": small_table.take(np.arange(50)), "pretraining": 1}
    for calibration in ("tight", "paper"):
        release = made(small_table, 0.7, calibration=calibration, method=method, **public)
        assert spent(release.ledger, DELTA).epsilon <= 0.7 * (1 + 1e-9)
    assert len(release[SyntheticRows].table) == len(small_table)
    assert list(release[Marginals].tables) == list(cliques_of(small_table.domain, 2))
    assert bool(release.nonprivate_inputs) == (method is gem_pub)


def test_pretraining_lowers_the_errors_of_all_marginals_that_public_rows_have(small_table):
    """Public rows without work: of 4 marginals of three attributes 1 is left."""
    queries = QueryWorkload(small_table.domain.sizes, cliques_of(small_table.domain, 3))
    shared, answers = public_answers(queries, small_table.project(["grade", "sex", "age"]))
    assert shared.cliques == (("age", "sex", "grade"),)
    np.testing.assert_array_equal(answers, small_table.marginal(("age", "sex", "grade")).ravel() / len(small_table))
    one = family(queries=queries, hidden=(32, 32))

    def largest():
        return np.abs(answers - shared.of_products(softmax(one.initial().logits, list(queries.sizes.values())).T)).max()

    before = largest()
    pretrain(one, shared, answers, 4)
    assert largest() < before / 4


@pytest.mark.parametrize("patience", [1, 30])
def test_pretraining_on_the_worst_queries_ends_after_so_many_times_without_a_gain_and_keeps_the_best(
    small_table, patience
):
    """Steps that are too long raise the error again. `before` has the largest error before each time."""
    queries = QueryWorkload(small_table.domain.sizes, cliques_of(small_table.domain, 2))
    answers, one, before = queries.of_rows(small_table.codes), family(queries=queries, rate=0.1, iterations=5), []
    restart = one.generator.restart
    one.generator.restart = lambda: (before.append(np.abs(answers - one.answers(one.initial())).max()), restart())
    pretrain_on_worst(one, queries, answers, 30, patience)
    assert np.abs(answers - one.answers(one.initial())).max() <= min(before[1:]) < before[0]
    assert len(before) == min(30, np.argmin(before[1:]) + patience + 2)


def test_good_public_rows_help_where_little_is_measured(small_table):
    """Half of the private rows, in the mean of 2 seeds of 2 rounds at epsilon = 0.5."""
    public = small_table.take(np.arange(0, len(small_table), 2))

    def mean_error(**settings):
        return np.mean([error(small_table, made(small_table, 0.5, seed, rounds=2, **settings)) for seed in range(2)])

    assert mean_error(method=gem_pub, public=public, pretraining=6) < 0.7 * mean_error()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"rounds": 0}, "gem: rounds must be at least 1"),
        ({"components": 1}, "gem: components must be at least 2"),
        ({"latent": 0}, "gem: latent must be at least 1"),
        ({"hidden": [4, 0]}, r"gem: hidden\[1\] must be at least 1"),
        ({"iterations": 0}, "gem: iterations must be at least 1"),
        ({"most": 0}, "gem: most must be at least 1"),
        ({"rate": 0.0}, "gem: rate must be greater than 0"),
        ({"ema": 1.0}, "gem: ema must be at least 0 and less than 1"),
        ({"rows": 0}, "gem: rows must be at least 1"),
        ({"device": "gpu"}, "unknown device 'gpu'"),
        ({"products": "float16"}, "unknown products 'float16'"),
        ({"workload": {"degree": 5}}, "k between 1 and 4"),
    ],
)
def test_what_is_refused(small_table, settings, message):
    with pytest.raises(UserError, match=message):
        made(small_table, **settings)


def test_a_device_that_is_not_there_is_refused(small_table, monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with pytest.raises(UserError, match="device=cuda: PyTorch finds no such device"):
        made(small_table, device="cuda")


@pytest.mark.parametrize(
    ("columns", "settings", "message"),
    [
        (None, {}, "needs public rows: set dataset.public_data"),
        (["age", "sex"], {}, "no marginal of the workload is over attributes of the public rows alone, age, sex"),
        (["age", "sex", "work"], {"pretraining": 0}, "pretraining must be at least 1"),
    ],
)
def test_what_gem_pub_refuses(small_table, columns, settings, message):
    public = None if columns is None else small_table.project(columns)
    with pytest.raises(UserError, match=message):
        made(small_table, method=gem_pub, public=public, **settings)
