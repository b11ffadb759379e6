"""The types of an experiment: what a part reads and takes, and the grids of a sweep."""

from dpbench.config import compose, part_of


def test_a_part_knows_what_it_reads_and_takes():
    model = part_of("model", "linear_rows")
    assert model.reads(("rows",)) and model.reads(("statistics", "bins")) and not model.reads(("statistics",))
    assert part_of("metric", "mse").reads(()), "a metric without needs reads any release"
    mechanism = part_of("mechanism", "adassp")
    assert mechanism.takes("calibration") and not mechanism.takes("cake")


def test_an_experiment_without_a_sweep_is_its_only_grid():
    made = compose(["experiment=quickstart"])
    assert made.grids == (made,)
    swept = compose(["experiment=quickstart", "+sweep={seed:[1,2],sample.train_rows:[100]}"])
    assert [(grid.seed, grid.sample.train_rows) for grid in swept.grids] == [(1, 100), (2, 100)]


def test_what_is_not_of_the_papers_size_is_named():
    assert compose([]).reduced == ()
    assert compose(["sample=smoke"]).reduced == ("sample: smoke",)
    assert compose(["sample=smoke", "limits=smoke"]).reduced == ("sample: smoke", "limits: smoke")
