from dataclasses import replace

import pytest

from dpbench.config import compose
from dpbench.data.dataset import Dataset
from dpbench.grid.records import Runtime
from dpbench.report.claims.published import dataset_table, protocol_table, runtime_table
from dpbench.report.frames.results import Results

from ..made_up import make_trial

TABLE_1 = {"name": "Adult", "names": ["adult"], "rows": 100, "attributes": 3, "listed": ["age", "sex", "Pay-Rate"]}
TABLE_1 |= {"targets": ["payrate"]}


@pytest.fixture(scope="module")
def experiment():
    return compose(["experiment=quickstart", "mechanism=[exact,aim]"])


def used(experiment, name="linreg_adult", target="pay_rate", rows=100, drop=(), attributes=("age", "sex", "pay_rate")):
    data = {"name": "adult", "attributes": dict.fromkeys(attributes), "drop": list(drop), "card": {"rows": rows}}
    return replace(experiment, name=name, dataset=Dataset.of(data), design={"target": target})


def verdict(experiment, **changes):
    (row,) = dataset_table([TABLE_1], [used(experiment, **changes)], {}).to_dict("records")
    return row["verdict"]


def test_a_data_set_is_compared_by_its_declaration_whatever_the_spelling(experiment):
    (row,) = dataset_table([TABLE_1], [used(experiment)], {"adult": "Adult (part)"}).to_dict("records")
    assert (row["rows, ours"], row["attributes, ours"], row["target, ours"]) == (100, 3, "pay_rate")
    assert (row["ours"], row["verdict"]) == ("Adult (part)", "equal")


@pytest.mark.parametrize(
    ("changes", "reported"),
    [
        ({"rows": 99}, "differs: rows"),
        ({"rows": None}, "differs: rows not declared"),
        ({"drop": ["sex"]}, "differs: without sex"),
        ({"attributes": ["age", "sex", "pay_rate", "zip"]}, "differs: added zip"),
        ({"target": "age"}, "differs: target"),
        ({"rows": 99, "drop": ["age"], "target": "sex"}, "differs: rows; without age; target"),
    ],
)
def test_each_difference_is_named(experiment, changes, reported):
    assert verdict(experiment, **changes) == reported


def test_experiments_that_use_a_data_set_alike_share_a_row(experiment):
    three = [used(experiment, "a"), used(experiment, "b"), used(experiment, "c", drop=["sex"])]
    table = dataset_table([TABLE_1, TABLE_1 | {"name": "Taxi", "names": ["taxi"]}], three, {})
    assert table["experiments"].fillna("").to_list() == ["a, b", "c", ""]
    assert table["verdict"].iloc[-1] == "no experiment"


FACTS = [
    {"what": "ε", "value": [0.1, 0.5, 1.0], "ours": "epsilon", "where": "section 4"},
    {"what": "runs", "value": 2, "ours": "repetitions", "where": "section 4"},
    {"what": "training rows", "value": 7, "ours": "sample.train_rows", "where": "G.1"},
    {"what": "splits", "value": "fixed", "ours": "sample.split", "where": "code"},
    {"what": "model size", "value": 80, "ours": "mechanism.aim.max_model_mb", "where": "G.2"},
    {"what": "tree", "value": 1, "ours": "mechanism.mst.workload", "where": "G.4"},
    {"what": "noise", "value": "continuous", "ours": "mechanism.aim.noise", "where": "code"},
]


def protocol(*results):
    return protocol_table(FACTS, results)[["fact", "ours", "experiments", "verdict"]].to_numpy().tolist()


def test_the_protocol_is_read_from_the_stored_trials(experiment):
    sizes = {0.1: 80, 0.5: 40}  # of a run whose configuration has 80 alone
    trials = [
        make_trial("aim", epsilon=epsilon, repetition=k, rows=7, fixed=True, parameters={"max_model_mb": size})
        for epsilon, size in sizes.items()
        for k in range(2)
    ] + [make_trial("exact", epsilon="inf", repetition=k, rows=7, fixed=True) for k in range(2)]
    assert protocol(Results(experiment, trials)) == [
        ["ε", "0.1, 0.5", "quickstart", "differs"],
        ["runs", "2", "quickstart", "equal"],
        ["training rows", "7", "quickstart", "equal"],
        ["splits", "fixed", "quickstart", "equal"],
        ["model size", "40, 80", "quickstart", "differs"],
        ["noise", "continuous", "quickstart", "equal"],
    ]


