"""`dpbench check`: what it is asked, and its exit code."""

import pytest

from dpbench.cli import main


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ([], "say what to check"),
        (["limits=smoke"], "say what to check"),
        (["metric=msee"], "did you mean 'mse'"),
        (["mechanism=ssp", "dataset.target=y"], "such as dataset=csv"),
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


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("raise SystemExit(0)", "SystemExit"),
        (
            "from dataclasses import replace; from dpbench.mechanisms.ssp import ssp\n"
            "    made = ssp(train, budget, rng, design=design); (one,) = made.parts\n"
            "    return replace(made, parts=(replace(one, xtx=one.xtx[1:, 1:], xty=one.xty[1:]),))",
            "X'y of the release must have the shape",
        ),
    ],
)
def test_a_mechanism_that_ends_the_program_or_leaves_out_a_feature_is_found(tmp_path, capsys, body, message):
    (tmp_path / "mechanism").mkdir()
    (tmp_path / "bad.py").write_text(f"def bad(train, budget, rng, *, design):\n    {body}\n")
    (tmp_path / "mechanism" / "bad.yaml").write_text("bad:\n  _target_: bad.bad\n  _offers_: [statistics]\n")
    assert main(["check", "mechanism=bad", "--config-dir", str(tmp_path)]) == 1
    assert message in capsys.readouterr().out


def test_a_mechanism_that_says_by_its_noise_that_there_is_no_estimate_passes(capsys):
    assert main(["check", "mechanism=tukey_em"]) == 0
    assert "it says where there is no estimate (epsilon=1, add_remove: no point" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("mechanism", "settings", "message"),
    [
        ("ssp", ["dataset.target=b"], "ok     a release (made-up rows with the declaration of csv, replace)"),
        ("ssp", [], "(add_remove, skewed rows)': ssp needs a target"),
        (
            "tukey_em",
            ["dataset.target=b"],
            "there is no estimate (made-up rows with the declaration of csv",
        ),
        ("mwem", ["mechanism.mwem.workload=1"], "549 MB, and the limit is 80 MB"),
    ],
)
def test_a_mechanism_is_tried_on_made_up_rows_with_the_declaration_of_ones_own_table(
    tmp_path, capsys, mechanism, settings, message
):
    (tmp_path / "my.yaml").write_text("a: {levels: [x, y]}\nb: {bounds: [0, 1], bins: 60000}\nc: 600\n")
    own = ["dataset=csv", f"dataset.path={tmp_path}/absent.csv", f"dataset.domain={tmp_path}/my.yaml"]
    main(["check", f"mechanism={mechanism}", *own, *settings])
    assert message in capsys.readouterr().out
