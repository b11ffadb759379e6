import random
import re
from dataclasses import replace

import pytest

from dpbench.config import Paper, choices, compose, composed, paper_of
from dpbench.config.labels import styles
from dpbench.errors import UserError
from dpbench.report.claims.statements import RELATIONS, SHARES, WITHOUT_MARGIN
from dpbench.report.frames.results import Results, titles_of
from dpbench.report.kinds import is_table
from dpbench.report.paper import build_paper

from .made_up import LABELS, make_grid, make_trial

FIGURE = {
    "name": "figure1", "metric": "mse", "title": "Both data sets", "yscale": "log",
    "experiments": ["linreg_taxi", "linreg_adult", "linreg_fire"], "show": ["public", "AdaSSP", "DD-SSP", "AIM-Synth"],
}  # fmt: skip
CURVE = {"name": "curve", "kind": "polynomial", "radius": 6, "fits": [{"degree": 2, "construction": "series"}]}
NEVER = {"name": "never_run", "metric": "auc", "title": "Nothing", "experiments": ["linreg_fire", "linreg_adult"]}
STATEMENT = {
    "claim": "DD-SSP is better", "where": "section 4", "figure": "figure1", "relation": "better",
    "method": "aim/linear_marginals", "baseline": "adassp/linear_statistics", "except": ["linreg_taxi"],
}  # fmt: skip
MARGIN = {"part": 0.1, "of": "exact/linear_statistics", "reason": "a reason"}
PAPER = Paper(
    "a_paper",
    "A paper",
    {"panels": {"adult": "Adult", "taxi": "Taxi (part)"}, "labels": LABELS, "figures": [CURVE, FIGURE, NEVER]},
    {
        "margins": {"mse": {"part": 0.1, "of": "exact/linear_statistics", "reason": "a reason"}},
        "statements": [STATEMENT],
    },
)


@pytest.fixture(scope="module")
def experiment():
    return compose(["experiment=quickstart"])


@pytest.fixture
def results(experiment):
    def of(dataset, trials, *notes):
        one = replace(experiment, name=f"linreg_{dataset}", dataset=replace(experiment.dataset, name=dataset))
        return Results(one, trials, notes)

    adult = [trial for trial in make_grid() if trial.key.release.mechanism.name != "aim"]
    adult += [make_trial("aim", "linear_marginals", 0.1, place, 0.06) for place in range(5)]
    return [of("adult", adult, "limits: smoke"), of("taxi", make_grid("taxi", seed=1)), of("fire", [])]


def text_of(folder, name):
    return (folder / "tables" / name).read_text().replace("\\", "")


def test_files_of_a_paper_and_figures_without_results_left_out(results, tmp_path):
    paths = [str(path.relative_to(tmp_path)) for path in build_paper(PAPER, results, tmp_path)]
    assert paths == [
        *(f"figures/curve.{suffix}" for suffix in ("png", "csv")),
        *(f"figures/figure1.{suffix}" for suffix in ("png", "csv")),
        *(f"tables/figure1.{suffix}" for suffix in ("md", "tex")),
        "tables/statements.md",
        "tables/statements.csv",
        "tables/claims.csv",
    ]


def test_a_figure_of_medians_has_means_in_a_table(results, tmp_path):
    medians = replace(PAPER, report={**PAPER.report, "figures": [{**FIGURE, "statistic": "median"}]})
    build_paper(medians, results, tmp_path)
    assert "median" in (tmp_path / "figures/figure1.csv").read_text().partition("\n")[0].split(",")
    assert "mean" in (tmp_path / "tables/figure1.csv").read_text().partition("\n")[0].split(",")


def test_a_figure_names_what_was_not_run_and_only_shows_its_labels(results, tmp_path):
    build_paper(PAPER, results, tmp_path)
    table = text_of(tmp_path, "figure1.md")
    assert "Experiments not run: linreg_fire." in table and "linreg_adult: limits: smoke." in table
    cells = "".join(line for line in table.splitlines() if line.startswith("|"))
    assert "| Taxi (part): AIM-Synth |" in cells and "SSP (tight)" not in cells.replace("AdaSSP (tight)", "")
    rows = (tmp_path / "figures/figure1.csv").read_text().splitlines()[1:]
    assert list(dict.fromkeys(row.split(",")[0] for row in rows)) == ["taxi", "adult"], "the order of the experiments"


def test_a_method_that_no_experiment_ran_is_named(results, tmp_path):
    build_paper(PAPER, [results[0], replace(results[1], trials=()), results[2]], tmp_path)
    assert "Methods not run: AIM-Synth" in text_of(tmp_path, "figure1.md")
    assert "Experiments not run: linreg_taxi, linreg_fire. limits: smoke." in text_of(tmp_path, "figure1.md")


def test_the_same_trials_give_the_same_bytes(results, tmp_path):
    build_paper(PAPER, results, tmp_path / "a")
    mixed = [replace(one, trials=random.Random(2).sample(one.trials, len(one.trials))) for one in results]
    build_paper(PAPER, mixed[::-1], tmp_path / "b")
    for path in sorted((tmp_path / "a").rglob("*.*")):
        assert path.read_bytes() == (tmp_path / "b" / path.relative_to(tmp_path / "a")).read_bytes(), path


