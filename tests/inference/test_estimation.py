"""The estimate: the minimum of its loss, the total, edge cases, refusals, repeatability."""

import os
import subprocess
import sys

import numpy as np
import pytest
from scipy.optimize import nnls

from dpbench.inference import InferenceError, JunctionTree, Measurement
from dpbench.inference.estimation import ROUGH
from dpbench.inference.measurements import fold, loss_of
from dpbench.inference.mixture import ProductMixture

from .helpers import marginal, measure, random_cliques, random_sizes, skewed_joint


def test_exact_measurements_of_a_tree_are_reproduced():
    rng = np.random.default_rng(10)
    sizes = {"a": 4, "b": 3, "c": 5}
    joint = rng.dirichlet(np.full(60, 2.0)).reshape(4, 3, 5) * 1000
    model = JunctionTree(tolerance=1e-3).estimate(sizes, measure(joint, sizes, [("a", "b"), ("b", "c")], 1e-3, rng))
    for clique in (("a", "b"), ("b", "c"), ("b",)):
        np.testing.assert_allclose(model.answer([clique])[clique], marginal(joint, list(sizes), clique), atol=0.01)


def test_loss_is_the_least_of_all_distributions():
    """Against non-negative least squares over the joint's cells, an exact method that knows no graphical model."""
    rng = np.random.default_rng(11)
    for _ in range(10):
        sizes = random_sizes(rng, 4, 4)
        names = list(sizes)
        cliques = [(n,) for n in names] + random_cliques(rng, names, 5, [2, 2, 3])
        ms = measure(skewed_joint(rng, sizes, 300.0), sizes, cliques, 15.0, rng)
        model = JunctionTree(tolerance=1e-6, iterations=20_000).estimate(sizes, ms)
        shape = tuple(sizes.values())
        cells = np.eye(int(np.prod(shape))).reshape(-1, *shape)
        rows = [np.stack([marginal(c, names, m.clique).ravel() for c in cells], axis=1) / m.sigma for m in ms]
        rows.append(np.full((1, len(cells)), 1e4))  # the total, so heavy that it holds to 1e-6
        right = np.concatenate([*(m.values.ravel() / m.sigma for m in ms), [1e4 * model.total]])
        _, norm = nnls(np.concatenate(rows), right, maxiter=100_000)
        assert model.loss == pytest.approx(norm**2 / 2, rel=1e-3)


def test_folding_keeps_differences_of_the_loss():
    rng = np.random.default_rng(12)
    sizes = {"a": 3, "b": 4, "c": 2}
    cliques = [("a",), ("a", "b"), ("a", "b"), ("b", "c"), ("a", "b", "c"), ("c",), ()]
    ms = [Measurement(c, rng.normal(10, 20, [sizes[n] for n in c]), float(rng.uniform(1, 9))) for c in cliques]
    target = fold(sizes, ms)
    differences = []
    for _ in range(4):
        joint = rng.dirichlet(np.ones(24)).reshape(3, 4, 2) * target.total
        tables = {c: marginal(joint, list(sizes), c) for c in cliques}
        folded = sum(
            w / 2 * np.sum((tables[c] - t) ** 2)
            for c, t, w in zip(target.cliques, target.tables, target.weights, strict=True)
        )
        differences.append(loss_of(ms, tables) - folded)
    assert np.ptp(differences) < 1e-6 * max(differences)


def test_total_is_the_minimum_variance_unbiased_one():
    ms = [Measurement(("a",), np.array([10.0, 20.0]), 2.0), Measurement(("b",), np.array([9.0, 9.0, 9.0]), 1.0)]
    model = JunctionTree().estimate({"a": 2, "b": 3}, ms)
    assert model.total == pytest.approx((30 / 8 + 27 / 3) / (1 / 8 + 1 / 3))


def test_unmeasured_attributes_are_uniform_and_independent():
    model = JunctionTree().estimate({"a": 2, "b": 3, "c": 4}, [Measurement(("a",), np.array([30.0, 10.0]), 0.1)])
    answers = model.answer([("a", "c"), ("b",)])
    np.testing.assert_allclose(answers["a", "c"], np.array([[7.5] * 4, [2.5] * 4]), atol=0.05)
    np.testing.assert_allclose(answers["b",], model.total / 3)


