"""`dpbench submit`: checks a run of somebody's own method on the arena, and writes one file for the leaderboard.

A method that ran elsewhere comes in as a table of scores. Nothing that lies in the folder is executed; own code is that
of --config-dir.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from dpbench import __version__
from dpbench.commands.stored_trials import ledgers
from dpbench.commands.verify import recompute, verify
from dpbench.config import Experiment, choices, compose
from dpbench.config.parts import declared_parts
from dpbench.config.protocol import differing
from dpbench.config.registry import read_yaml
from dpbench.errors import UserError, shown, unknown
from dpbench.grid.code import code_of
from dpbench.grid.own_checks import STOPPED, check_own
from dpbench.grid.plan import Plan, one_repetition, read_plan
from dpbench.grid.provenance import provenance
from dpbench.grid.records import Trial, TrialKey
from dpbench.grid.seeds import canonical
from dpbench.grid.store import Store
from dpbench.grid.versions import versions_of
from dpbench.report.frames.ledgers import LedgerOf, no_ledgers
from dpbench.report.recommendation import ranking_metric
from dpbench.report.score_file import read_scores, trials_of
from dpbench.report.submissions import About, metrics_of, place_of, write_submission
from dpbench.targets import is_shipped

Places = Mapping[str, Mapping[str, TrialKey]]  # by data set and `place_of` as text, a trial of the protocol there


def submit(arguments: argparse.Namespace) -> int:
    """Write the file of a method, and say what to do with it."""
    source: Path = arguments.source
    if source.is_dir():
        if arguments.experiment:
            raise UserError("--experiment is for a file of scores: a folder says itself what was run")
        about, trials, ledger_of = _of_folder(arguments)
    elif source.suffix in (".parquet", ".csv"):
        if not arguments.experiment or arguments.recompute:
            raise UserError(f"{source} holds scores: give the --experiment that they answer, and no --recompute")
        about, trials, ledger_of = *_of_scores(arguments), no_ledgers
    else:
        raise UserError(f"{source} is neither the folder of a run nor a .parquet or .csv file of scores")
    path = write_submission(about, trials, arguments.out, ledger_of)
    print(f"{about.method}: {len(trials)} trials, {about.follows} ({about.mark})")
    print(f"Add {path} to results/submissions of the repository; `make site` then shows it")
    return 0


def _about(arguments: argparse.Namespace, experiment: Experiment, departs: Iterable[str]) -> About:
    """The header of a run of dpbench, of which no trial was run again yet."""
    return About(
        method=arguments.method.strip(),
        who=arguments.who.strip(),
        link=arguments.link.strip(),
        experiment=experiment.name,
        protocol=str(experiment.protocol),
        departs=tuple(departs),
        dpbench=__version__,
        commit=provenance()["commit"] or "",
    )


def _with_protocol(name: str) -> Experiment:
    """The experiment of the project with this name, as its file declares it. Raises `UserError` if it has no protocol.

    Its repetitions, tables and budgets are those that a submission is compared with.
    """
    known = [one for one, path in choices("experiment").items() if read_yaml(path).get("protocol")]
    if name not in known:
        raise unknown("experiment with a protocol", name, known)
    return compose([f"experiment={name}"])


def _places(experiment: Experiment) -> Places:
    found: dict[str, dict[str, TrialKey]] = {}
    for key in one_repetition(experiment).trials:
        if math.isfinite(key.release.budget.epsilon):
            found.setdefault(str(key.release.dataset["name"]), {}).setdefault(canonical(place_of(key)), key)
    return found


def _departures(keys: Sequence[TrialKey], experiment: Experiment) -> Iterator[str]:
    """In what trials depart from a protocol: settings first, then what of it is not there."""
    places, methods = _places(experiment), dict[tuple[str, ...], dict[str, set[int]]]()
    departs = dict[str, None]()
    for key in keys:
        known, text = places.get(str(key.release.dataset["name"]), {}), canonical(place_of(key))
        if text in known:
            own, asked = metrics_of(key), metrics_of(known[text])
            departs |= dict.fromkeys(f"metric.{name}" for name in own.keys() & asked.keys() if own[name] != asked[name])
            method = methods.setdefault((key.release.mechanism.name, key.fit.model.name), {})
            method.setdefault(text, set()).add(key.release.repetition)
        else:
            departs |= dict.fromkeys(_nearest(key, known))
    yield from sorted(departs)
    every = {text: key for known in places.values() for text, key in known.items()}
    covered = [every[text] for own in methods.values() for text in own]
    counts = {
        "tables": (len({str(key.release.dataset["name"]) for key in covered}), len(places)),
        "pairs of a table and an epsilon": (min(map(len, methods.values()), default=0), len(every)),
        "repetitions": (
            min((len(found) for own in methods.values() for found in own.values()), default=0),
            experiment.grids[0].repetitions,
        ),
    }
    yield from (f"{count} of {planned} {what}" for what, (count, planned) in counts.items() if count != planned)


def _nearest(key: TrialKey, known: Mapping[str, TrialKey]) -> list[str]:
    """The settings in which a trial departs from the place of the protocol that it is nearest to."""
    if not known:
        return [f"dataset {key.release.dataset['name']}"]
    own = place_of(key)
    found = ([path[1:] for path in differing("", own, place_of(one))] for one in known.values())
    return min(found, key=len)


def _of_scores(arguments: argparse.Namespace) -> tuple[About, list[Trial]]:
    """The scores of a method that ran elsewhere as trials at the places of the protocol."""
    scores, experiment = read_scores(arguments.source), _with_protocol(arguments.experiment)
    about = replace(_about(arguments, experiment, ()), ran_here=False)
    if (ranking := ranking_metric(experiment.report)) not in set(scores["metric"]):
        raise UserError(f"{arguments.source} has no value of {ranking}, by which {experiment.name} ranks")
    keys = [key for known in _places(experiment).values() for key in known.values()]
    trials = trials_of(scores, keys, about)
    return replace(about, departs=tuple(_departures([trial.key for trial in trials], experiment))), trials


def _of_folder(arguments: argparse.Namespace) -> tuple[About, list[Trial], LedgerOf]:
    """The trials of own methods in the folder of a run, checked."""
    folder: Path = arguments.source.resolve()
    store = Store(folder.parent, folder.name)
    if not (folder / "trials").is_dir():
        raise UserError(f"{folder} holds no run: give the folder of one, such as results/arena_lite_regression")
    checked = {"recompute": 0, "set_aside": False, "config_dir": arguments.config_dir}
    if verify(argparse.Namespace(overrides=[str(folder)], **checked)):
        raise UserError("dpbench verify finds what is wrong with the folder, as above: nothing is written")
    plan = read_plan(store.plan_file)
    planned = set(plan.trial_ids)
    trials = [one for one in store.all_trials() if one.id in planned and _is_own(one.key)]
    if not trials:
        raise UserError(
            f"{folder} has no trial of its plan by a method of your own: those of the project are on the leaderboard"
        )
    names = sorted({trial.experiment for trial in trials})
    if len(names) > 1:
        raise UserError(f"{folder} has trials of several experiments: {', '.join(names)}")
    experiment = _with_protocol(names[0])
    _check_code([trial.key for trial in trials], plan, store, arguments.config_dir)
    about = _about(arguments, experiment, _departures([trial.key for trial in trials], experiment))
    if arguments.recompute:
        about = replace(about, recomputed=_recomputed(store, trials, arguments.recompute))
    return about, trials, ledgers(store)


def _is_own(key: TrialKey) -> bool:
    private = math.isfinite(key.release.budget.epsilon)
    return private and not (is_shipped(key.release.mechanism.target) and is_shipped(key.fit.model.target))


def _check_code(keys: Sequence[TrialKey], plan: Plan, store: Store, config_dir: Path | None) -> None:
    """The own parts are those of --config-dir, and its mechanisms pass `dpbench check`; else `UserError`."""
    named = {("mechanism", key.release.mechanism.name): key.release.mechanism for key in keys}
    named |= {("model", key.fit.model.name): key.fit.model for key in keys}
    declared = {group: declared_parts(group, config_dir) for group in ("mechanism", "model")}
    codes = {}
    for (group, name), part in named.items():
        if is_shipped(part.target):
            continue
        here = declared[group].get(name)
        if here is None or here.target != part.target:
            where = "the folder of your own configs" if config_dir is None else f"another folder than {config_dir}"
            raise UserError(f"the {group} {shown(name)} is not known: give {where} by --config-dir")
        if versions_of([here])[group, name, here.target] != part.version:
            raise UserError(f"the {group} {name} was edited after these trials: run them again")
        codes[part.target] = code_of(part.target)
    own = [group.item for group in plan.groups if group.item.key.mechanism.target in codes]
    today = replace(plan, codes={**plan.codes, **codes})  # a plan may say anything of the code
    checked, refused = check_own([replace(item, nonprivate_inputs=()) for item in own], today, store)
    stopped = [f"{item.key.mechanism.name} is {STOPPED}" for item in checked if STOPPED in item.nonprivate_inputs]
    for problem in (*refused.values(), *stopped):
        raise UserError(problem)


def _recomputed(store: Store, trials: Sequence[Trial], count: int) -> int:
    """How many of the trials were run again, with the same scores; else `UserError`."""
    if count < 0:
        raise UserError(f"--recompute takes how many trials are run again, not {count}")
    drawn, problems = recompute(store, trials, count)
    for problem, names in problems.items():
        raise UserError(f"{len(names)} {problem}: {names[0]}")
    return drawn
