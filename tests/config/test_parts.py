"""Mechanisms, models and metrics of a configuration: each has parameters that its function takes."""

from inspect import signature

import pytest

from dpbench.config import compose, part_of
from dpbench.config.parts import parts_of
from dpbench.config.registry import choices
from dpbench.errors import UserError

TARGET = "dpbench.mechanisms.ssp.ssp"
LIMITS = {"max_model_mb", "iterations"}  # set by conf/limits, to a run's memory and time


def test_a_part_of_the_registry_has_its_default_parameters():
    part = part_of("mechanism", "binagg")
    assert part.offers == ("bins",) and part.private and part.parameters["ratio"] == [1, 3, 3, 3]
    with pytest.raises(UserError, match="unknown mechanism 'binag'; did you mean 'binagg'"):
        part_of("mechanism", "binag")


@pytest.mark.parametrize("group", ["mechanism", "model", "metric"])
def test_a_config_named_after_its_function_has_the_defaults_of_its_signature(group):
    """Else one method would have two declared settings, one for the command line and one for an import."""
    for name in choices(group, None):
        part = part_of(group, name)
        if part.target.rsplit(".", 1)[1] != name:
            continue
        for one in signature(part.function).parameters.values():
            if one.default is not one.empty and one.name in part.parameters and one.name not in LIMITS:
                default = list(one.default) if isinstance(one.default, tuple) else one.default
                assert part.parameters[one.name] == default, (name, one.name)


def test_a_mechanism_that_proves_no_relation_is_not_private_and_one_that_says_nothing_is():
    assert not part_of("mechanism", "exact").private
    (silent,) = parts_of("mechanism", {"mechanism": {"ssp": {"_target_": TARGET, "_offers_": ["statistics"]}}})
    assert silent.private and silent.relations == ("add_remove",)


def test_a_list_of_calibrations_is_no_parameter_and_one_alone_is():
    node = {"_target_": TARGET, "_offers_": ["statistics"]}
    (both,) = parts_of("mechanism", {"mechanism": {"ssp": {**node, "calibration": ["paper", "authors"]}}})
    assert both.calibrations == ("paper", "authors") and both.parameters == {}
    (fixed,) = parts_of("mechanism", {"mechanism": {"ssp": {**node, "calibration": "paper"}}})
    assert fixed.parameters == {"calibration": "paper"}


def test_test_rows_are_a_need_of_metrics_alone():
    metric = part_of("metric", "efficacy_trees")
    assert metric.test_rows and metric.needs == ("rows",)
    node = {"_target_": "dpbench.models.linear.linear_rows", "_needs_": ["rows", "test_rows"]}
    with pytest.raises(UserError, match=r"model\.linear_rows\._needs_: a model sees no test_rows"):
        parts_of("model", {"model": {"linear_rows": node}})


def test_the_runtime_of_a_random_number_of_runs_is_hidden_however_it_is_chosen():
    assert part_of("mechanism", "dpsgd_random").hide_runtime and not part_of("mechanism", "ssp").hide_runtime
    found = compose(
        [
            "mechanism=[dpsgd_optimistic]",
            "mechanism.dpsgd_optimistic.tuning=random_search",
            "model=released_coefficients",
        ]
    )
    assert found.mechanisms[0].hide_runtime
    own = {"_target_": TARGET, "_offers_": ["statistics"], "_hide_runtime_": True}
    assert parts_of("mechanism", {"mechanism": {"ssp": own}})[0].hide_runtime


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ({"ssp": {"_target_": TARGET, "calibratio": "tight"}}, "unknown parameter of mechanism.ssp 'calibratio'"),
        ({"ssp": {"_target_": TARGET, "intervals": "yes"}}, r"mechanism\.ssp\.intervals must be bool"),
        ({"ssp": {"_target_": TARGET, "design": {}}}, "unknown parameter of mechanism.ssp 'design'"),
        ({"ssp": {"_target_": TARGET, "_offers_": ["cake"]}}, r"unknown mechanism\.ssp\._offers_ 'cake'"),
        ({"ssp": {"_target_": TARGET, "_offer_": []}}, "did you mean '_offers_'"),
        ({"ssp": {"_target_": TARGET, "_private_": False}}, r"mechanism\.ssp\._private_ is no longer a key: .* \[\]"),
        ({"ssp": {"_target_": TARGET, "_methods_": {}}}, "_methods_ is no longer a key: write _label_: {"),
        ({"ssp": {"_target_": TARGET, "_relations_": ["none"]}}, r"unknown mechanism\.ssp\._relations_ 'none'"),
        ({"ssp": {"_target_": TARGET, "calibration": ["loose"]}}, r"unknown mechanism\.ssp\.calibration 'loose'"),
        ({"exact": {"_target_": "dpbench.mechanisms.exact.exact", "calibration": ["tight"]}}, "unknown parameter"),
        ({"dpgan": {"_target_": "dpbench.mechanisms.snsynth.snsynth"}}, "which has no default: set mechanism.dpgan"),
        ({}, "name at least one mechanism, such as mechanism="),
        ([], "name at least one mechanism, such as mechanism="),
        (5, "mechanism must name configs"),
        ({"ssp": 5}, "must be a mapping of its parameters"),
    ],
)
def test_what_a_function_does_not_take_is_refused(nodes, message):
    with pytest.raises(UserError, match=message):
        parts_of("mechanism", {"mechanism": nodes})


def test_a_setting_that_was_chosen_on_some_rows_says_so_on_all_tables_of_these_rows():
    named = [name for name in choices("dataset") if name != "csv"]  # whose file a user gives
    swept = compose(["sample.test_rows=10", f"+sweep={{dataset: [{','.join(named)}]}}"])
    datasets = dict(zip(named, (grid.dataset for grid in swept.grids), strict=True))

    def tables_of(mechanism):
        files = part_of("mechanism", mechanism).unpaid.keys()
        return {name for name in datasets if files & {s.file for s in datasets[name].sources}}

    of_adult = {name for name in datasets if name.startswith("adult")}
    assert tables_of("dpsgd") == of_adult - {"adult_synth"}  # whose ledger is there
    for name in ("mwem", "mwem_past", "pep", "gem", "gem_small", "rap", "rap_softmax", "dualquery"):
        assert tables_of(name) == {"dutch", "dutch_queries", "law", "law_queries"}
