"""The mixture engine: its gradient, what it recovers, mbi's mixture beside it, and the engine's common behaviour."""

import os
import subprocess
import sys

import numpy as np
import pytest

from dpbench.inference import InferenceError, JunctionTree, Measurement, mixture
from dpbench.inference.measurements import fold
from dpbench.inference.mixture import ProductMixture, adam, objective

from .helpers import marginal, measure, random_cliques, random_sizes, skewed_joint


def mixed_joint(rng, sizes, components, total):
    """The joint table of a mixture of product distributions."""
    joint = np.zeros(tuple(sizes.values()))
    for _ in range(components):
        distribution = np.ones(())
        for size in sizes.values():
            distribution = np.multiply.outer(distribution, rng.dirichlet(np.ones(size)))
        joint += total / components * distribution
    return joint


def pairs(names):
    return [(a, b) for i, a in enumerate(names) for b in names[i + 1 :]]


@pytest.mark.parametrize("most", [0, mixture.MATRIX])
def test_the_slope_is_that_of_the_loss(most, monkeypatch):
    """Central differences in 20 random directions, for cliques of none to four attributes, pairs alone or together."""
    monkeypatch.setattr(mixture, "MATRIX", most)
    rng = np.random.default_rng(0)
    sizes = {"a": 3, "b": 1, "c": 4, "d": 2}
    cliques = [(), ("c",), ("a", "c"), ("b", "d"), ("a", "b", "d"), ("a", "c", "d"), ("a", "b", "c", "d")]
    ms = [Measurement(c, rng.normal(10, 20, [sizes[n] for n in c]), float(rng.uniform(1, 9))) for c in cliques]
    f, logits = objective(sizes, fold(sizes, ms)), rng.normal(size=(10, 5))
    _, slope = f(logits)
    for _ in range(20):
        step = 1e-5 * rng.normal(size=logits.shape)
        change = f(logits + step)[0] - f(logits - step)[0]
        assert change == pytest.approx(2 * float(np.vdot(slope, step)), rel=1e-5)


def test_pairs_have_one_loss_alone_and_together(monkeypatch):
    """Up to the rounding of float32, in which the weights and tables of pairs together are."""
    rng = np.random.default_rng(3)
    sizes = {"a": 3, "b": 1, "c": 4, "d": 2}
    ms = [Measurement(c, rng.normal(10, 20, [sizes[n] for n in c]), float(rng.uniform(1, 9))) for c in pairs("abcd")]
    ms += [Measurement((n,), rng.normal(10, 20, sizes[n]), 3.0) for n in sizes]
    logits, found = rng.normal(size=(10, 5)), []
    for most in (0, mixture.MATRIX):
        monkeypatch.setattr(mixture, "MATRIX", most)
        found.append(objective(sizes, fold(sizes, ms))(logits))
    (alone, slope), (together, other) = found
    assert together == pytest.approx(alone, rel=1e-5)
    np.testing.assert_allclose(other, slope, rtol=1e-4, atol=1e-5 * np.abs(slope).max())


@pytest.mark.parametrize("sigma", [1e-50, 1e-9, 1e50])
def test_no_noise_is_too_small_or_too_large(sigma):
    counts = np.array([[100.0, 300], [400, 200]])
    model = ProductMixture().estimate({"a": 2, "b": 2}, [Measurement(("a", "b"), counts, sigma)])
    answer = model.answer([("a", "b")])["a", "b"]
    assert np.isfinite(model.loss)
    np.testing.assert_allclose(answer, counts, atol=20 if sigma < 1 else 500)


def test_the_loss_and_the_answers_are_those_of_the_mixture_by_definition():
    rng = np.random.default_rng(1)
    sizes = {"a": 3, "b": 4, "c": 2}
    ms = measure(skewed_joint(rng, sizes, 500.0), sizes, [("a",), ("a", "b"), ("a", "b", "c"), ("a", "b")], 9.0, rng)
    model = ProductMixture(components=3, iterations=60).estimate(sizes, ms)
    joint = np.einsum("ka,kb,kc->abc", *model.products.values()) * model.total / 3
    for clique, table in model.answer([("b",), ("a", "c"), ("a", "b", "c")]).items():
        np.testing.assert_allclose(table, marginal(joint, list(sizes), clique))
    gaps = [(marginal(joint, list(sizes), m.clique) - m.values) / m.sigma for m in ms]
    assert model.loss == pytest.approx(sum(np.sum(gap**2) for gap in gaps) / 2)


