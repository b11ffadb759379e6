import pytest

from dpbench.report.text import latex, markdown_table, mean_and_error, powers


@pytest.mark.parametrize(
    ("mean", "se", "text"),
    [
        (0.0, 0.0, "0.000 ± 0"),
        (0.5, 0.0, "0.5000 ± 0"),
        (-16.07, 0.74, "-16.07 ± 0.74"),
        (0.001, 5.0, "0.0 ± 5.0"),
        (2e-9, 3e-10, "(2.00 ± 0.30)e-09"),
        (1e12, float("nan"), "1.000e+12"),
        (float("nan"), float("nan"), "no value"),
    ],
)
def test_mean_and_error(mean, se, text):
    assert mean_and_error(mean, se) == text


def test_text_is_escaped_for_latex_and_markdown():
    assert latex("\\{~^}") == r"\textbackslash{}\{\textasciitilde{}\textasciicircum{}\}"
    assert markdown_table(["a*"], [["x|y"]]).splitlines() == ["| a\\* |", "| --- |", "| x\\|y |"]


def test_units_have_raised_powers():
    assert powers("scaled target^2") == "scaled target²"