def test_an_unknown_label_is_the_users_matter(results, tmp_path):
    figure = FIGURE | {"show": ["AdaSPS"]}
    with pytest.raises(UserError, match="did you mean 'AdaSSP'"):
        build_paper(replace(PAPER, report=PAPER.report | {"figures": [figure]}), results, tmp_path)
    assert not list(tmp_path.iterdir())


def test_an_unknown_paper_is_the_users_matter():
    with pytest.raises(UserError, match="did you mean 'dd_ssp'"):
        paper_of("dd_sps")


@pytest.mark.parametrize("name", choices("paper"))
def test_a_shipped_paper_names_only_what_there_is(name):
    paper = paper_of(name)
    labels, figures = paper.report["labels"], {spec["name"]: spec for spec in paper.report["figures"]}
    assert set(paper.experiments) <= set(choices("experiment"))
    configs = [composed([f"experiment={one}"]) for one in paper.experiments]
    datasets = {name for one in configs for name in one["sweep"].get("dataset", [one["dataset"]["name"]])}
    tables = paper.published.get("tables", {})
    published = {str(row) for table in tables.values() if isinstance(table["rows"], dict) for row in table["rows"]}
    assert datasets | published == set(paper.report["panels"])
    order, looks = list(dict.fromkeys(labels.values())), styles()
    for spec in figures.values():
        assert spec.get("published", "table1") in {"table1", *tables}
        assert set(spec.get("show", [])) <= set(order)
        if is_table(spec):
            continue
        shown = spec.get("show", [])
        assert set(shown) <= set(looks), f"{spec['name']}: a method without a style of its own"
        colours = [
            looks[label][0] for label in shown if looks[label][0] != "black"
        ]  # of references, reported by dashes
        assert len(set(colours)) == len(colours), f"{spec['name']} shows one colour twice"
    for statement in paper.published.get("statements", []):
        spec = figures[statement["figure"]]
        compared = {one for one in (statement["method"], statement["baseline"]) if isinstance(one, str)}
        assert compared <= {*labels, *labels.values()}
        assert statement["relation"] in RELATIONS
        margin = statement.get("margin") or paper.published["margins"].get(statement.get("metric", spec["metric"]), {})
        assert (
            statement["relation"] in (*WITHOUT_MARGIN, *SHARES)
            or "absolute" in margin
            or margin["of"] in compared | {*labels}
        )
        assert set(statement.get("only", [])) <= set(spec["experiments"])
        assert set(statement.get("experiments", [])) <= set(paper.experiments)
        assert set(statement["at"] if isinstance(statement.get("at"), dict) else []) <= datasets
        assert set(statement.get("except", [])) <= {*spec["experiments"], *datasets, *map(str, spec.get("panels", {}))}
    for entry in paper.published.get("runtimes", {}).get("times", []):
        assert entry["experiment"] in paper.experiments
        assert any(label.startswith(f"{entry['mechanism']}/") for label in labels)
    if "datasets" in paper.published:
        assert datasets <= {name for one in paper.published["datasets"] for name in one["names"]}


def asked(figures, kind):
    return {(*spec.get("experiments", ()), spec["metric"]) for spec in figures if spec.get("kind") == kind}


@pytest.mark.parametrize(
    "name", [*choices("paper"), *(one for one in choices("experiment") if re.match("arena_(?!check)", one))]
)
def test_each_figure_of_mean_ranks_has_the_table_of_its_numbers(name):
    report = paper_of(name).report if name in choices("paper") else compose([f"experiment={name}"]).report
    figures = asked(report["figures"], "mean_ranks")
    assert figures == asked(report["figures"], "mean_ranks_table") and (figures or not name.startswith("arena"))


@pytest.mark.parametrize("name", choices("paper"))
def test_models_side_by_side_are_those_that_the_experiments_of_the_figure_run(name):
    for spec in paper_of(name).report["figures"]:
        if spec.get("x") == "model.name":
            run = {model for one in spec["experiments"] for model in composed([f"experiment={one}"])["model"]}
            assert set(spec["categories"]) == run and len(set(spec["categories"].values())) == len(run)


def test_a_table_has_the_numbers_of_the_paper(results, tmp_path):
    spec = {
        "name": "table1", "kind": "comparison_table", "title": "T", "metric": "mse", "published": "one",
        "experiments": ["linreg_adult"], "show": ["public"],
    }  # fmt: skip
    published = {"where": "Table 1", "repetitions": 5, "digit": 0.001, "rows": {"adult": {"public": 9.876}}}
    paper = replace(PAPER, report=PAPER.report | {"figures": [spec]}, published={"tables": {"one": published}})
    names = [path.name for path in build_paper(paper, results, tmp_path)]
    assert names == ["table1.csv", "table1.md", "table1.tex"]
    table = text_of(tmp_path, "table1.md")
    assert "| Adult | " in table and "paper 9.876: lower" in table
    assert "limits: smoke." in table, "what the run's notes say"


def test_titles_are_those_of_every_data_set_of_a_sweep(experiment):
    points = tuple(replace(experiment, dataset=replace(experiment.dataset, name=name)) for name in ("b", "a"))
    swept = Results(replace(points[0], points=points), [])
    assert titles_of([swept], {"a": "A"}) == {"b": "b", "a": "A"}