def test_cells_with_fewer_repetitions_and_another_version_of_the_code_are_counted(experiment):
    trials = [make_trial("aim", epsilon=epsilon, repetition=k) for epsilon in (0.1, 0.5, 1.0) for k in range(2)][:-1]
    newer = [replace(trials[0].key.release.mechanism, version=str(k)) for k in range(2)]
    for k, made in enumerate(newer):  # repetitions 0 and 1 of one cell
        key = trials[k].key
        key = replace(key, fit=replace(key.fit, release=replace(key.release, mechanism=made)))
        trials[k] = replace(trials[k], key=key, id=key.id)
    (runs,) = (row for row in protocol(Results(experiment, trials)) if row[0] == "runs")
    assert runs[1:] == ["1, 2", "quickstart", "differs"]


def test_what_is_planned_and_has_no_trial_was_not_run(experiment):
    other = replace(experiment, name="other", mechanisms=experiment.mechanisms[:1])
    reference = [make_trial("exact", epsilon="inf", repetition=k, rows=7) for k in range(2)]
    rows = protocol(Results(experiment, reference), Results(other, []))
    assert [row for row in rows if row[0] in ("training rows", "model size", "runs")] == [
        ["runs", "2", "quickstart", "equal"],
        ["runs", str(other.repetitions), "other", "not run"],
        ["training rows", "7", "quickstart", "equal"],
        ["training rows", str(other.sample.train_rows), "other", "not run"],
        ["model size", "80", "quickstart", "not run"],
    ]


@pytest.mark.parametrize(
    ("sweep", "ours", "verdict"),
    [
        ([80], "80", "in the grid"),
        ([40, 80, 160], "40, 80, 160", "equal"),
        ([160, 40], "40, 160", "in the grid"),
        ([30, 80], "30, 80", "differs"),
    ],
)
def test_the_values_that_ran_are_compared_with_the_grid_of_the_paper(experiment, sweep, ours, verdict):
    fact = {"what": "model size", "value": [40, 80, 160], "grid": True, "ours": "mechanism.aim.max_model_mb"}
    where = {"where": "Table 1"}
    swept = Results(experiment, [make_trial("aim", parameters={"max_model_mb": size}) for size in sweep])
    (row,) = protocol_table([fact | where], [swept]).to_dict("records")
    assert (row["ours"], row["verdict"]) == (ours, verdict)
    assert protocol_table([fact | where | {"only": ["another"]}], [swept]).empty


def timed(seconds, epsilon=0.1, repetition=0, model="linear_marginals"):
    trial = make_trial("aim", model, epsilon, repetition, parameters={"max_model_mb": 80, "rounds": None})
    return replace(trial, runtime=Runtime(release_seconds=seconds))


@pytest.mark.parametrize(
    ("published", "reported"),
    [
        ({"epsilon": 0.1, "seconds": 300}, ("0.1", "300", "3", "100")),
        ({"epsilon": 2, "seconds": 300}, ("2", "300", "30", "10")),
        ({"seconds": 300}, ("not stated", "300", "3 to 30", "10 to 100")),
        ({"seconds": [60, 300]}, ("not stated", "60 to 300", "3 to 30", "2 to 100")),
        ({"epsilon": 1, "seconds": 300}, ("1", "300", "not run", "")),
        ({"experiment": "linreg_fire", "seconds": 300}, ("not stated", "300", "not run", "")),
    ],
)
def test_the_papers_seconds_with_the_mean_of_our_releases(published, reported):
    trials = [timed(2.0), timed(2.0, model="linear_rows"), timed(4.0, repetition=1), timed(30.0, 2.0)]
    entry = {"experiment": "linreg_adult", "mechanism": "aim", "stated": "some", "where": "G.3"} | published
    (row,) = runtime_table([entry], {"linreg_adult": trials}).to_dict("records")
    assert (row["ε"], row["paper, s"], row["ours, s"], row["paper / ours"]) == reported
    assert row["our settings"] == ("" if reported[2] == "not run" else "max_model_mb=80")


def test_of_several_calibrations_that_of_the_paper_is_the_one_that_it_timed():
    trials = [
        replace(make_trial("ssp", calibration=name), runtime=Runtime(release_seconds=seconds))
        for name, seconds in (("tight", 2.0), ("paper", 8.0))
    ]
    entry = {"experiment": "linreg_adult", "mechanism": "ssp", "stated": "some", "where": "G.3", "seconds": 16}
    for kept, reported in ((trials, ("8", "2")), (trials[:1], ("2", "8"))):
        (row,) = runtime_table([entry], {"linreg_adult": kept}).to_dict("records")
        assert (row["ours, s"], row["paper / ours"]) == reported
