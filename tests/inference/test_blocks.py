"""A clique that is split into three faces gives what its filled table gives."""

import numpy as np
import pytest

from dpbench.inference.blocks import Dense, Factor, Triple

SHAPE = (3, 4, 5, 2)
PAIRS = [0b0011, 0b0110, 0b0101, 0b1001]  # masks of tables in a, b, c with d in no face of its own


def swept(block, tables, separator, total):
    """Both sweeps over one clique; its message and the marginals on the tables."""
    outs = {mask: np.empty(table.shape) for mask, table in tables.items()}
    for mask, table in tables.items():
        block.attach(mask, Factor(table))
        block.emit(mask, outs[mask])
    message, marginal = (np.empty([SHAPE[i] for i in range(4) if separator >> i & 1]) for _ in range(2))
    sent = Factor(message)
    block.link(separator, sent, marginal)
    block.collect()
    sent.make_logs()
    weights = np.exp(message - message.max())
    marginal[...] = weights * total / weights.sum()
    assert block.distribute()
    return message, outs


@pytest.mark.parametrize("scale", [1.0, 60.0])
def test_three_faces_give_what_the_filled_table_gives(scale):
    rng = np.random.default_rng(60)
    tables = {m: rng.normal(0, scale, [SHAPE[i] for i in range(4) if m >> i & 1]) for m in PAIRS}
    dense, triple = Dense(0b1111, SHAPE), Triple(0b1111, SHAPE, (0b1000, 0b0001, 0b0010, 0b0100))
    (m1, outs1), (m2, outs2) = (swept(block, tables, 0b0011, 50.0) for block in (dense, triple))
    np.testing.assert_allclose(m1, m2, rtol=1e-9)
    for mask in PAIRS:
        np.testing.assert_allclose(outs1[mask], outs2[mask], rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(dense.belief(), triple.belief(), rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(dense.onto(0b0110), triple.onto(0b0110), rtol=1e-7, atol=1e-9)
    assert not triple.filled
    triple.fill()
    assert triple.filled
    triple.reset()
    assert not triple.filled
