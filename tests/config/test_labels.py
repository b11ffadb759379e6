import pytest

from dpbench.config.labels import labels, styles
from dpbench.errors import UserError
from dpbench.report.picture.looks import COLOURS, MARKERS
from dpbench.targets import use_folder


@pytest.mark.parametrize(
    ("method", "label"),
    [
        ("exact/linear_statistics", "non-private"),
        ("exact_table/logistic_rows", "non-private"),
        ("exact_table/logistic_marginals", "non-private, degree 2"),
        ("aim/linear_marginals", "DD-SSP"),
        ("aim/logistic_rows", "AIM-Synth"),
        ("aim/linear_marginals_bootstrap", "DD-SSP, bootstrap"),
        ("aim/xgboost", "AIM-Synth, ML"),
        ("binagg/bin_regression", "BinAgg"),
        ("binagg_centred/bin_regression_naive", "BinAgg, centred, naive"),
        ("binagg/linear_rows", "BinAgg, rows"),
    ],
)
def test_a_method_is_named_by_its_mechanism_what_the_model_reads_and_the_model(method, label):
    assert labels()[method] == label


def test_references_come_first():
    names = list(labels())
    assert names.index("exact/linear_statistics") < names.index("adassp/linear_statistics")


def test_a_look_is_of_one_label_and_known_to_the_figures():
    found = styles()
    assert len(set(found.values())) == len(found), "two labels look alike"
    assert set(found) <= set(labels().values()), "a style of a label that no method has"
    assert all(colour in COLOURS and marker in MARKERS for colour, marker in found.values())


@pytest.mark.parametrize("label", ["true", "[a]", "3"])
def test_a_label_that_is_no_text_nor_a_mapping_is_refused_whatever_is_run(tmp_path, label):
    (tmp_path / "mechanism").mkdir()
    declared = f"mine:\n  _target_: dpbench.mechanisms.ssp.ssp\n  _label_: {label}\n"
    (tmp_path / "mechanism" / "mine.yaml").write_text(declared)
    use_folder(tmp_path)
    try:
        with pytest.raises(UserError, match=r"mechanism\.mine\._label_ must be str or mapping"):
            labels()
    finally:
        use_folder(None)


def test_a_mechanism_from_outside_brings_its_label_and_style(tmp_path):
    (tmp_path / "mechanism").mkdir()
    config = tmp_path / "mechanism" / "mine.yaml"
    config.write_text("mine:\n  _target_: m.mine\n  _label_: Mine\n  _styles_: {Mine: blue *}\n")
    use_folder(tmp_path)
    try:
        assert labels()["mine/linear_rows"] == "Mine" and styles()["Mine"] == ("blue", "*")
        config.write_text("mine:\n  _target_: m.mine\n  _label_: {rows: Mine-Synth, linear_tables: T, others: Mine}\n")
        named = [labels()[f"mine/{model}"] for model in ("linear_rows", "linear_tables", "linear_statistics")]
        assert named == ["Mine-Synth", "T", "Mine"]
        config.write_text("mine:\n  _target_: m.mine\n  _styles_: {mine: blue}\n")
        with pytest.raises(UserError, match="the style of mine must be such as 'blue o'"):
            styles()
    finally:
        use_folder(None)


def test_a_model_from_outside_is_told_apart_by_its_name(tmp_path):
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "ridge.yaml").write_text("ridge: {_target_: m.ridge, _needs_: statistics}\n")
    (tmp_path / "model" / "lasso.yaml").write_text("lasso: {_target_: m.l, _needs_: statistics, _label_: Lasso}\n")
    use_folder(tmp_path)
    try:
        found = labels()
    finally:
        use_folder(None)
    names = [found[f"adassp/{model}"] for model in ("linear_statistics", "ridge", "lasso")]
    assert names == ["AdaSSP", "AdaSSP, ridge", "AdaSSP, Lasso"]
