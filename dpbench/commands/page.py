"""`dpbench report`: what is stored of a paper or an experiment, as one HTML file."""

from __future__ import annotations

import argparse
from pathlib import Path

from dpbench.commands.report import notes_of, papers_of, results_of
from dpbench.commands.run_settings import guard, recall
from dpbench.commands.stored_trials import exported_ledgers, ledgers, stored_trials
from dpbench.config import compose, paper_of
from dpbench.errors import UserError
from dpbench.grid.store import Store
from dpbench.report.frames.results import Results
from dpbench.report.page.page import write_experiment_page, write_paper_page


def report(arguments: argparse.Namespace) -> int:
    """Write the page of the paper or the experiment that the settings name."""
    recall(arguments)
    papers, overrides = papers_of(arguments.overrides)
    single = any(item.startswith(("experiment=", "name=")) for item in overrides)
    if len(papers) + single != 1:
        raise UserError(
            "give one of paper=..., experiment=..., name=... and the folder of a paper or a run (see dpbench list)"
        )
    config_dir: Path | None = arguments.config_dir
    experiment = compose(overrides, config_dir)
    guard(grid.dataset for grid in experiment.grids)
    ledger_of = ledgers(Store(experiment.results, experiment.name))
    if papers:
        paper = paper_of(papers[0], config_dir)
        results, _ = results_of(paper, overrides, config_dir, arguments.other_code)
        kept = exported_ledgers((one.experiment for one in results), config_dir, paper.name)
        path = write_paper_page(paper, results, experiment.results / paper.name, ledger_of, kept)
    else:
        found = stored_trials(experiment, config_dir, other_code=arguments.other_code)
        one = Results(experiment, found.trials, notes_of(experiment, found))
        kept = exported_ledgers([experiment], config_dir)
        path = write_experiment_page(one, experiment.results / experiment.name, ledger_of, kept)
    here = Path.cwd()
    shown = path.relative_to(here) if path.is_relative_to(here) else path
    print(f"{shown} ({path.stat().st_size / 1e6:.1f} MB)")
    return 0