def test_pairs_of_a_mixture_are_recovered():
    """Without noise, up to the tolerance: half a count in a thousand."""
    rng = np.random.default_rng(2)
    sizes = {"a": 4, "b": 3, "c": 5, "d": 2}
    joint = mixed_joint(rng, sizes, 3, 1000.0)
    ms = [Measurement(c, marginal(joint, list(sizes), c), 1.0) for c in pairs(list(sizes))]
    model = ProductMixture(tolerance=1e-5, iterations=5000).estimate(sizes, ms)
    for clique, table in model.answer([*pairs(list(sizes)), ("c",)]).items():
        np.testing.assert_allclose(table, marginal(joint, list(sizes), clique), atol=0.5)


def test_a_dependence_that_was_measured_is_in_the_rows():
    """b tells a, and c tells whether it does; the rows are within 2% of that, independent ones 40% and more away."""
    a, b, c = np.indices((3, 6, 2))
    joint = np.where((a == b // 2) == (c == 0), 10.0, 1.0)
    joint *= 20_000 / joint.sum()
    names = ["a", "b", "c"]
    sizes = dict(zip(names, joint.shape, strict=True))
    ms = [Measurement(r, marginal(joint, names, r), 5.0) for r in (("a", "b"), ("a", "b", "c"))]
    model = ProductMixture(iterations=3000).estimate(sizes, ms)
    rows = model.sample(20_000, np.random.default_rng(0))
    counts = np.zeros(joint.shape)
    np.add.at(counts, tuple(rows.T), 1)
    assert np.abs(counts - joint).sum() < 0.02 * 20_000
    alone = [marginal(joint, names, (name,)) / 20_000 for name in names]
    assert np.abs(np.einsum("a,b,c->abc", *alone) * 20_000 - joint).sum() > 0.4 * 20_000
    assert model.sample(0, np.random.default_rng(0)).shape == (0, 3)


def test_what_was_not_measured_stays_near_independence():
    """Two marginals only: the first logits' noise averages out over the components; so does an unknown attribute's."""
    sizes = {"a": 4, "b": 5, "unknown": 3}
    ms = [Measurement(("a",), np.array([400.0, 300, 200, 100]), 10.0), Measurement(("b",), np.full(5, 200.0), 10.0)]
    model = ProductMixture().estimate(sizes, ms)
    pair = model.answer([("a", "b")])["a", "b"]
    assert np.abs(pair - np.outer([0.4, 0.3, 0.2, 0.1], np.full(5, 200))).sum() < 0.03 * 1000
    np.testing.assert_allclose(model.answer([("unknown",)])["unknown",], 1000 / 3, rtol=0.05)


def test_it_starts_from_the_one_way_marginals():
    """Before any step: each within a tenth, also where it is measured in a pair alone, and a cell below 0 near 0."""
    counts = np.array([[300.0, 100, -5], [200, 400, 5]])
    start = ProductMixture(iterations=1).estimate({"a": 2, "b": 3}, [Measurement(("a", "b"), counts, 5.0)])
    answers = start.answer([("a",), ("b",)])
    np.testing.assert_allclose(answers["a",], [395, 605], rtol=0.1)
    np.testing.assert_allclose(answers["b",][:2], [500, 500], rtol=0.1)
    assert 0 < answers["b",][2] < 5


def test_random_answers_are_nonnegative_and_of_the_total_of_the_measurements():
    rng = np.random.default_rng(4)
    for _ in range(10):
        sizes = random_sizes(rng, 5, 6)
        cliques = random_cliques(rng, list(sizes), 6, [1, 2, 2, 3])
        ms = measure(skewed_joint(rng, sizes, 300.0), sizes, cliques, 30.0, rng)
        model = ProductMixture(iterations=100).estimate(sizes, ms)
        assert model.total == pytest.approx(fold(sizes, ms).total)
        for clique, table in model.answer([(), *((n,) for n in sizes), *cliques, tuple(sizes)]).items():
            assert table.shape == tuple(sizes[n] for n in clique)
            assert table.min() >= 0
            assert table.sum() == pytest.approx(model.total)


@pytest.mark.parametrize("values", [np.full((3, 2), -50.0), np.zeros((3, 2))])
def test_marginals_below_or_at_zero_give_the_least_total(values):
    model = ProductMixture().estimate({"a": 3, "b": 2}, [Measurement(("a", "b"), values, 1.0)])
    assert model.total == 1.0
    assert np.isfinite(model.answer([("a", "b")])["a", "b"]).all()


def test_a_warm_start_is_no_worse_than_where_it_starts():
    """Also where Adam cannot take a step without climbing: the best of its steps counts, the first among them."""
    rng = np.random.default_rng(5)
    sizes = {"a": 4, "b": 3, "c": 5}
    joint = skewed_joint(rng, sizes, 1000.0)
    ms = measure(joint, sizes, [("a",), ("b",), ("c",), ("a", "b")], 5.0, rng)
    model = ProductMixture(iterations=2000, tolerance=1e-6).estimate(sizes, ms)
    for iterations in (1, 3, 200):
        assert ProductMixture(iterations=iterations).estimate(sizes, ms, warm_start=model).loss <= model.loss
    more = [*ms, *measure(joint, sizes, [("b", "c")], 5.0, rng)]
    cold, warm = ProductMixture().estimate(sizes, more), ProductMixture().estimate(sizes, more, warm_start=model)
    assert warm.iterations < cold.iterations
    assert warm.loss < 1.1 * cold.loss


def test_steps_end_by_the_gain_of_the_last_fifty():
    """On a straight slope every step gains the same: never below a smaller tolerance, soon below a larger one."""
    gain = 0.03 * 50  # Adam's rate times the window, at a slope of 1
    assert adam(lambda x: (float(x.sum()), np.ones_like(x)), np.zeros((1, 1)), 300, 0.99 * gain)[1] == 300
    assert adam(lambda x: (float(x.sum()), np.ones_like(x)), np.zeros((1, 1)), 300, 1.01 * gain)[1] == 51


def test_steps_end_where_so_many_in_a_row_have_not_lowered_the_loss():
    """Of the values 4 and 3 the third and the fourth one is no gain; nor is a hundred-millionth of a gain."""

    def steps(*values, **options):
        left = iter(values)
        return adam(lambda x: (next(left), np.ones_like(x)), np.zeros((1, 1)), len(values), **options)[1]

    assert steps(5.0, 4.0, 4.0, 4.0, 3.0, 3.0, 3.0, 3.0, 2.0, patience=2) == 8
    assert steps(5.0, 4.0, 4.0, 4.0, 3.0, 3.0, 3.0, 3.0, 2.0, patience=3) == 9
    assert steps(5.0, 4.0, 4.0, 4.0, 3.0, 3.0, 3.0, 3.0, 2.0) == 9
    assert steps(5.0, 5.0 * (1 - 1e-8), 5.0 * (1 - 2e-8), 1.0, patience=1) == 3


def test_its_size_is_that_of_its_components_whatever_is_measured():
    sizes = {"p": 10_000, "q": 10_000}
    assert ProductMixture().smallest_mb(sizes) == 100 * 20_000 * 8 / 2**20
    small = {"a": 2, "b": 3}
    model = ProductMixture(components=7).estimate(small, [Measurement(("a", "b"), np.ones((2, 3)), 1.0)])
    assert model.size_mb == ProductMixture(7).smallest_mb(small)
    assert model.cliques == (("a", "b"),)


def test_bad_input_is_refused_in_words():
    sizes, good = {"a": 2, "b": 3}, Measurement(("a",), np.array([1.0, 2.0]), 1.0)
    with pytest.raises(InferenceError, match="unknown attribute 'z'"):
        ProductMixture().estimate(sizes, [Measurement(("z",), np.ones(2), 1.0)])
    with pytest.raises(InferenceError, match="no attributes"):
        ProductMixture().estimate({}, [])
    for settings in ({"iterations": 0}, {"components": 0}):
        with pytest.raises(InferenceError, match="at least 1"):
            ProductMixture(**settings).estimate(sizes, [good])
    with pytest.raises(InferenceError, match="must be > 0"):
        ProductMixture(tolerance=0.0).estimate(sizes, [good])
    for other in (ProductMixture().estimate({"a": 2}, [good]), ProductMixture(components=7).estimate(sizes, [good])):
        with pytest.raises(InferenceError, match="the warm start has"):
            ProductMixture().estimate(sizes, [good], warm_start=other)
    with pytest.raises(InferenceError, match="must be a MixtureModel, not a MarkovModel"):
        ProductMixture().estimate(sizes, [good], warm_start=JunctionTree().estimate(sizes, [good]))


PROGRAM = """
import numpy as np
from dpbench.inference import Measurement
from dpbench.inference.mixture import ProductMixture
rng = np.random.default_rng(16)
sizes = dict(a=5, b=4, c=6, d=3)
cliques = [("a",), ("a", "b"), ("b", "c"), ("a", "c"), ("c", "d")]
ms = [Measurement(c, rng.normal(20, 30, [sizes[n] for n in c]), 5.0) for c in cliques]
model = ProductMixture().estimate(sizes, ms)
print(model.logits.tobytes().hex(), model.loss.hex(), model.sample(200, rng).tobytes().hex())
"""


def test_the_same_bytes_in_every_process():
    outputs = {
        subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env={**os.environ, "PYTHONHASHSEED": seed, "OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "12345")
    }
    assert len(outputs) == 1


def test_other_seeds_start_elsewhere():
    ms = [Measurement(("a", "b"), np.arange(6.0).reshape(2, 3), 1.0)]
    a, b = (ProductMixture(seed=seed).estimate({"a": 2, "b": 3}, ms) for seed in (0, 1))
    assert not np.array_equal(a.logits, b.logits)


@pytest.mark.slow
def test_against_the_mixture_of_mbi():
    """The same answers from the same logits, and a loss no higher than that of mbi's own optimiser."""
    mbi, extensions = pytest.importorskip("mbi"), pytest.importorskip("mbi.extensions")
    optax, jax = pytest.importorskip("optax"), pytest.importorskip("jax")
    rng = np.random.default_rng(6)
    sizes = {"a": 4, "b": 3, "c": 5, "d": 2}
    cliques = [*((n,) for n in sizes), ("a", "b"), ("b", "c"), ("a", "c"), ("b", "c", "d")]
    ms = measure(skewed_joint(rng, sizes, 1000.0), sizes, cliques, 5.0, rng)
    domain = mbi.Domain.fromdict(sizes)
    ours = ProductMixture(components=20, tolerance=1e-4).estimate(sizes, ms)
    with jax.enable_x64(True):
        columns = np.split(ours.logits, np.cumsum(list(sizes.values()))[:-1], axis=1)
        twin = extensions.MixtureOfProducts(dict(zip(sizes, columns, strict=True)), domain, ours.total)
        for clique, table in ours.answer([("a",), ("a", "d"), ("b", "c", "d")]).items():
            np.testing.assert_allclose(table, twin.project(clique).values, rtol=1e-9)
        linear = [mbi.LinearMeasurement(m.values.ravel(), m.clique, m.sigma) for m in ms]
        estimator = extensions.MixtureOfProductsEstimator(optimizer=optax.adam(0.1), num_components=20)
        theirs = estimator.estimate(domain, linear, iters=500)
        assert theirs.total == pytest.approx(ours.total)
        gaps = [(np.asarray(theirs.project(m.clique).values) - m.values) / m.sigma for m in ms]
    assert ours.loss <= 1.1 * sum(np.sum(gap**2) for gap in gaps) / 2