def test_warm_start_ends_at_the_same_estimate_whatever_its_cliques():
    rng = np.random.default_rng(13)
    sizes = {"a": 4, "b": 3, "c": 5, "d": 2}
    joint = skewed_joint(rng, sizes, 2000.0)
    ms = measure(joint, sizes, [("a",), ("a", "b"), ("b", "c"), ("c", "d")], 10.0, rng)
    cold = JunctionTree(tolerance=1e-5, iterations=20_000).estimate(sizes, ms)
    others = [ms[:2], ms[1:3], measure(joint, sizes, [("a", "c", "d")], 10.0, rng), []]
    for other in others:
        start = JunctionTree().estimate(sizes, other)
        warm = JunctionTree(tolerance=1e-5, iterations=20_000).estimate(sizes, ms, warm_start=start)
        assert warm.loss == pytest.approx(cold.loss, rel=1e-3)
        np.testing.assert_allclose(warm.answer([("a", "b")])["a", "b"], cold.answer([("a", "b")])["a", "b"], atol=1.0)


def rounds(count):
    """Singles, then pairs of four attributes, some of them twice, each with half the noise of the one before it."""
    rng = np.random.default_rng(21)
    sizes = {"a": 12, "b": 9, "c": 10, "d": 8}
    joint, pairs = skewed_joint(rng, sizes, 20_000.0), [("a", "b"), ("b", "c"), ("b", "c"), ("a", "c"), ("c", "d")]
    singles = measure(joint, sizes, [(name,) for name in sizes], 40.0, rng)
    return sizes, singles, [measure(joint, sizes, [r], 40.0 / 2**t, rng)[0] for t, r in enumerate(pairs[:count])]


def test_an_update_is_near_the_estimate_and_takes_fewer_steps():
    """After each of five rounds, the loss is within 0.2 a measured cell of its minimum."""
    sizes, measured, pairs = rounds(5)
    engine = JunctionTree()
    model, steps, of_estimates = engine.estimate(sizes, measured), 0, 0
    for pair in pairs:
        measured = [*measured, pair]
        least = JunctionTree(tolerance=1e-5, iterations=20_000).estimate(sizes, measured)
        of_estimates += engine.estimate(sizes, measured, warm_start=model).iterations
        model = engine.update(sizes, measured, model)
        steps += model.iterations
        assert model.loss - least.loss <= 2 * ROUGH * sum(t.size for t in fold(sizes, measured).tables)
        gap = (model.answer([pair.clique])[pair.clique] - least.answer([pair.clique])[pair.clique]) / pair.sigma
        assert np.sqrt(np.mean(gap**2)) < 0.7
    assert steps < of_estimates / 3


def test_an_update_without_a_step_has_the_last_marginal():
    sizes, measured, pairs = rounds(3)
    before = JunctionTree().estimate(sizes, [*measured, *pairs[:2]])
    model = JunctionTree(tolerance=1e3).update(sizes, [*measured, *pairs], before)
    r = pairs[-1].clique
    moved = [np.abs(m.answer([r])[r] - pairs[-1].values).sum() for m in (before, model)]
    assert moved[1] < moved[0] / 3


def test_an_update_keeps_to_a_tolerance_that_is_given():
    sizes, measured, pairs = rounds(2)
    engine = JunctionTree(tolerance=1e-4, iterations=20_000)
    model = engine.update(sizes, [*measured, *pairs], engine.estimate(sizes, [*measured, *pairs[:1]]))
    assert model.loss == pytest.approx(engine.estimate(sizes, [*measured, *pairs]).loss, abs=0.1)


@pytest.mark.parametrize("sigma", [1e-60, 1e-12, 1e-6, 1.0, 1e6, 1e60])
def test_sigma_of_any_scale_gives_finite_answers(sigma):
    rng = np.random.default_rng(14)
    sizes = {"a": 5, "b": 4, "c": 3}
    joint = skewed_joint(rng, sizes, 500.0)
    ms = [Measurement(m.clique, m.values, sigma) for m in measure(joint, sizes, [("a", "b"), ("b", "c")], 3.0, rng)]
    model = JunctionTree().estimate(sizes, [*ms, Measurement(("a",), joint.sum(axis=(1, 2)), 1.0)])
    tables = model.answer([("a", "b"), ("a", "c")])
    assert model.iterations <= 1000
    assert all(np.all(np.isfinite(t)) and t.sum() == pytest.approx(model.total) for t in tables.values())


