"""What cannot run is refused with the plan: settings against the declared attributes and rows."""

from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest

from dpbench.cli import main
from dpbench.config import choices, compose, composed
from dpbench.config.parts import parts_of
from dpbench.contracts import parameters_of
from dpbench.data.encode import Design
from dpbench.errors import UserError
from dpbench.grid.feasibility import COUNTS, check_shapes
from dpbench.grid.plan import make_plan
from dpbench.mechanisms.query_release import HISTOGRAMS
from dpbench.privacy.budget import Budget

HEART = ["dataset=heart", "sample.test_rows=0.2", "epsilon=1", "repetitions=1"]
QUERIES = [*HEART, "model=[released_answers]", "metric=[query_error_max]", "relation=replace"]
LABELS = [*HEART, "model=[released_coefficients]", "metric=[accuracy]"]
SMALL = {"workload": 2, "components": 4, "latent": 4, "hidden": [4], "pretraining": 2, "iterations": 5}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ([*QUERIES, "mechanism=[aim]", "mechanism.aim.workload=15"], "mechanism.aim, dataset=heart: workload=15: all "),
        (
            [*QUERIES, "mechanism=[aim]", "mechanism.aim.workload={degree:15,up_to:true}"],
            "all k-way marginals need k between 1 and 14",
        ),
        ([*QUERIES, "mechanism=[mst]", "mechanism.mst.workload=[[age,weight]]"], "unknown attribute 'weight'"),
        ([*QUERIES, "mechanism=[aim]", "metric.query_error_max.workload=15"], "metric.query_error_max, dataset=heart"),
        ([*QUERIES, "mechanism=[mwem]", "mechanism.mwem.rounds=0"], "mechanism.mwem.rounds must be at least 1, not 0"),
        ([*QUERIES, "mechanism=[pep]", "mechanism.pep.per_round=-3"], "mechanism.pep.per_round must be at least 1"),
        ([*QUERIES, "mechanism=[gem]", "mechanism.gem.hidden=[8,0]"], "mechanism.gem.hidden must be at least 1, not 0"),
        ([*QUERIES, "mechanism=[fem]", "mechanism.fem.samples=0"], "mechanism.fem.samples must be at least 1, not 0"),
        (
            [*QUERIES, "mechanism=[mwem_past_search]", "mechanism.mwem_past_search.grid.rounds=[5,0]"],
            "mechanism.mwem_past_search.grid.rounds must be at least 1, not 0",
        ),
        (
            [*HEART, "mechanism=[gen]", "model=[logistic_rows]", "metric=[accuracy]", "mechanism.gen.degree=15"],
            "mechanism.gen.degree=15: dataset=heart has 14 attributes",
        ),
        (
            [*LABELS, "mechanism=[pate]", "mechanism.pate.expected_rows=20", "sample.public_rows=20"],
            "mechanism.pate.teachers=100 is more than the 20 rows that mechanism.pate.expected_rows declares",
        ),
        (  # 303 rows, 61 of them for testing and 20 public
            [*LABELS, "mechanism=[pate]", "mechanism.pate.teachers=223", "sample.public_rows=20", "relation=replace"],
            "mechanism.pate.teachers=223 is more than the 222 rows that it is given of dataset=heart",
        ),
        (
            [*LABELS, "mechanism=[dpsgd]", "mechanism.dpsgd.expected_rows=242"],
            "mechanism.dpsgd.batch_size=1,024 is more than the 242 rows that mechanism.dpsgd.expected_rows declares",
        ),
        (
            [*LABELS, "mechanism=[dpsgd_optimistic]", "mechanism.dpsgd_optimistic.expected_rows=242"],
            "mechanism.dpsgd_optimistic.batch_sizes=1,024 is more than the 242 rows",
        ),
        (
            [*LABELS, "mechanism=[dpsgd_minibatch]", "mechanism.dpsgd_minibatch.batch_size=243", "relation=replace"],
            "mechanism.dpsgd_minibatch.batch_size=243 is more than the 242 rows that it is given of dataset=heart",
        ),
    ],
)
@pytest.mark.parametrize("dry", [True, False])
def test_what_cannot_run_is_told_before_anything_runs(tmp_path, capsys, line, message, dry):
    assert main(["run", *line, f"results={tmp_path}", *["--dry-run"][:dry]]) == 2
    error = capsys.readouterr().err
    assert message in error and "Traceback" not in error and error.count("dpbench:") == 1
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("command", [["run"], ["run", "--dry-run"], ["slurm"]])
@pytest.mark.parametrize("name", ["mwem", "mwem_past", "pep", "mwem_past_best", "pep_search"])
def test_a_histogram_that_is_too_large_is_told_by_every_command_that_plans(tmp_path, capsys, command, name):
    """AIM, which keeps none, does not run without it."""
    assert main([*command, *QUERIES, f"mechanism=[aim,{name}]", f"results={tmp_path}"]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"dpbench: mechanism.{name}, dataset=heart: {name.split('_')[0]} keeps a probability for ")
    assert "each of the 12,804,935,270,400 cells of the domain" in error
    assert "and the limit is 80 MB; raise max_model_mb" in error and error.count("dpbench:") == 1
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("limit", [0.001, 0.0014])
@pytest.mark.parametrize("place", ["{}", "grid", "shared", None])
def test_the_plan_refuses_the_histograms_that_their_methods_refuse(small_table, place, limit):
    """180 cells have 0.00137 MB. Of a grid the least limit counts; where none is set, that of the method."""
    experiment = compose([*QUERIES, "mechanism=[pep_best]"])
    settings = {"{}": {"max_model_mb": limit}, "grid": {"max_model_mb": [1, limit]}, "shared": {"max_model_mb": limit}}
    (search,) = experiment.mechanisms
    for method in HISTOGRAMS:
        alone = replace(search, target=f"dpbench.mechanisms.{method}.{method}", parameters=settings["{}"])
        runs = {"method": method, "grid": {}, "shared": {}, **({place: settings[place]} if place else {})}
        part = alone if place == "{}" else replace(search, parameters=runs)
        planned = replace(experiment, mechanisms=(part,), metrics=())
        refused = limit < 0.00137 and place is not None
        with pytest.raises(UserError, match="each of the 180 cells") if refused else nullcontext():
            check_shapes(planned, small_table.domain)
        with pytest.raises(UserError, match="each of the 180 cells") if limit < 0.00137 else nullcontext():
            budget = Budget(1.0, 1e-6, "replace")
            alone.function(small_table, budget, np.random.default_rng(0), rounds=1, max_model_mb=limit)


