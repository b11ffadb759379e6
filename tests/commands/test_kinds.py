"""What the checks find out about a kind of figure or table."""

import pytest

from dpbench.cli import main


@pytest.mark.parametrize(
    "line",
    [
        "figure=histogram",
        "figure=metric_by_setting",
        "table=comparison_table",
        "table=difference_table",
        "table=mean_ranks_table",
        "table=method_difference_table",
    ],
)
def test_what_ships_passes(capsys, line):
    assert main(["check", line]) == 0, capsys.readouterr().out


@pytest.mark.parametrize(
    ("group", "name", "code", "message"),
    [
        ("figure", "pie", "def pie(frame, labels, spec, notes): return None", "not NoneType"),
        ("table", "list", "def list(frame, labels, spec): ...", "no positional parameter 'published'"),
    ],
)
def test_a_bad_kind_is_found_out(tmp_path, capsys, group, name, code, message):
    (tmp_path / group).mkdir()
    (tmp_path / "plugin.py").write_text(code)
    (tmp_path / group / f"{name}.yaml").write_text(f"{name}:\n  _target_: plugin.{name}\n")
    assert main(["check", f"{group}={name}", "--config-dir", str(tmp_path)]) == 1
    assert message in capsys.readouterr().out
