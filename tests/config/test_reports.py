"""What is to be drawn: a report asks for kinds, keys and metrics that there are."""

import pytest

from dpbench.config import paper_of
from dpbench.config.reports import ANY, checked_report, kind_of, kinds
from dpbench.config.specs import Spec
from dpbench.errors import UserError
from dpbench.targets import use_folder

FIGURE = {"name": "mse", "metric": "mse"}
TABLE = {**FIGURE, "kind": "comparison_table", "title": "MSE"}
GAIN = {**TABLE, "name": "gain"}


def test_a_figure_without_a_kind_is_of_the_default_one():
    assert kind_of({}).name == "metric_by_epsilon" and kind_of({"kind": "comparison_table"}).group == "table"
    assert callable(kinds()["histogram"].function)


def test_the_types_of_specs_have_the_keys_that_the_configs_of_kinds_list():
    """Else mypy would not know a key, or let one pass that no figure has."""
    listed = {key for kind in kinds().values() for key in (*kind.required, *kind.optional)}
    assert Spec.__annotations__.keys() == listed | ANY.keys()


def test_an_empty_report_has_all_its_parts():
    found = checked_report(None, ["mse"])
    assert (found["metrics"], found["figures"], found["panels"]) == ([], [], {})


@pytest.mark.parametrize(
    ("report", "message"),
    [
        ({"figure": []}, "unknown key of report 'figure'; did you mean 'figures'"),
        ({"metrics": ["msee"]}, "unknown metric of report 'msee'"),
        ({"figures": [FIGURE, FIGURE]}, "two figures or tables are called 'mse'; give each"),
        ({"figures": [FIGURE, TABLE]}, "two figures or tables are called 'mse'; give each"),
        ({"figures": [TABLE, TABLE]}, "two figures or tables are called 'mse'; give each"),
        ({"figures": [{**FIGURE, "kind": "pie"}]}, "unknown kind of figure 'pie'"),
        ({"figures": [{**FIGURE, "kind": "comparison_table"}]}, "a comparison_table needs title"),
        ({"figures": [{**FIGURE, "ylim": 5}]}, r"report\.figures\.0 \(mse\)\.ylim must be list or mapping"),
        ({"figures": [{**FIGURE, "metric": "msee"}]}, "did you mean 'mse'"),
        ({"figures": [{**FIGURE, "kind": "metric_by_metric", "against": "second"}]}, "unknown metric .*'second'"),
        ({"figures": [{**FIGURE, "relative": {"mse": ["exakt/linear_statistics"]}}]}, "did you mean 'exact/linear_st"),
        ({"figures": [{**GAIN, "gain": {"trivial": ["exakt/linear_rows"]}}]}, "did you mean 'exact/linear_rows'"),
        ({"figures": [{**GAIN, "gain": {"over": ["exact/linear_rows"]}}]}, "unknown key of report.figures.0 .*'over'"),
    ],
)
def test_a_report_that_asks_for_what_there_is_not_is_refused(report, message):
    with pytest.raises(UserError, match=message):
        checked_report(report, ["mse"])


def test_an_axis_has_the_label_of_its_metric_unless_the_figure_names_it():
    figures = [FIGURE, {**FIGURE, "name": "own", "ylabel": "error"}, {**FIGURE, "name": "new", "metric": "mine"}]
    found = checked_report({"figures": figures}, ["mse", "mine"])["figures"]
    assert [spec["ylabel"] for spec in found] == ["MSE", "error", "mine"]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            "_required_: {metric: str}",
            "figure.pie._required_ is no longer a key: name each key of a spec with its type",
        ),
        ("_optional_: {metric: str}", r"_optional_ is no longer a key: .* xlabel: str \| None if it may be left out"),
        ("_reads_: [notes.bins]", "_reads_ is no longer a key: give the function a keyword-only parameter"),
        ("metric: string", "unknown type of figure.pie, key metric, 'string'"),
    ],
)
def test_a_kind_from_outside_that_says_its_keys_otherwise_is_told_how(tmp_path, body, message):
    (tmp_path / "figure").mkdir()
    (tmp_path / "figure" / "pie.yaml").write_text(f"pie:\n  _target_: pies.pie\n  {body}\n")
    use_folder(tmp_path)
    with pytest.raises(UserError, match=message):
        kind_of({"kind": "pie"})


def test_a_keyword_only_parameter_of_a_kind_is_a_further_column_by_the_path_that_is_its_default(tmp_path):
    assert kind_of({"kind": "coverage_table"}).reads == ("model.parameters.level",)
    (tmp_path / "figure").mkdir()
    (tmp_path / "figure" / "pie.yaml").write_text("pie: {_target_: pies.pie, slice: int, colour: str | None}\n")
    (tmp_path / "pies.py").write_text("def pie(frame, labels, spec, notes, *, slice): ...\n")
    use_folder(tmp_path)
    pie = kind_of({"kind": "pie"})
    assert (pie.required, pie.optional) == ({"slice": "int"}, {"colour": "str"})
    with pytest.raises(UserError, match="the default of slice must be the path of a column"):
        _ = pie.reads


def test_a_paper_names_experiments_that_there_are(tmp_path):
    assert {"linreg_adult", "logreg_adult"} <= set(paper_of("dd_ssp").experiments)
    with pytest.raises(UserError, match="unknown paper 'dd_sp'; did you mean 'dd_ssp'"):
        paper_of("dd_sp")
    (tmp_path / "paper").mkdir()
    spec = "{name: a, metric: mse, experiments: [linreg_adul]}"
    (tmp_path / "paper" / "own.yaml").write_text(f"title: Own\nreport: {{figures: [{spec}]}}\n")
    with pytest.raises(UserError, match="did you mean 'linreg_adult'"):
        paper_of("own", tmp_path)


def test_no_figure_and_table_of_a_paper_have_one_name(tmp_path):
    """Both are anchors of one page."""
    (tmp_path / "paper").mkdir()
    table = "{name: a, kind: comparison_table, title: A, metric: mse}"
    own = tmp_path / "paper" / "own.yaml"
    own.write_text(f"title: Own\nreport: {{figures: [{{name: b, metric: mse}}, {table}]}}\n")
    assert len(paper_of("own", tmp_path).report["figures"]) == 2
    own.write_text(f"title: Own\nreport: {{figures: [{{name: a, metric: mse}}, {table}]}}\n")
    with pytest.raises(UserError, match="paper own: report: two figures or tables are called 'a'; give each"):
        paper_of("own", tmp_path)
