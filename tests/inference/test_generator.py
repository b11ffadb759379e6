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
