"""A composed configuration becomes an experiment whose values were checked."""

import pytest

from dpbench.config import compose
from dpbench.errors import UserError


def test_of_a_setting_and_a_sweep_over_it_the_line_takes_the_later():
    for plus in ("", "+"):
        assert len(compose([f"{plus}sweep={{seed:[1,2,3]}}"]).grids) == 3
        assert len(compose([f"{plus}sweep.seed=[1,2,3]"]).grids) == 3
    (grid,) = compose(["+sweep={seed:[1,2,3]}", "seed=7"]).grids
    assert grid.seed == 7
    assert [grid.seed for grid in compose(["seed=7", "+sweep={seed:[1,2,3]}"]).grids] == [1, 2, 3]
    assert len(compose(["seed=7", "+sweep={epsilon:[[1],[2]], seed : [1,2]}"]).grids) == 4


def test_a_deleted_sweep_is_told_as_any_deleted_setting():
    with pytest.raises(UserError, match="the setting sweep is missing: it was deleted"):
        compose(["experiment=bayes_calibration", "~sweep"])


def test_the_tables_of_a_report_are_of_metrics_that_the_grid_has():
    assert compose(["metric=[r2,mse]", "report.metrics=[mse,rel_mse]"]).report["metrics"] == ["mse"]
    assert compose(["metric=[coverage,mse]"]).report["metrics"] == ["coverage", "mse"], "all, if none is named"
    assert compose(["metric=[r2]", "report.metrics=[mse]"]).report["metrics"] == ["r2"], "or none of those is there"


def test_without_a_report_the_figure_is_of_the_metric_that_the_grid_has():
    def figures(*settings):
        return [spec["name"] for spec in compose(settings).report["figures"]]

    assert figures() == ["mse"]
    assert figures("model=[logistic_marginals]", "mechanism=[aim]", "metric=[auc,accuracy]") == ["auc"]
    assert figures("metric=[r2]") == ["r2"]
    asked = "report.figures=[{name: one, metric: r2}, {name: other, metric: mse}]"
    assert figures(asked) == ["one", "other"], "what cannot be drawn is named, not passed over"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["dataset=simulation", "delta=n**-1.1", "sample.train_rows=1"], "n must be"),
        (["slurm.mem=[4]"], "slurm.mem must be"),
        (["+limits.cores=2"], "unknown setting of limits 'cores'"),
        (["dataset=csv"], "no target is given: .* such as dataset.target=income"),
        (["title=Größe"], """'title=Größe' cannot be read: .* such as 'title="Größe"'"""),
        (["dataset.drop=[CO(GT), T]"], r"""such as 'dataset.drop=\["CO\(GT\)","T"\]'"""),
        (["title='Größe"], """such as 'title="été; 2024"'"""),
        (["target=income"], r"unknown setting 'target'; that of the data set is dataset\.target"),
        (["~sample.test_rows"], r"sample\.test_rows is missing: see conf/sample/full\.yaml"),
        (["~dataset.name"], r"dataset\.name must be str"),
        (["~dataset._target_"], r"dataset\._target_ must be str"),
        (["noise=discreet"], "unknown noise 'discreet'; did you mean 'discrete'"),
        (["noise=[discrete]"], "noise must be"),
        (["~noise"], "the setting noise is missing"),
        (
            ["mechanism=[exact,mst,objpert]", "model=[linear_rows,released_coefficients]", "noise=discrete"],
            "objpert has no discrete noise; mechanisms that have .noise=discrete.: adassp, aim, aim_grem, aim_mix",
        ),
    ],
)
def test_invalid_settings_say_what_is_allowed(settings, message):
    with pytest.raises(UserError, match=message):
        compose(settings)


def test_a_sweep_over_data_sets_composes_what_a_line_for_each_does():
    names, line = ["abalone", "wine_quality"], ["experiment=binagg_table2"]
    swept = compose([*line, f"+sweep={{dataset:[{','.join(names)}]}}"])
    for grid, name in zip(swept.grids, names, strict=True):
        own = compose([*line, f"dataset={name}"])
        assert grid.configuration == {**own.configuration, "sweep": grid.configuration["sweep"]}
        assert list(grid.dataset.config) == list(own.dataset.config) and grid.dataset["bounds"] == "data"


def test_a_sweep_over_data_sets_keeps_what_the_line_says_of_them():
    swept = compose(["experiment=binagg_table2", "+sweep={dataset:[abalone,wine_quality]}", "dataset.outside=clip"])
    assert [grid.dataset["outside"] for grid in swept.grids] == ["clip", "clip"]


def test_the_arena_and_table_2_take_a_table_of_ones_own(tmp_path):
    (tmp_path / "my.csv").write_text("a,b\n" + "0,1\n1,0\n" * 20)
    (tmp_path / "my.yaml").write_text("a: {values: [0, 1]}\nb: {levels: [0, 1]}\n")
    table = ["dataset=csv", f"dataset.path={tmp_path}/my.csv", f"dataset.domain={tmp_path}/my.yaml", "dataset.target=b"]
    for name, mechanism in (("arena_classification", "dpsgd"), ("binagg_table2", "dpgd_wide")):
        (grid,) = compose([f"experiment={name}", f"mechanism=[{mechanism}]", *table, "sample.train_rows=30"]).grids
        assert grid.mechanisms[0].parameters["expected_rows"] == 30


def test_a_sweep_over_the_settings_of_a_method_adds_what_its_config_leaves_out():
    swept = compose(["mechanism=[adassp]", "+sweep={mechanism.adassp:[{},{calibration:paper}]}"])
    assert [grid.mechanisms[0].parameters.get("calibration") for grid in swept.grids] == [None, "paper"]
    with pytest.raises(UserError, match=r"unknown parameter of mechanism.adassp 'calibratoin'; did you mean"):
        compose(["mechanism=[adassp]", "+sweep={mechanism.adassp:[{},{calibratoin:paper}]}"])


def test_settings_of_different_mechanisms_are_not_crossed():
    mb = "mechanism.aim.max_model_mb:[1,2,3],mechanism.mst.max_model_mb:[10,20]"
    swept = compose(["mechanism=[aim,mst]", f"+sweep={{{mb},seed:[0,1]}}"])
    seen = [(grid.seed, *(one.parameters["max_model_mb"] for one in grid.mechanisms)) for grid in swept.grids]
    assert len(seen) == 6
    assert {(seed, mb) for seed, mb, _ in seen} == {(seed, mb) for seed in (0, 1) for mb in (1, 2, 3)}
    assert {(seed, mb) for seed, _, mb in seen} == {(seed, mb) for seed in (0, 1) for mb in (10, 20)}


@pytest.mark.parametrize("value", ["nothing", "null", "5"])
def test_a_sweep_over_what_is_no_data_set_is_the_users_matter(value):
    with pytest.raises(UserError):
        compose(["experiment=binagg_table2", f"+sweep={{dataset:[{value}]}}"])


def test_a_sweep_over_a_part_is_left_out_where_the_line_names_others():
    line = ["experiment=risk_figure4_heart", "calibration=[tight]"]
    assert len(compose(line).grids) == 3
    (grid,) = compose([*line, "mechanism=[exact_table]"]).grids
    assert [part.name for part in grid.mechanisms] == ["exact_table"]
    assert len(compose([*line, "mechanism=[pate]"]).grids) == 3
    with pytest.raises(UserError, match="teachers"):  # the line's own sweep
        compose([*line, "mechanism=[exact_table]", "sweep={mechanism.pate.teachers:[5,10]}"])
