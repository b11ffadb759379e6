"""A stranger's method, in a folder outside the repository, comes on the leaderboard by one file."""

import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

from dpbench.cli import main
from dpbench.config import compose, paper_of
from dpbench.data.fetch import verify
from dpbench.grid.log_file import sealed, unsealed
from dpbench.report.site.boards import board_of, exports_of
from dpbench.report.site.leaderboards import Pages
from dpbench.report.site.rendering import Site
from dpbench.report.site.submitted import entries_of, write_submissions
from dpbench.report.submissions import read_submission, submissions_in
from dpbench.targets import use_folder

ROOT = Path(__file__).parents[2]
CODE = '''
from dpbench.data.encode import second_moments
from dpbench.privacy.accounting import gaussian_mu
from dpbench.privacy.ledger import Ledger
from dpbench.privacy.noise import gaussian
from dpbench.privacy.sensitivity import of_cross, of_gram
from dpbench.releases import Release, SufficientStatistics


def stranger(train, budget, rng, *, design):
    """Noise on both moments."""
    X, y = design.encode(train)
    xtx, xty = second_moments(X, y)
    ledger, m = Ledger(), 2**0.5 / gaussian_mu(budget.epsilon, budget.delta)
    xtx = gaussian(rng, ledger, xtx, sensitivity=of_gram(design, budget.relation), multiplier=m, label="X'X")
    xty = gaussian(rng, ledger, xty, sensitivity=of_cross(design, budget.relation), multiplier=m, label="X'y")
    return Release(train.domain, budget, ledger, (SufficientStatistics(xtx, xty, 1.0, 1.0),))
'''
RUN = [
    "experiment=arena_lite_regression",
    "sweep.dataset=[abalone]",
    "mechanism=[exact,stranger]",
    "model=[linear_statistics]",
    "epsilon=[1]",
    "repetitions=2",
    "jobs=1",
]
WHO = ["--method", "Stranger's moments", "--who", "A. Stranger", "--link", "https://example.org/a"]


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """A folder with the stranger's method, and a run of it."""
    if any(state == "absent" for _, state, _ in verify(compose(["dataset=abalone"]).dataset.sources)):
        pytest.skip("the file of abalone is in no folder of DPBENCH_DATA_MIRRORS")
    folder = tmp_path_factory.mktemp("elsewhere")
    (folder / "own" / "mechanism").mkdir(parents=True)
    (folder / "own" / "theirs.py").write_text(CODE)
    config = "stranger: {_target_: theirs.stranger, _offers_: [statistics]}\n"
    (folder / "own" / "mechanism" / "stranger.yaml").write_text(config)
    assert main(["run", *RUN, f"results={folder}/results", "--config-dir", str(folder / "own")]) == 0
    use_folder(None)
    said = yaml.safe_load((folder / "results" / "arena_lite_regression" / "experiment.yaml").read_text())["follows"]
    assert said == ["Protocol: arena lite 1.1, departs in: epsilon, repetitions, sweep.dataset"]
    return folder


@pytest.fixture
def stranger(ran, tmp_path):
    """A copy, and the line that submits its run to the folder `sent`."""
    shutil.copytree(ran, tmp_path, dirs_exist_ok=True)

    def submit(*more, source="results/arena_lite_regression", own=True):
        line = ["submit", str(tmp_path / source), *WHO, "--out", str(tmp_path / "sent"), *more]
        return main([*line, "--config-dir", str(tmp_path / "own")] if own else line)

    submit.folder = tmp_path
    return submit


def scores(folder, **change):
    """A table of scores of a method that ran elsewhere: two repetitions at one place."""
    made = {"dataset": "abalone", "epsilon": 1.0, "delta": 1e-5, "relation": "add_remove", "metric": "mse", **change}
    table = pd.DataFrame({"repetition": [0, 1], "value": [0.03, 0.05], **made})
    table.to_csv(folder / "scores.csv", index=False)
    table.to_parquet(folder / "scores.parquet")


def test_a_strangers_run_is_a_row_of_the_leaderboard(stranger, capsys):
    assert stranger("--recompute", "1") == 0
    said = capsys.readouterr().out
    assert "departs in: 1 of 4 tables; 1 of 12 pairs of a table and an epsilon; 2 of 5 repetitions (recomputed)" in said
    assert "stranger_s_moments.jsonl.xz to results/submissions of the repository; `make site` then shows it" in said
    copy = stranger.folder / "copy" / "submissions"  # of the results of the repository
    shutil.copytree(stranger.folder / "sent", copy)
    scores(stranger.folder)
    line = ["submit", str(stranger.folder / "scores.csv"), "--method", "Elsewhere", "--who", "B", "--out", str(copy)]
    assert main([*line, "--experiment", "arena_lite_regression"]) == 0
    assert main(["verify", str(copy.parent)]) == 0
    assert "stranger_s_moments.jsonl.xz (recomputed): 2 trials, no problem found" in capsys.readouterr().out
    paper, name = paper_of("arena"), "arena_regression"
    cells = [one for one in exports_of(paper, ROOT / "results")[name] if one.key.release.dataset["name"] == "abalone"]
    board = board_of(paper, next(spec for spec in paper.report["figures"] if spec["name"] == "regression_ranks"), cells)
    submitted, datasets = submissions_in(copy.parent), {"abalone": compose(["dataset=abalone"]).dataset}
    entries = [one for each in submitted for one in entries_of(board, each, datasets, ())]
    site = Site(stranger.folder / "pages")
    Pages(board, datasets, ()).write(site, entries)
    write_submissions(site, submitted, entries)
    page = (site.folder / "boards" / "arena-regression_ranks.md").read_text()
    assert page.count("Stranger&#39;s moments</a> <em>recomputed, arena lite 1.1, 1 of 1 tables</em>") == 1  # in ranks
    assert page.count("Stranger&#39;s moments</a> <em>recomputed</em>") == 1  # in numbers
    assert page.count("Elsewhere</a> <em>self-reported, not run here</em>") == 1
    own, elsewhere = (
        (site.folder / "submissions" / f"{name}.md").read_text() for name in ("stranger_s_moments", "elsewhere")
    )
    assert "X&#39;X: gaussian: multiplier" in own and "A. Stranger" in own and "arena lite 1.1" in own
    assert "0.040 ± 0.010" in elsewhere and "gaussian" not in elsewhere and "Spent" not in elsewhere
    stored = [
        score.value
        for cell in submitted[1].cells
        for trial in cell.trials
        for score in trial.scores
        if score.name == "mse"
    ]
    (row,) = (row.cell for entry in entries for row in entry.rows if entry.about.ran_here)
    assert row["mean"] == pytest.approx(np.mean(stored)) and row["direction"] == "lower"
    here = board.private.query("dataset == 'abalone' and epsilon == 1")
    assert row["rank"] == 1 + (here["mean"] < row["mean"]).sum(), "the rank that it would have"
    assert "stranger" not in set(board.cells["mechanism"]), "it has no say in the ranks of others"


