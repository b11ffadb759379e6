"""The Python interface: what the command line does, and single releases and fits of data frames.

`run`, `results` and `figure` take the settings of the command line, as texts (`["experiment=quickstart", "jobs=2"]`) or
as a mapping (`{"experiment": "quickstart", "jobs": 2}`), and see the same folders: a grid that was run there is read
here, and the other way round. `release` and `fit` store nothing. All raise `UserError` for invalid input, with the text
that the command line prints.

>>> import tempfile
>>> small = {"sample": "smoke", "limits": "smoke", "repetitions": 1, "epsilon": [1], "calibration": "tight", "jobs": 1}
>>> with tempfile.TemporaryDirectory() as folder:
...     done = run({"experiment": "quickstart", "mechanism": ["exact", "ssp"], "results": folder, **small})
...     scores = results(done.folder)
...     drawn = figure(done.folder, "quickstart")
>>> done.statuses
{'done': 2}
>>> scores.query("metric == 'mse'")[["mechanism", "epsilon", "status", "unit"]].values.tolist()
[['exact', inf, 'done', 'scaled target^2'], ['ssp', 1.0, 'done', 'scaled target^2']]
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from dpbench.commands.completion import hint
from dpbench.commands.report import no_trial, notes_of, papers_of, results_of
from dpbench.commands.run import run_missing
from dpbench.commands.run_settings import recall
from dpbench.commands.stored_trials import stored_trials
from dpbench.config import Paper, choices, compose, hydra_text, paper_of, part_of
from dpbench.config.catalogue import catalogue
from dpbench.config.parts import with_parameters
from dpbench.config.specs import Report, Spec
from dpbench.data.coding import code_frame
from dpbench.data.declare import domain_from_config, read_domain_file
from dpbench.data.domain import Domain
from dpbench.data.public import shared_rows
from dpbench.data.table import Table
from dpbench.errors import UserError, check_known, missing_extra, unknown
from dpbench.files import Node, usual_mode
from dpbench.grid.single import design_of, fit_release, make_release, private_part
from dpbench.metrics.quality import quality
from dpbench.models.fitted import Fitted
from dpbench.privacy.budget import Budget
from dpbench.privacy.ledger import Ledger
from dpbench.releases import Release, SyntheticRows
from dpbench.releases.release_file import read_release
from dpbench.report.build import made_figure
from dpbench.report.frames.frame import tidy_frame
from dpbench.report.frames.results import Results
from dpbench.report.kinds import is_table
from dpbench.report.paper import figure_of
from dpbench.report.picture.render_matplotlib import rendered
from dpbench.targets import config_folder, own_folder, use_folder

__all__ = [
    "Fitted",
    "Run",
    "UserError",
    "evaluate",
    "figure",
    "fit",
    "mechanisms",
    "read_release",
    "release",
    "results",
    "run",
]

Settings = Sequence[str] | Node
Declaration = Domain | Node | str | Path  # a domain, as a mapping, or in a YAML or JSON file

# --- grids ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Run:
    """What is stored of a grid after `run`.

    `folder`: its results. `planned`: trials of the grid. `ran`: those of them that ran now. `statuses`: how many are
    stored with each status, such as done or failed. `table`: the means of the first metric, as text.
    """

    folder: Path
    planned: int
    ran: int
    statuses: Mapping[str, int]
    table: str

    def __repr__(self) -> str:
        states = ", ".join(f"{count} {status}" for status, count in sorted(self.statuses.items()))
        return f"<Run of {self.planned} trials in {self.folder}: {states or 'none stored'}; {self.ran} ran now>"


def run(
    settings: Settings,
    *,
    config_dir: str | Path | None = None,
    force: bool = False,
    retry_failed: bool = False,
    fail_fast: bool = False,
    unchecked: bool = False,
    other_code: bool = False,
) -> Run:
    """Run what is missing of a grid, in processes of their own, as `dpbench run` does, with its progress on the
    standard error. It may be interrupted: the same call continues.

    The options are those of the command: `force` runs everything again, `retry_failed` what failed, `fail_fast` stops
    at the first failure; `unchecked` leaves out the check of own mechanisms, `other_code` accepts stored trials by
    other versions of the code. `config_dir` has your own configs and their modules, which are imported and run.

    Raises `UserError` for invalid settings or data. A trial that fails is no error: see `statuses`.
    """
    with _folder(config_dir) as folder, usual_mode():
        options = {"force": force, "retry_failed": retry_failed, "fail_fast": fail_fast}
        arguments = _arguments(settings, folder, **options, unchecked=unchecked, other_code=other_code)
        recall(arguments)
        done = run_missing(arguments)
    return Run(done.store.folder, len(done.plan.trial_ids), done.ran, dict(done.statuses), done.table)


def results(
    source: str | Path,
    settings: Settings = (),
    *,
    config_dir: str | Path | None = None,
    other_code: bool = False,
) -> pd.DataFrame:
    """The trials that are stored or exported of a run (its folder), of an experiment or of a paper (their names).

    A row for each trial and score, failed trials included, with the columns of `dpbench export`, which
    `dpbench.report.frames.frame.COLUMNS` describes: `mechanism`, `model`, `epsilon`, `spent_epsilon`, `repetition`,
    `status`, `metric`, `value` with its `unit` and better `direction`, `release_seconds` and more.

    `settings` are further ones, such as `["results=elsewhere"]`. Trials by other versions of the code than today's are
    left out, unless `other_code` accepts them. Of a table that is not public, scores compare with its real rows: no
    budget protects them.

    Raises `UserError` for an unknown name, and where nothing is stored.
    """
    with _folder(config_dir) as folder:
        paper, line, own = _meant(source, settings, folder)
        found = [_stored(line, own, other_code)] if paper is None else results_of(paper, line, own, other_code)[0]
        trials = [trial for one in found for trial in one.trials]
        if not trials:
            raise UserError(f"nothing is stored of {source}: run its experiments first")
        return tidy_frame(trials)


def figure(
    source: str | Path,
    name: str | None = None,
    settings: Settings = (),
    *,
    config_dir: str | Path | None = None,
    other_code: bool = False,
) -> Figure:
    """A figure of a run, an experiment or a paper (see `results`), as `dpbench figures` draws it; nothing is written.

    `name`: of which there are several; the first, if it is left out. The figure belongs to no window:
    `figure(...).savefig("figure.png")`, or leave it to the notebook.

    Raises `UserError` for an unknown name, and where nothing is stored that the figure shows.
    """
    with _folder(config_dir) as folder:
        paper, line, own = _meant(source, settings, folder)
        if paper is None:
            one = _stored(line, own, other_code)
            spec = _figure_of(one.experiment.report, name, source)
            picture = made_figure([one], one.experiment.report["labels"], spec, one.notes)
        else:
            spec = _figure_of(paper.report, name, source)
            found, _ = results_of(paper, line, own, other_code, only=spec.get("experiments") or [])
            picture = figure_of(paper, spec, found)
    if picture.drawn.empty:
        raise UserError(f"figure {spec['name']} of {source} shows nothing: no stored trial has its metric")
    return rendered(picture)


def _figure_of(report: Report, name: str | None, source: str | Path) -> Spec:
    """The figure of this name in a report, or its first one."""
    figures: dict[str, Spec] = {str(spec["name"]): spec for spec in report["figures"] if not is_table(spec)}
    chosen = next(iter(figures), "") if name is None else name
    check_known(f"figure of {source}:", chosen, figures)
    return figures[chosen]


def mechanisms(config_dir: str | Path | None = None) -> pd.DataFrame:
    """The mechanisms that there are, a row each, as `dpbench list mechanisms` orders them.

    Columns: `task` (regression, classification, marginals, synthetic data), `privacy` (the neighbouring relations
    under which it is private, or not private), `releases` (what it offers to models) and `about`, one sentence.

    >>> mechanisms().loc["adassp", ["task", "privacy", "releases"]].to_list()
    ['regression', 'add_remove, replace', 'statistics']
    """
    entries = catalogue("mechanism", None if config_dir is None else config_folder(config_dir))
    rows = [{"mechanism": one.name, **one.facts, "about": one.about} for one in entries]
    return pd.DataFrame(rows).set_index("mechanism")


# --- one release, one fit ------------------------------------------------------------------------------------------


def release(
    df: pd.DataFrame,
    domain: Declaration,
    /,
    *,
    mechanism: str = "aim",
    epsilon: float = 1.0,
    delta: float = 1e-5,
    relation: str = "add_remove",
    target: str | None = None,
    public: pd.DataFrame | None = None,
    outside_domain: str = "error",
    seed: int | None = None,
    config_dir: str | Path | None = None,
    **parameters: Any,
) -> Release:
    """One differentially private release of all rows of a data frame, made in this process; nothing is stored.

    No odometer counts it: of one table add up what its releases spent, or make them with `dpbench release`, which does.

    `df` (n, d): a column for each attribute of `domain`, levels as text and numbers in their own unit. `domain`: what
    the table may contain, as below or in a YAML or JSON file of that form (`dpbench.data.declare`). It is public: do
    not compute it from the rows. `outside_domain`: what happens to a value outside of it: `error`, which tells the
    value, `clip` or `drop`. `target`: the attribute that is predicted, for mechanisms that regress. `public`: rows that
    need no privacy, for mechanisms that take some. `parameters`: of the mechanism, such as `workload=3`; `dpbench show
    mechanism=aim` lists them, and gives its source.

    The release is (epsilon, delta)-DP between neighbours of `relation`: `add_remove` one row, or `replace` one. What
    it cost is computed from its ledger and compared with the budget before it is returned: see `Release`, whose `rows`
    (a data frame), `marginals` and `spent` are what most will use. What failed, and how long it took, is not covered.

    Noise comes from the operating system's entropy. A `seed` makes it known: whoever has the seed can subtract the
    noise, so that it is for tests and for public rows alone. A mechanism of your own, from `config_dir`, is not
    checked here (`dpbench check` does), and the release says so.

    Raises `UserError` for rows that do not fit the domain, and an unknown mechanism, parameter or relation.

    >>> table = pd.DataFrame({"sex": ["F", "M"] * 500, "hours": [30, 45] * 500})
    >>> domain = {"sex": {"levels": ["F", "M"]}, "hours": {"bounds": [0, 100], "bins": 10, "unit": "hours/week"}}
    >>> made = release(table, domain, mechanism="mst", epsilon=1)
    >>> made
    <Release of marginals, rows, distribution over 2 attributes: epsilon=1, delta=1e-05, add_remove>
    >>> made.rows.columns.to_list(), made.marginals["sex", "hours"].shape, round(made.spent.epsilon, 6)
    (['sex', 'hours'], (2, 10), 1.0)
    """
    with _folder(config_dir) as folder:
        part = private_part(part_of("mechanism", mechanism, folder), relation, epsilon, parameters, folder)
        table = code_frame(df, _domain(domain), outside_domain)
        design = design_of(part, table.domain, {"target": target, "exact": True}) if part.takes("design") else None
        other, inputs = None, tuple[str, ...]()
        if public is not None and not part.takes("public"):
            raise UserError(f"{mechanism} takes no public rows: leave public out")
        if public is not None:
            other = _public(public, table.domain, outside_domain)
            inputs = shared_rows(table, other, counted=False)
        budget = Budget(epsilon, delta, relation)
        return make_release(part, table, budget, np.random.default_rng(seed), design, other, inputs)


def fit(
    source: Release | pd.DataFrame,
    /,
    *,
    model: str,
    target: str,
    domain: Declaration | None = None,
    seed: int | None = None,
    config_dir: str | Path | None = None,
    **parameters: Any,
) -> Fitted:
    """Fit a model of the project to a release, or to the rows of a data frame, whose `domain` must then be given.

    To a release this is post-processing, and costs nothing. Rows are taken as they are: of synthetic ones the fit is as
    private as they are, of real ones it is not private at all. `model`: see `dpbench list models`, which says what each
    reads; `parameters` are its own. `seed`: of models that draw, such as bootstraps; without one they differ each time.

    Raises `UserError` for a model that cannot read what there is, and a target that it cannot predict.

    >>> table = pd.DataFrame({"sex": ["F", "M"] * 500, "hours": [30, 50] * 500})
    >>> domain = {"sex": {"levels": ["F", "M"]}, "hours": {"bounds": [0, 100], "bins": 10}}
    >>> fitted = fit(table, model="linear_rows", target="hours", domain=domain)
    >>> fitted
    <linear_rows of hours on 2 features>
    >>> fitted.coefficients.round(2).to_dict()
    {'sex=M': 0.4, '(intercept)': -0.4}
    >>> fitted.predict(pd.DataFrame({"sex": ["M"]})).round(1).to_list()
    [50.0]
    """
    with _folder(config_dir) as folder:
        part = with_parameters(part_of("model", model, folder), parameters)
        if isinstance(source, pd.DataFrame):
            if domain is None:
                raise UserError("a data frame needs its domain, what it may contain: give domain (see dpbench.release)")
            table = code_frame(source, _domain(domain))
            source = Release(table.domain, Budget(math.inf), Ledger(), (SyntheticRows(table),))
        return fit_release(part, source, {"target": target, "exact": True}, np.random.default_rng(seed), folder)


# --- the quality of synthetic rows ---------------------------------------------------------------------------------


def evaluate(
    real: pd.DataFrame, synthetic: pd.DataFrame, domain: Declaration, target: str | None = None
) -> pd.DataFrame:
    """How good synthetic rows are: a row for each score, with the same score of a bootstrap of the real rows.

    Columns: `group`, `score`, `of` (an attribute, a pair, or "" for the whole table), `value`, `bootstrap` (what as
    many rows drawn from the real ones reach), `best` (NaN where that is the bootstrap's) and `definition`. `domain`: as
    for `release`; `target`: the attribute that models predict, without which there are no scores of analyses.

    Scores read the real rows exactly: no budget protects them.

    Raises `UserError` for rows that do not fit the domain.

    >>> table = pd.DataFrame({"sex": ["F", "M"] * 500, "hours": [30, 45] * 500})
    >>> domain = {"sex": {"levels": ["F", "M"]}, "hours": {"bounds": [0, 100], "bins": 10, "unit": "hours/week"}}
    >>> scores = evaluate(table, table.assign(hours=30), domain)
    >>> scores.query("of == ''").set_index("score").loc[["one_way", "two_way"], "value"].to_dict()
    {'one_way': 0.25, 'two_way': 0.5}
    """
    declared = _domain(domain)
    if target is not None:
        declared.index(target)
    real_rows = code_frame(real, declared, where="real rows")
    synthetic_rows = code_frame(synthetic, declared, where="synthetic rows")
    with _folder(None):
        return quality(real_rows, synthetic_rows, target).frame()


# --- what they share -----------------------------------------------------------------------------------------------


@contextmanager
def _folder(config_dir: str | Path | None) -> Iterator[Path | None]:
    """With `config_dir` as the user's own folder, and no other; then again with what was there before.

    Raises `UserError`, with what to install, where a package of an extra is missing.
    """
    before, folder = own_folder(), None if config_dir is None else config_folder(config_dir)
    use_folder(folder)
    try:
        yield folder
    except ModuleNotFoundError as error:
        if message := missing_extra(error):
            raise UserError(message) from error
        raise
    finally:
        use_folder(before)


def _arguments(settings: Settings, config_dir: Path | None, **options: Any) -> argparse.Namespace:
    """The settings and options as the commands take them."""
    if isinstance(settings, Mapping):
        settings = [f"{name}={hydra_text(value)}" for name, value in settings.items()]
    given = [settings] if isinstance(settings, str) else list(settings)
    for item in given:
        if "=" not in item and item[:1] != "~" and not Path(item).is_dir():
            raise UserError(hint(item, ["run", *given], config_dir))
    return argparse.Namespace(overrides=given, config_dir=config_dir, plan=None, shard=None, alone=False, **options)


def _meant(
    source: str | Path, settings: Settings, config_dir: Path | None
) -> tuple[Paper | None, list[str], Path | None]:
    """The paper that is meant, if it is one, the settings of its experiments or of the run, and their folder."""
    arguments = _arguments(settings, config_dir)
    groups = [group for group in ("paper", "experiment") if source in choices(group, config_dir)]
    if not groups and not Path(source).is_dir():
        known = [name for group in ("paper", "experiment") for name in choices(group, config_dir)]
        raise unknown("folder, paper or experiment", str(source), known)
    arguments.overrides.append(f"{groups[0]}={source}" if groups else str(source))
    recall(arguments)
    papers, line = papers_of(arguments.overrides)
    own: Path | None = arguments.config_dir
    return paper_of(papers[0], own) if papers else None, line, own


def _stored(line: Sequence[str], config_dir: Path | None, other_code: bool) -> Results:
    """What is stored of the experiment of these settings. Raises `UserError` if nothing is."""
    experiment = compose(line, config_dir)
    found = stored_trials(experiment, config_dir, other_code=other_code)
    if not found.trials:
        raise UserError(no_trial(experiment))
    return Results(experiment, found.trials, notes_of(experiment, found))


def _domain(given: Declaration) -> Domain:
    if isinstance(given, Domain):
        return given
    return domain_from_config(given) if isinstance(given, Mapping) else read_domain_file(given)


def _public(df: pd.DataFrame, domain: Domain, outside: str) -> Table:
    """The public rows, which may lack some of the attributes."""
    known = [name for name in domain.names if name in df.columns]
    if not known:
        raise UserError(f"the public rows have none of the attributes {', '.join(domain.names)}")
    return code_frame(df, domain.project(known), outside, "public rows")
