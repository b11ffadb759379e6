"""The types of an experiment: what a part reads and takes, and the grids of a sweep."""

import pytest

from dpbench.config import compose, part_of
from dpbench.config.schema import Part
from dpbench.targets import use_folder

CALLABLE = """\
from dataclasses import dataclass

@dataclass
class Average:
    scale: float

    def __call__(self, train, budget, rng, scale=1.0): ...

average = Average(scale=2.0)
"""


@pytest.fixture
def own_folder(tmp_path):
    (tmp_path / "my_average.py").write_text(CALLABLE)
    use_folder(tmp_path)
    yield tmp_path
    use_folder(None)


def test_a_part_knows_what_it_reads_and_takes():
    model = part_of("model", "linear_rows")
    assert model.reads(("rows",)) and model.reads(("statistics", "bins")) and not model.reads(("statistics",))
    assert part_of("metric", "mse").reads(()), "a metric without needs reads any release"
    mechanism = part_of("mechanism", "adassp")
    assert mechanism.takes("calibration") and not mechanism.takes("cake")


def test_a_part_may_be_a_callable_that_has_no_hash(own_folder):
    part = Part(group="mechanism", name="average", target="my_average.average", parameters={})
    assert part.takes("scale") and not part.takes("cake")


def test_an_experiment_without_a_sweep_is_its_only_grid():
    made = compose(["experiment=quickstart"])
    assert made.grids == (made,)
    swept = compose(["experiment=quickstart", "+sweep={seed:[1,2],sample.train_rows:[100]}"])
    assert [(grid.seed, grid.sample.train_rows) for grid in swept.grids] == [(1, 100), (2, 100)]


def test_what_is_not_of_the_papers_size_is_named():
    assert compose([]).reduced == ()
    assert compose(["sample=smoke"]).reduced == ("sample: smoke",)
    assert compose(["sample=smoke", "limits=smoke"]).reduced == ("sample: smoke", "limits: smoke")
