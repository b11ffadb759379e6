"""Settings and config files are merged, and experiments are found by their names."""

import pytest

from dpbench.config import choices, compose, composed
from dpbench.config.registry import read_yaml
from dpbench.errors import UserError
from dpbench.resources import conf_dir


@pytest.mark.parametrize("experiment", sorted(choices("experiment")))
@pytest.mark.parametrize("size", ["full", pytest.param("smoke", marks=pytest.mark.slow)])
def test_every_experiment_composes_at_every_size(experiment, size):
    made = compose([f"experiment={experiment}", f"sample={size}", f"limits={size}"])
    assert made.name == experiment
    assert (made.sample.name, made.limits.name) == (size, size)


def test_an_experiment_has_one_file():
    files = [path.stem for path in (conf_dir() / "experiment").glob("**/*.yaml")]
    assert sorted(choices("experiment")) == sorted(name for name in files if name[0] != "_"), "no name stands twice"


def test_an_experiment_of_ones_own_stands_in_a_folder_or_not(tmp_path):
    for place in ("mine", "paper/other"):
        path = tmp_path / "experiment" / f"{place}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(
            f"# @package _global_\ndefaults:\n  - /experiment/quickstart\n  - _self_\nname: {path.stem}\nseed: 7"
        )
        made = compose([f"experiment={path.stem}"], tmp_path)
        assert (made.name, made.seed) == (path.stem, 7)


def test_the_name_of_a_folder_of_experiments_leads_to_its_experiments():
    checks = "arena_check_classification or one of arena_check_regression"
    arena = (
        f"{checks}, arena_classification, arena_intervals, arena_intervals_marginals, arena_intervals_more, "
        "arena_lite_classification, arena_lite_intervals, arena_lite_queries, arena_lite_regression, arena_queries, "
        "arena_queries_more, arena_regression, arena_rows"
    )
    with pytest.raises(UserError, match=rf"^arena is a group of experiments, .*: run experiment={arena}$"):
        composed(["experiment=arena"])
    with pytest.raises(UserError, match=r"^dd_ssp is a group of experiments, .*linreg_adult, "):
        composed(["experiment=dd_ssp"])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["dataset=[compas,heart]"], r"^'dataset=\[compas,heart\]': dataset takes .* sweep\.dataset=\[compas,heart\]"),
        (["dataset=compas,heart"], r"sweep\.dataset=\[compas,heart\] runs the grid on each of them$"),
        (["sweep.dataset=[[compas, heart]]"], r"sweep\.dataset=\[compas,heart\] runs"),
        (["sample=[full,smoke]"], r"sample takes the name of one config; sweep\.sample=\[full,smoke\] runs"),
        (["limits=[full,smoke]"], r"limits takes the name of one config; sweep\.limits=\[full,smoke\] runs"),
        (["experiment=[risk_gen,risk_table2]"], "each is a run of its own: first experiment=risk_gen$"),
    ],
)
def test_several_configs_of_a_group_that_has_one_are_not_merged(settings, message):
    with pytest.raises(UserError, match=message):
        compose(["experiment=risk_table2_authors", *settings])


def test_a_list_of_one_is_that_one_and_the_sweep_over_several_works():
    assert compose(["experiment=risk_gen", "dataset=[heart]"]).dataset["name"] == "heart"
    swept = compose(["experiment=risk_table2_authors", "sweep.dataset=[compas,heart]"])
    assert [grid.dataset["name"] for grid in swept.grids] == ["compas", "heart"]


def test_naming_some_mechanisms_of_an_experiment_leaves_out_what_it_sets_for_others():
    made = compose(["experiment=queries_adult_star", "mechanism=[gem]"])
    assert [part.name for part in made.mechanisms] == ["gem"]
    assert len(made.mechanisms[0].parameters["workload"]) == 64, "AIM's workload, which the experiment refers to"


def test_a_setting_of_the_line_for_a_mechanism_outside_the_grid_is_refused():
    with pytest.raises(UserError, match=r"mechanism\.rap has settings, but rap is not in the grid"):
        compose(["experiment=queries_adult_star", "mechanism=[gem]", "+mechanism.rap.rate=2"])


@pytest.mark.parametrize("name", sorted(choices("as")))
def test_settings_of_a_text_or_a_code_are_parameters_that_differ_from_the_declared_ones(name):
    methods = list(read_yaml(choices("as")[name])["mechanism"])
    line = ["experiment=queries_public_year", f"mechanism=[{','.join(methods)}]"]
    declared, made = compose(line).mechanisms, compose([*line, f"as={name}"]).mechanisms
    for before, after in zip(declared, made, strict=True):
        assert before.parameters != after.parameters, before.name


def test_the_authors_settings_come_over_those_of_an_experiment():
    made = compose(["experiment=queries_adult_reduced", "as=authors"]).mechanisms
    declared = compose(["experiment=queries_adult_reduced"]).mechanisms
    assert [part.name for part in made] == [part.name for part in declared]
    mwem = next(part for part in made if part.name == "mwem")
    assert (mwem.parameters["rate"], mwem.parameters["repeated"]) == (0.5, "newest")