def test_a_folder_that_verify_finds_wrong_is_refused(stranger, capsys):
    def better(record):
        for score in (one for one in record.get("scores", []) if one["name"] == "mse"):
            text = repr(score["value"])  # of the same length: records name the places of others
            score["value"] = float(f"{text[:4]}{'12'[text[4] == '1']}{text[5:]}")

    (path,) = (stranger.folder / "results" / "arena_lite_regression" / "trials").iterdir()
    lines = path.read_bytes()
    path.write_bytes(lines.replace(b'"done"', b'"dane"', 1))
    assert stranger() == 2
    assert "dpbench verify finds what is wrong" in capsys.readouterr().err
    changed = [unsealed(line) for line in lines.splitlines(keepends=True)]
    for record in changed:
        better(record)
    path.write_bytes(b"".join(sealed(record).encode() for record in changed))
    assert stranger("--recompute", "1") == 2, "what has new checksums is found by running it again"
    assert "other scores when rerun" in capsys.readouterr().err
    assert not (stranger.folder / "sent").exists()


def test_the_code_is_that_of_the_trials_and_passes_its_check(stranger, capsys):
    assert stranger(own=False) == 2
    assert "give the folder of your own configs by --config-dir" in capsys.readouterr().err
    code = stranger.folder / "own" / "theirs.py"
    code.write_text(CODE.replace("2**0.5", "1.5**0.5"))
    assert stranger() == 2
    assert "stranger was edited after these trials" in capsys.readouterr().err


@pytest.mark.slow
def test_a_mechanism_that_fails_its_check_is_refused(stranger, capsys):
    leaks = CODE.replace("(SufficientStatistics(xtx, xty", "(SufficientStatistics(second_moments(X, y)[0], xty")
    assert leaks != CODE
    (stranger.folder / "own" / "theirs.py").write_text(leaks)
    shutil.rmtree(stranger.folder / "results")
    root, own = f"results={stranger.folder}/results", str(stranger.folder / "own")
    assert main(["run", *RUN, root, "--unchecked", "--config-dir", own]) == 0
    assert stranger() == 2
    assert "dpbench check mechanism=stranger finds what is wrong" in capsys.readouterr().err


def test_a_run_of_the_projects_methods_has_nothing_to_submit(bench, capsys):
    bench.has_run("mechanism=[adassp]", "repetitions=2")
    assert main(["submit", str(bench.results / "grid"), *WHO]) == 2
    assert "no trial of its plan by a method of your own" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "more", "message"),
    [
        ({}, [], "give the --experiment"),
        ({}, ["--experiment", "quickstart"], "unknown experiment with a protocol 'quickstart'"),
        ({"epsilon": 0.3}, [], "has no abalone at epsilon 0.3, .* it has abalone at epsilon 0.1"),
        ({"metric": "mae"}, [], "has no value of mse, by which"),
        ({"repetition": [0, 0]}, [], "two values of one metric"),
        ({"repetition": [0, 1.5]}, [], "a whole number"),
        ({"epsilon": ["1", "one"]}, [], "cannot be read as scores"),
        ({"relation": None}, [], "has empty cells"),
    ],
)
def test_scores_that_cannot_be_used_are_named(tmp_path, capsys, change, more, message):
    table = {"dataset": "abalone", "epsilon": 1.0, "delta": 1e-5, "relation": "add_remove", "metric": "mse"}
    pd.DataFrame({"repetition": [0, 1], "value": [0.03, 0.05], **table, **change}).to_csv(tmp_path / "scores.csv")
    asked = more or (["--experiment", "arena_lite_regression"] if change else [])
    assert main(["submit", str(tmp_path / "scores.csv"), *WHO, *asked, "--out", str(tmp_path)]) == 2
    assert pd.Series(capsys.readouterr().err).str.contains(message).all()
    assert len(list(tmp_path.iterdir())) == 1


def test_scores_of_a_parquet_are_those_of_the_csv(tmp_path):
    scores(tmp_path)
    found = {}
    for kind in ("csv", "parquet"):
        line = ["submit", str(tmp_path / f"scores.{kind}"), *WHO, "--experiment", "arena_lite_regression"]
        assert main([*line, "--out", str(tmp_path / kind)]) == 0
        (path,) = (tmp_path / kind).iterdir()
        found[kind] = path.read_bytes()
        about = read_submission(path).about
        assert about.mark == "self-reported, not run here" and "2 of 5 repetitions" in about.departs
    assert found["csv"] == found["parquet"]
