"""GEM's step in PyTorch is the one in numpy, up to the last digits of float32."""

import numpy as np
import pytest
import torch

from dpbench.errors import NoEstimateError
from dpbench.inference import generator_descent
from dpbench.inference.query_workload import QueryWorkload
from dpbench.mechanisms.gem import Gem, generator_of

QUERIES = QueryWorkload({"a": 2, "b": 3, "c": 4}, (("a", "b", "c"), ("b", "c"), ("a",)))


def lowered(*, on_device, device="cpu", queries=QUERIES, gamma=0.02, rate=0.01, **change):
    """Logits and steps from the same start, towards made-up answers of every other query."""
    generator = generator_of("gem", queries, 40, 5, (16, 16), device, np.random.default_rng(0))
    settings = {"cosine": True, "iterations": 20, "most": None, "resample": False, "ema": 0, **change}
    one = Gem(queries, generator, 1, rate, **settings)
    columns = queries.columns(np.arange(0, len(queries), 2))
    a, measured = np.random.default_rng(1).uniform(0, 0.4, len(columns)), one.asked(columns)
    logits = one.initial().logits
    if on_device:
        return one.lowered_on_device(columns, a, gamma)
    return one.lowered(logits, columns, a, gamma, lambda p: measured.answers(measured.entries(p)))


@pytest.mark.parametrize("change", [{}, {"most": 3}, {"resample": True}, {"cosine": False}, {"gamma": 0.25}])
def test_steps_on_the_device_are_those_of_numpy(change):
    ours, theirs = (lowered(on_device=on_device, **change) for on_device in (True, False))
    assert ours[1] == theirs[1] > 0
    np.testing.assert_allclose(ours[0], theirs[0], atol=2e-5)
    assert ours[0].shape == theirs[0].shape and ours[0].dtype == theirs[0].dtype == np.float32


@pytest.mark.skipif(not torch.cuda.is_available(), reason="PyTorch finds no GPU here")
def test_steps_on_a_gpu_are_those_of_numpy():
    ours, theirs = lowered(on_device=True, device="cuda"), lowered(on_device=False)
    assert ours[1] == theirs[1]
    np.testing.assert_allclose(ours[0], theirs[0], atol=1e-3)


def test_queries_that_are_asked_a_few_at_a_time_have_the_same_slope(monkeypatch):
    whole = lowered(on_device=True)
    monkeypatch.setattr(generator_descent, "BLOCK", 3 * 40 * 2)
    logits, steps = lowered(on_device=True)
    assert steps == whole[1]
    np.testing.assert_allclose(logits, whole[0], atol=2e-5)


def test_no_step_is_made_where_no_error_is_gamma():
    assert lowered(on_device=True, gamma=2.0)[1] == 0


def test_a_generator_that_diverges_has_no_estimate():
    with pytest.raises(NoEstimateError, match="diverged"):
        lowered(on_device=True, rate=1e36)


def test_another_device_than_the_cpu_has_the_whole_step_there(monkeypatch):
    asked = []
    monkeypatch.setattr(Gem, "lowered_on_device", lambda self, columns, a, gamma: asked.append(gamma) or (None, 0))
    generator = generator_of("gem", QUERIES, 40, 5, (16,), "cpu", np.random.default_rng(0))
    one = Gem(QUERIES, generator, 1, 0.01, True, 20, None, False, 0)
    logits, columns = one.initial().logits, QUERIES.columns(np.arange(2))
    generator.device = "cuda"
    one.lowered(logits, columns, np.zeros(2), 0.5, lambda p: np.zeros(2))
    assert asked == [0.5]
