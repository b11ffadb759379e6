"""`dpbench check`: what it is asked, and its exit code."""

import pytest

from dpbench.cli import main


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ([], "say what to check"),
        (["limits=smoke"], "say what to check"),
        (["metric=msee"], "did you mean 'mse'"),
    ],
)
def test_what_cannot_be_checked_is_told(line, message, capsys):
    assert main(["check", *line]) == 2
    assert message in capsys.readouterr().err


def test_several_parts_are_checked_in_turn_and_one_that_fails_makes_the_code_1(tmp_path, capsys):
    (tmp_path / "metric").mkdir()
    (tmp_path / "broken.py").write_text("def broken(evaluation): return 1 / 0")
    (tmp_path / "metric" / "broken.yaml").write_text("broken:\n  _target_: broken.broken\n")
    assert main(["check", "metric=[broken,mse]", "table=comparison_table", "--config-dir", str(tmp_path)]) == 1
    out = capsys.readouterr().out
    assert "ZeroDivisionError" in out and "broken.py, line 1" in out
    assert [line for line in out.splitlines() if not line.startswith(" ")] == [
        "metric broken",
        "metric mse",
        "table comparison_table",
    ]