@pytest.mark.parametrize(
    "line",
    [
        [*LABELS, "mechanism=[pate]", "mechanism.pate.teachers=222", "sample.public_rows=20", "relation=replace"],
        [*LABELS, "mechanism=[pate]", "mechanism.pate.teachers=223", "sample.public_rows=20"],  # n is not known to it
        [*LABELS, "mechanism=[dpsgd_minibatch]", "mechanism.dpsgd_minibatch.batch_size=242", "relation=replace"],
        [*LABELS, "mechanism=[dpsgd]", "mechanism.dpsgd.batch_size=null", "mechanism.dpsgd.expected_rows=242"],
        [*QUERIES, "mechanism=[aim]", "mechanism.aim.workload={degree:14,up_to:true}"],
        [*QUERIES, "mechanism=[dualquery]", "mechanism.dualquery.rounds=null"],
    ],
)
def test_what_can_run_is_planned(line):
    assert make_plan(compose(line)).trial_ids


def test_authors_give_mechanisms_the_test_rows_too():
    line = [*LABELS, "mechanism=[dpsgd_minibatch]", "relation=replace", "sample.protocol=authors"]
    assert make_plan(compose([*line, "mechanism.dpsgd_minibatch.batch_size=303"])).trial_ids
    with pytest.raises(UserError, match="batch_size=304 is more than the 303 rows"):
        make_plan(compose([*line, "mechanism.dpsgd_minibatch.batch_size=304"]))


def test_where_the_rows_are_not_declared_the_mechanism_looks(tmp_path):
    experiment = compose([*LABELS, "mechanism=[dpsgd_minibatch]", "relation=replace"])
    without = replace(experiment.dataset, card={})
    domain = without.domain
    with pytest.raises(UserError, match="is more than the 242 rows"):
        check_shapes(_with(experiment, batch_size=5000), domain)
    check_shapes(replace(_with(experiment, batch_size=5000), dataset=without), domain)


def test_parameters_of_somebody_elses_mechanism_mean_what_they_like():
    experiment = compose([*QUERIES, "mechanism=[mwem]"])
    (mwem,) = experiment.mechanisms
    foreign = replace(mwem, target="mine.mwem", parameters={**mwem.parameters, "rounds": 0, "workload": 99})
    check_shapes(replace(experiment, mechanisms=(foreign,)), experiment.dataset.domain)


def _with(experiment, **parameters):
    (part,) = experiment.mechanisms
    return replace(experiment, mechanisms=(replace(part, parameters={**part.parameters, **parameters}),))


def test_each_mechanism_refuses_a_count_of_zero_itself(small_table):
    """So that the plan refuses nothing that would run."""
    parts = parts_of("mechanism", composed([f"mechanism=[{','.join(choices('mechanism'))}]"]))
    public, design = small_table.take(np.arange(20)), Design(small_table.domain, "sex")
    given = {"design": design, "public": public, "test": small_table}
    looked_at = set()
    for part in {part.target: part for part in parts}.values():
        supplied = {key: value for key, value in given.items() if part.takes(key)}
        supplied |= {key: value for key, value in SMALL.items() if part.takes(key)}
        budget = Budget(1.0 if part.private else float("inf"), 1e-6, part.relations[-1])
        for name in sorted(COUNTS & set(parameters_of("mechanism", part.function))):
            zero = [0] if name in ("hidden", "batch_sizes") or isinstance(part.parameters.get(name), list) else 0
            parameters = {**part.parameters, **supplied, name: zero}
            with pytest.raises(UserError, match=r"at least|lie between|be positive|limit is 0"):
                part.function(small_table, budget, np.random.default_rng(0), **parameters)
            looked_at.add(name)
    assert looked_at == COUNTS
