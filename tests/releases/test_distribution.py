"""Distributions: merged levels, the domain that they are over, and models made again when they are first used."""

from unittest.mock import patch

import numpy as np
import pytest

from dpbench import inference
from dpbench.data.domain import Attribute, Domain
from dpbench.errors import ContractError
from dpbench.inference import JunctionTree, Measurement
from dpbench.releases import Distribution, Merge

DOMAIN = Domain((Attribute.categorical("a", "pqrs"), Attribute.categorical("b", "xy")))


def model(a, b):
    return JunctionTree().estimate(
        {"a": len(a), "b": len(b)}, [Measurement(("a",), np.array(a), 1.0), Measurement(("b",), np.array(b), 1.0)]
    )


def test_a_merged_level_is_any_of_its_levels_and_another_one_itself():
    merge = Merge(np.array([1, 0, 1, 1]))  # q stays, the others are merged
    assert (merge.levels.tolist(), merge.count.tolist()) == ([1, 0, 2, 3], [1, 3])
    codes = merge.undo(np.repeat([0, 1], 9000), np.random.default_rng(0))
    assert set(codes[:9000]) == {1}
    counts = np.bincount(codes[9000:], minlength=4)
    assert counts[1] == 0
    assert np.all(np.abs(counts[[0, 2, 3]] - 3000) < 5 * np.sqrt(9000 * 2 / 9))


def test_a_merged_levels_mass_is_spread_over_its_levels():
    """By hand, a pair whose two attributes are independent: each sum over a merged cell stays."""
    merges = {"a": Merge(np.array([1, 0, 1, 1])), "b": Merge(np.array([0, 1]))}
    found = Distribution(model([60.0, 40.0], [30.0, 70.0]), merges).answer([("a",), ("a", "b")])
    assert found["a",] == pytest.approx([40 / 3, 60, 40 / 3, 40 / 3])
    assert found["a", "b"] == pytest.approx(np.outer([40 / 3, 60, 40 / 3, 40 / 3], [0.3, 0.7]))
    back = Distribution.from_parts(DOMAIN, *Distribution(model([1.0, 1.0, 1.0, 5.0], [2.0, 6.0])).to_parts())
    assert back.answer([("b",)])["b",] == pytest.approx([2, 6]) and back.model.total == pytest.approx(8)


def test_rows_are_over_the_domain_whose_levels_were_merged():
    merges = {"a": Merge(np.array([1, 0, 1, 1])), "b": Merge(np.array([0, 1]))}
    part = Distribution(model([60.0, 40.0], [30.0, 70.0]), merges)
    part.check(DOMAIN)
    rows = part.sample(DOMAIN, 1000, np.random.default_rng(0))
    assert rows.domain == DOMAIN
    assert rows.marginal(("a",))[1] == 600 and rows.marginal(("b",)).tolist() == [300, 700]


@pytest.mark.parametrize(
    "part",
    [
        Distribution(model([1.0, 1.0, 1.0], [1.0, 1.0])),
        Distribution(model([1.0, 1.0, 1.0], [1.0, 1.0]), {"a": Merge(np.zeros(4, int)), "b": Merge(np.array([0, 1]))}),
    ],
)
def test_a_model_over_another_domain_is_refused(part):
    with pytest.raises(ContractError, match="over another one"):
        part.check(DOMAIN)


def test_a_stored_model_is_made_again_when_rows_are_drawn_and_not_before():
    part = Distribution(model([10.0, 20.0, 30.0, 40.0], [50.0, 50.0]))
    with patch.object(inference, "load_model", wraps=inference.load_model) as load:
        back = Distribution.from_parts(DOMAIN, *part.to_parts())
        data, arrays = back.to_parts()
        assert data == part.to_parts()[0] and list(arrays) == list(part.to_parts()[1])
        assert not load.called
        drawn = [one.sample(DOMAIN, 50, np.random.default_rng(1)).codes for one in (part, back)]
        assert load.called
    assert np.array_equal(*drawn)
