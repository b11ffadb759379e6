"""Which cliques are split into faces, and which are filled."""

from dpbench.inference.blocks import Dense, Triple
from dpbench.inference.layout import best_groups, make_block


def test_small_cliques_and_those_that_a_table_spans_are_filled():
    assert best_groups((8, 8, 8), (0b011, 0b110, 0b101)) is None
    assert best_groups((32, 32, 32), (0b111,)) is None
    assert isinstance(make_block(0b111, (32, 32, 32), [0b111]), Dense)


def test_a_large_clique_of_pairs_is_split_so_that_each_table_lies_in_a_face():
    masks = (0b0011, 0b0110, 0b1100, 0b1001)
    groups = best_groups((30, 30, 30, 30), masks)
    assert groups is not None
    r, a, b, c = groups
    assert r | a | b | c == 0b1111
    assert r + a + b + c == 0b1111
    faces = (r | a | b, r | a | c, r | b | c)
    assert all(any(mask & ~face == 0 for face in faces) for mask in masks)
    assert isinstance(make_block(0b1111, (30, 30, 30, 30), list(masks)), Triple)
