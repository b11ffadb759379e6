"""The generator network: what it computes is in tests/mechanisms/test_gem.py."""

import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from dpbench.inference.generator import Generator


def first_logits(seed):
    return Generator(5, 4, 6, (8, 8), "cpu", np.random.default_rng(seed)).logits()


def test_first_weights_follow_from_the_seed_in_whatever_thread():
    """As in an audit, which runs a mechanism on two tables side by side."""
    alone = [first_logits(seed) for seed in range(40)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as threads:
            together = list(threads.map(first_logits, range(40)))
    finally:
        sys.setswitchinterval(interval)
    for a, b in zip(alone, together, strict=True):
        np.testing.assert_array_equal(a, b)


def test_products_in_bfloat16_give_the_same_step_up_to_some_per_cent():
    slope = np.random.default_rng(1).standard_normal((50, 200)).astype(np.float32)
    before, after = {}, {}
    for products in ("float32", "bfloat16"):
        generator = Generator(50, 200, 64, (128, 128), "cpu", np.random.default_rng(0), products)
        generator.restart()
        before[products] = generator.logits()
        generator.step(slope, 0.001)
        after[products] = generator.logits() - before[products]
    for found, most in ((before, 0.01), (after, 0.1)):
        off = np.linalg.norm(found["bfloat16"] - found["float32"]) / np.linalg.norm(found["float32"])
        assert 0 < off < most
        assert found["bfloat16"].dtype == np.float32