@pytest.mark.parametrize("value", [-50.0, 0.0])
def test_marginals_below_or_at_zero_give_the_least_total(value):
    ms = [Measurement(("a", "b"), np.full((3, 2), value), 1.0), Measurement(("a",), np.full(3, value), 2.0)]
    model = JunctionTree().estimate({"a": 3, "b": 2}, ms)
    assert model.total == 1.0
    np.testing.assert_allclose(model.answer([("a", "b")])["a", "b"], 1 / 6, atol=1e-6)


def test_one_level_and_ten_thousand_levels():
    rng = np.random.default_rng(15)
    sizes = {"one": 1, "wide": 10_000, "two": 2}
    truth = rng.multinomial(50_000, rng.dirichlet(np.full(20_000, 0.1))).reshape(10_000, 2).astype(float)
    ms = [
        Measurement(("wide", "two"), truth + rng.normal(0, 5, truth.shape), 5.0),
        Measurement(("one", "two"), truth.sum(axis=0, keepdims=True), 5.0),
        Measurement(("one",), np.array([50_000.0]), 5.0),
    ]
    # The tolerance is per cell: 20,000 noisy cells would let the two precise ones drift by several sigma.
    model = JunctionTree(tolerance=1e-3).estimate(sizes, ms)
    answers = model.answer([("one", "wide"), ("two",)])
    assert answers["one", "wide"].shape == (1, 10_000)
    np.testing.assert_allclose(answers["two",], truth.sum(axis=0), atol=60)
    assert model.sample(100, rng).max(axis=0)[0] == 0


def test_bad_input_is_refused_in_words():
    sizes, good = {"a": 2, "b": 3}, Measurement(("a",), np.array([1.0, 2.0]), 1.0)
    for bad, words in [
        (Measurement(("z",), np.ones(2), 1.0), "unknown attribute 'z'; known: a, b"),
        (Measurement(("b", "a"), np.ones((3, 2)), 1.0), "in the order of the domain"),
        (Measurement(("a",), np.ones(3), 1.0), r"shape \(3,\), its attributes \(2,\)"),
        (Measurement(("a",), np.array([1.0, np.nan]), 1.0), "must be finite"),
        (Measurement(("a",), np.ones(2), 0.0), "sigma is 0.0; it must be > 0"),
        (Measurement(("a",), np.ones(2), 1e-200), "between 1e-60 and 1e"),
    ]:
        with pytest.raises(InferenceError, match=words):
            JunctionTree().estimate(sizes, [good, bad])
    with pytest.raises(InferenceError, match="no attributes"):
        JunctionTree().estimate({}, [])
    with pytest.raises(InferenceError, match="size 0"):
        JunctionTree().estimate({"a": 0}, [])
    with pytest.raises(InferenceError, match="at least 1"):
        JunctionTree(iterations=0).estimate(sizes, [good])
    with pytest.raises(InferenceError, match="must be > 0"):
        JunctionTree(tolerance=0.0).estimate(sizes, [good])
    with pytest.raises(InferenceError, match="warm start has sizes"):
        JunctionTree().estimate(sizes, [good], warm_start=JunctionTree().estimate({"a": 3}, []))
    with pytest.raises(InferenceError, match="must be a MarkovModel, not a MixtureModel"):
        JunctionTree().estimate(sizes, [good], warm_start=ProductMixture(2).estimate(sizes, [good]))


PROGRAM = """
import numpy as np
from dpbench.inference import Measurement, JunctionTree
rng = np.random.default_rng(16)
sizes = dict(a=5, b=4, c=6, d=3)
cliques = [("a",), ("a", "b"), ("b", "c"), ("a", "c"), ("c", "d")]
ms = [Measurement(c, rng.normal(20, 30, [sizes[n] for n in c]), 5.0) for c in cliques]
model = JunctionTree().estimate(sizes, ms)
print(model.cliques, model.iterations, model.loss.hex(), model.answer([("b", "d")])["b", "d"].sum(axis=1).tolist())
print(model.sample(200, rng).sum(axis=0).tolist())
"""


def test_results_do_not_depend_on_the_hash_seed():
    outputs = {
        subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "12345")
    }
    assert len(outputs) == 1
