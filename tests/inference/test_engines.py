"""What every engine does alike."""

import numpy as np
import pytest

from dpbench.inference import InferenceError, JunctionTree, Measurement, model_mb
from dpbench.inference.mbi_engine import Mbi
from dpbench.inference.mixture import ProductMixture

SIZES = {"a": 3, "b": 4}
OURS = [JunctionTree, ProductMixture]


@pytest.mark.parametrize("engine", [*OURS, Mbi])
def test_settings_out_of_range_are_refused_when_the_engine_is_made(engine):
    with pytest.raises(InferenceError, match="iterations is 0; give at least 1"):
        engine(iterations=0)


@pytest.mark.parametrize("engine", OURS)
def test_so_is_a_tolerance_that_is_not_positive(engine):
    with pytest.raises(InferenceError, match=r"tolerance is 0\.0; it must be > 0"):
        engine(tolerance=0.0)


@pytest.mark.parametrize("engine", OURS)
def test_a_model_has_what_an_engine_promises(engine):
    values = np.arange(12.0).reshape(3, 4)
    model = engine(iterations=200).estimate(SIZES, [Measurement(("a", "b"), values, 1.0)])
    assert model.sizes == SIZES
    assert model.total == pytest.approx(values.sum())
    assert model.cliques == (("a", "b"),)
    assert model.answer([("b",)])["b",].sum() == pytest.approx(model.total)
    assert model.sample(7, np.random.default_rng(0)).shape == (7, 2)
    assert engine().smallest_mb(SIZES) > 0


@pytest.mark.parametrize("engine", [*OURS, Mbi])
def test_an_update_takes_in_what_was_measured_last(engine):
    values = np.random.default_rng(2).uniform(50, 500, (3, 4))
    first, then = Measurement(("a",), values.sum(axis=1), 5.0), Measurement(("a", "b"), values, 5.0)
    before = engine().estimate(SIZES, [first])
    models = before, engine().update(SIZES, [first, then], before)
    gaps = [np.abs(model.answer([("a", "b")])["a", "b"] - values).sum() for model in models]
    assert gaps[1] < gaps[0] / 2


def test_the_smallest_model_of_a_junction_tree_has_its_singles_only():
    assert JunctionTree().smallest_mb(SIZES) == Mbi().smallest_mb(SIZES) == model_mb(SIZES, [("a",), ("b",)])
