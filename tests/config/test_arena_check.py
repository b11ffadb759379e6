"""The check of `dpbench recommend` asks the methods of the arena, under its protocol, on tables that are not in it."""

import pytest

from dpbench.config import compose
from dpbench.config.sizes import left_for_training


@pytest.mark.parametrize(
    ("task", "tables", "left_out"),
    [
        ("regression", ["diabetes", "compas", "churn", "law"], set()),
        ("classification", ["breast_cancer", "pima", "loans_without_state"], {"dpsgd"}),
    ],
)
def test_the_check_has_the_protocol_of_its_arena(task, tables, left_out):
    arena, check = (compose([f"experiment={name}"]) for name in (f"arena_{task}", f"arena_check_{task}"))
    ours, theirs = ({part.name: part for part in one.mechanisms} for one in (check, arena))
    assert theirs.keys() - ours.keys() == left_out and all(_alike(part, theirs[name]) for name, part in ours.items())
    for name in ("models", "metrics", "delta", "relation", "calibrations", "draws", "sample", "seed"):
        assert getattr(check, name) == getattr(arena, name), name
    assert check.epsilons == arena.epsilons
    datasets = [[grid.dataset["name"] for grid in one.grids] for one in (check, arena)]
    assert datasets[0] == tables and not {*tables} & {*datasets[1]}


def test_tables_of_intervals_have_three_features_and_train_on_what_is_not_tested():
    """5,000 rows, or the 11 % that are left: models and JLT take the number that is declared."""
    four, more, marginals = (
        compose([f"experiment=arena_intervals{name}"]).grids for name in ("", "_more", "_marginals")
    )
    tables = [grid.dataset["name"] for grid in (*four, *more)]
    assert tables == [grid.dataset["name"] for grid in marginals] and len({*tables}) == 20
    for grid in (*four, *more, *marginals):
        left = left_for_training(grid.dataset, grid.sample)
        assert len(grid.dataset.domain.names) == 4
        assert grid.sample.train_rows == min(5000, left or 5000), grid.dataset["name"]
        assert grid.sample.test_rows == 0.89


def _alike(one, other):
    """Whether two parts are equal but for the rows of their data set, and the loss where it may have two levels."""
    return one.name == other.name and _parameters(one) == _parameters(other)


def _parameters(part):
    return {name: value for name, value in part.parameters.items() if name not in ("expected_rows", "loss")}
