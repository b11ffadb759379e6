"""`dpbench recommend`: what the arena says of methods for a table of one's own."""

from __future__ import annotations

import argparse
import math
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import pandas as pd

from dpbench.commands.recommend_question import (
    NEEDS,
    SOME_TABLE,
    WITHOUT_TARGET,
    Asked,
    Own,
    asked_of,
    files_of,
    rows_of,
    size_of,
    size_text,
)
from dpbench.commands.release import checked
from dpbench.commands.report import notes_of
from dpbench.commands.stored_trials import stored_trials
from dpbench.config import Experiment, choices, compose, hydra_text
from dpbench.config.experiment import single
from dpbench.config.labels import metric_label
from dpbench.config.registry import folder_of, read_yaml
from dpbench.errors import UserError
from dpbench.privacy.budget import RELATIONS
from dpbench.report.footnotes import as_text, listed
from dpbench.report.frames.results import Results, frame_of, merged_notes, several_versions
from dpbench.report.frames.series import Series
from dpbench.report.outcomes import Outcomes, method_cells, shipped
from dpbench.report.recommendation import (
    CLOSE,
    EXISTS,
    NEAREST,
    Evidence,
    Size,
    beyond,
    evidence_of,
    left_out,
    nearest,
    orders,
    pays_from,
    ranked,
    ranking_metric,
    rates,
    ratios_of,
    without_unit,
)
from dpbench.report.text import aligned, number, span

SHOWN = 3  # methods
QUERIES = 3  # attributes of a marginal: all such marginals are the queries of the arena
FAR = 2  # times less data for each coefficient or column than the least of the arena: nothing is known of it
MEAN = "mean_target"  # the mechanism that releases the trivial answer, which is no method to choose
TRIVIAL = {  # by the metric: the trivial answer, and what to do where no method beats it
    "r2": ("the mean of the target", "predict the mean"),
    "auc": ("a constant score", "give all rows the same score"),
    "two_way": ("independent attributes", "release the distribution of each attribute alone"),
}
SECTIONS = {  # of docs/arena.md
    "coefficients": "linear-regression",
    "classifier": "classification",
    "intervals": "intervals",
    "rows": "synthetic-rows",
    "queries": "query-release",
}
OF_QUERIES = ("the best trivial answer", "answer from the distribution of each attribute alone")
WITHIN = f"within {100 * (CLOSE - 1):.0f} % of the least error"


@dataclass(frozen=True)
class Known:
    """What the arenas have: the evidence, the sizes of their tables, the metric, what the error is, the level of
    intervals, and what a size is divided by, "columns" or "coefficients", where amounts of data are compared.
    """

    evidence: Evidence
    sizes: Mapping[str, Size]
    metric: str
    error: str
    level: float | None
    divisor: str

    @cached_property
    def costs(self) -> pd.DataFrame:
        """What the rules of choice would have cost."""
        return left_out(self.evidence.errors, self.sizes)

    @cached_property
    def rule(self) -> str:
        """That of the rules of choice which was right most often."""
        return str(rates(self.costs).index[0])

    def nearest(self, own: Size, epsilon: float) -> pd.DataFrame:
        """The errors at the places nearest to a table of this size."""
        return nearest(self.evidence.errors, self.sizes, own.at(epsilon))

    def ordered(self, own: Size, epsilon: float) -> list[str]:
        """The methods for a table of this size, the best first, by the rule that is right most often."""
        return orders(self.evidence.errors, self.sizes, own, epsilon)[self.rule]

    def gives_mean(self, name: str) -> bool:
        """Whether the method releases the trivial answer itself."""
        return self.evidence.methods[name].mechanism == MEAN

    @property
    def trivial(self) -> str:
        """The trivial answer, "" if there is none."""
        return "" if self.evidence.trivial.isna().all() else TRIVIAL.get(self.metric, OF_QUERIES)[0]

    @property
    def instead(self) -> str:
        """What to do where no method beats the trivial answer."""
        return TRIVIAL.get(self.metric, OF_QUERIES)[1]

    @property
    def won(self) -> str:
        """What a method did where it won (`Evidence.wins`), in words."""
        return f"beat {self.trivial}" if self.trivial else "had intervals that cover in three of four runs"

    @cached_property
    def amounts(self) -> pd.Series[float]:
        """n epsilon / d of each place."""
        places = self.evidence.errors.index
        return pd.Series([self.amount(self.sizes[name], epsilon) for name, epsilon in places], places)

    def amount(self, size: Size, epsilon: float) -> float:
        """n epsilon / d of a table."""
        return size.rows * epsilon / float(getattr(size, self.divisor))

    def paying(self, names: Sequence[str], places: pd.Index, amount: float = math.inf) -> list[str]:
        """Those that won on most of these places, without those that lost on most of all that have too little data, if
        `amount`, n epsilon / d, is as little.
        """
        won = self.evidence.wins.loc[places].sum()
        taken = [name for name in names if 2 * won[name] > len(places)]
        found = {name: pays_from(self.evidence.wins[name], self.amounts) for name in taken}
        return [name for name in taken if not (one := found[name]) or amount >= one.least or one.often_below]


def recommend(arguments: argparse.Namespace) -> int:
    """Print, for each epsilon, the methods to take, what to expect of them, and what is not worth doing; or, where
    nothing is said of a table, which are best over all tables of the arena.

    Results by other versions of the code count, and a line says how many: without them a method whose code was improved
    would be missing.
    """
    sizes = (arguments.rows, arguments.columns, arguments.coefficients)
    if sizes == (None,) * 3 and all(item.startswith("results=") for item in arguments.overrides):
        print(_first_screen(arguments))
        return 0
    asked = asked_of(arguments)
    known, notes = known_of(asked, arguments.config_dir)
    sentences = [f"{asked.own.name or 'A table'}: {size_text(asked.own.size)}"]
    sentences += [asked.own.read] if asked.own.read else []
    arenas = listed([f"{one.name} ({one.title})" for one in asked.arenas])
    sentences += [
        f"Error: {known.error}, in {arenas}",
        *(note.replace(" (--other-code)", ", and count") for note in notes),
    ]
    print(as_text(sentences), _choice(known), sep="\n")
    for epsilon in asked.own.epsilons:
        print("", *_answer(asked, known, epsilon, arguments.config_dir), sep="\n")
    return 0


def _first_screen(arguments: argparse.Namespace) -> str:
    """The best over all tables of the arena, a line for each need, with a number, and how to ask on."""
    needs = list(NEEDS) if arguments.need is None else [arguments.need]
    rows = dict[str, dict[float, str]]()
    for need in needs:
        arenas = [compose([f"experiment={name}", *arguments.overrides], arguments.config_dir) for name in NEEDS[need]]
        known, _ = known_of(Asked(need, arenas, Own("", Size(1, 1, 1), (), ())), arguments.config_dir)
        errors = known.evidence.errors
        at = errors.index.get_level_values("epsilon")
        rows[need] = {epsilon: _best(known, errors[at == epsilon]) for epsilon in at.unique()}
    epsilons = sorted({epsilon for cells in rows.values() for epsilon in cells})
    columns = [[f"ε = {number(epsilon)}", *(rows[need].get(epsilon, "") for need in needs)] for epsilon in epsilons]
    columns.append(["see docs/arena.md", *(f"#{SECTIONS[need]}" for need in needs)])
    about = (
        "The best method over all tables of the arena, and what it keeps of the gain over the trivial answer, such as "
        "the mean, in the median (1: all that there is without privacy; of intervals: how often they cover). None: no "
        "method beats that answer, or has intervals that cover, on most of the tables."
    )
    example = f"dpbench recommend --need {needs[0]} --rows 20000 --columns 8 epsilon=1"
    declared = shlex.join(["dpbench", "recommend", *SOME_TABLE, "--rows", "20000", "epsilon=1"])
    on = f"What is best depends on the table. Ask for its size:\n  {example}\nor with its declaration:\n  {declared}"
    return "\n".join([about, "", aligned([["--need", *needs], *columns]), "", on])


def _best(known: Known, errors: pd.DataFrame) -> str:
    """The method of least errors at these places, and what it keeps; of intervals, their level and how many cover."""
    names = known.paying([name for name in ranked(errors, EXISTS) if not known.gives_mean(name)], errors.index)
    if not names:
        return "none"
    if known.level is None:
        return f"{names[0]} {known.evidence.expected.loc[errors.index, names[0]].median():.2f}"
    cells = known.evidence.cells.reset_index("series").loc[errors.index]
    coverage, without = cells.loc[cells["series"] == names[0], "coverage"].median(), _without(known, cells, names[0])
    return f"{names[0]} {coverage:.2f} of {number(known.level)}{f', {without}' if without else ''}"


def outcomes_of(arena: Experiment, config_dir: Path | None) -> Outcomes:
    """How the methods of an arena did by its trials, or by what ships of them."""
    paper = folder_of(choices("experiment", config_dir)[arena.name]).rstrip("/")
    return shipped(arena, paper) or outcomes_of_trials(arena, config_dir)


def outcomes_of_trials(arena: Experiment, config_dir: Path | None) -> Outcomes:
    """How the methods of an arena did by the trials that are stored or exported."""
    stored = stored_trials(arena, config_dir, other_code=True)
    results = Results(arena, stored.trials, notes_of(arena, stored))
    frame, metric = frame_of([results], {}), ranking_metric(arena.report)
    cells = method_cells(frame, (metric, without_unit(metric, set(frame["metric"])), "coverage"))
    return Outcomes(arena.name, cells, [*results.notes, *several_versions([results], arena.report["labels"], {})])


def known_of(asked: Asked, config_dir: Path | None) -> tuple[Known, list[str]]:
    """What the arenas have of other tables, and notes on it."""
    found = [outcomes_of(one, config_dir) for one in asked.arenas]
    cells, arena = pd.concat([one.cells for one in found], ignore_index=True), asked.arenas[0]
    private = cells["epsilon"] < math.inf
    grids = [grid for one in asked.arenas for grid in one.grids]
    same = {one.dataset.name for one in grids if files_of(one.dataset) & asked.own.files} | {asked.own.name}
    cells = cells[~cells["dataset"].isin(same)]
    if not private[cells.index].any():
        raise UserError(
            f"{arena.results} holds no trials of {arena.name} on other tables; dpbench run experiment={arena.name} "
            "makes them"
        )
    metric = without_unit(ranking_metric(arena.report), set(cells["metric"]))
    levels = [part.parameters["level"] for part in arena.models if "level" in part.parameters]
    level = max(levels, default=None) if "coverage" in set(cells["metric"]) else None
    sizes = {one.dataset.name: size_of(one, rows_of(one.dataset), one.sample.train_rows) for one in grids}
    if asked.need in WITHOUT_TARGET:
        sizes = {name: replace(size, coefficients=None) for name, size in sizes.items()}
    higher = (cells.loc[cells["metric"] == metric, "direction"] == "higher").any()
    evidence = evidence_of(cells, metric, arena.report["labels"], level)
    divisor = "columns" if asked.need in WITHOUT_TARGET else "coefficients"
    notes = merged_notes({one.arena: one.notes if len(one.cells) else None for one in found})
    label = metric_label(metric)
    return Known(evidence, sizes, metric, f"1 - {label}" if higher else label, level, divisor), notes


# --- the answer ------------------------------------------------------------------------------------------------------


def _choice(known: Known) -> str:
    """How methods are chosen, and how often each rule was right."""
    right, best = rates(known.costs), ranked(known.evidence.errors)[:1]
    rules = {
        "near": f"the best on the {NEAREST} nearest places",
        "budget": "the best over all tables at the nearest ε",
        "overall": f"the best over all{''.join(f' ({name})' for name in best)}",
    }
    others = ", ".join(f"{words} in {right[rule]}" for rule, words in rules.items() if rule != known.rule)
    cases, none = known.costs.notna().all(axis=1).sum(), known.costs.isna().all(axis=1).sum()
    without = f" In {none} other cases no method that covers on the other tables had such intervals." if none else ""
    like = listed(["n ε", "columns", *(["coefficients"] if known.divisor == "coefficients" else [])])
    return (
        f"The choice: {rules[known.rule]}. With each table left out in turn it was {WITHIN} in {right[known.rule]} of "
        f"{cases} cases, {others}.{without} A place is a table of the arena at an ε; near are those of about the same "
        f"{like}."
    )


def _answer(asked: Asked, known: Known, epsilon: float, config_dir: Path | None) -> Iterator[str]:
    """What to take under a budget, how to run it, what to expect of it, and what is not worth doing."""
    evidence, own = known.evidence, asked.own.size
    near = known.nearest(own, epsilon)
    cells = evidence.cells.reset_index("series").loc[near.index]
    lines, refused = dict[str, str](), dict[str, list[str]]()
    for name in known.ordered(own, epsilon):
        if len(lines) < SHOWN and not known.gives_mean(name):
            try:
                lines[name] = _command(asked, evidence.methods[name], epsilon, config_dir)
            except UserError as error:
                refused.setdefault(str(error), []).append(name)
    amount, least = known.amount(own, epsilon), known.amounts.min()
    far = FAR * amount < least
    taken = [] if far else known.paying([*lines], near.index, amount)
    less = f"n ε / {known.divisor} is {amount:.2g} here, and {least:.2g} or more there"
    unknown = f"No table of the arena has so little data ({less})" if far else ""
    yield f"ε = {number(epsilon)}, δ = {asked.own.delta}. {_verdict(known, near, [*lines], taken, unknown)}"
    yield from _amount(known, own, epsilon, taken or [*lines] or ranked(evidence.errors), lost=not taken)
    if not taken and known.trivial:
        yield from _mean_with_noise(asked, known, epsilon, config_dir)
    places = listed([f"{dataset} at {number(budget)}" for dataset, budget in near.index])
    yield f"The {len(near)} nearest places: {places}."
    if outside := beyond(evidence.errors, known.sizes, own, epsilon):
        yield f"Extrapolated: {'; '.join(outside)}."
    if taken:
        yield aligned(_expected(known, cells, near.index, taken))
    for place, name in enumerate(taken, 1):
        yield f"{place}. {lines[name]}"
        if without := _without(known, cells, name):
            yield f"   Near by it gave {without}, and ε is spent all the same."
    yield from (f"Not on this table: {'; '.join(names)}: {reason}" for reason, names in refused.items())
    if taken and (lost := [name for name in lines if name not in taken]):
        named = "; ".join(f"{name} on {evidence.wins.loc[near.index, name].sum():.0f}" for name in lost)
        few = f"as they {known.won} on too few of these {len(near)} places, or lose with so little data elsewhere"
        yield f"Left out, {few}: {named}."
    yield from _not_worth(known, cells, near)


def _mean_with_noise(asked: Asked, known: Known, epsilon: float, config_dir: Path | None) -> Iterator[str]:
    """The command that releases the trivial answer, where it needs rows, or why none does on this table."""
    for name, one in known.evidence.methods.items():
        if known.gives_mean(name):
            try:
                yield f"To {known.instead} privately: {_command(asked, one, epsilon, config_dir)}"
            except UserError as error:
                yield f"Not on this table: {name}: {error}"


def _verdict(known: Known, near: pd.DataFrame, best: Sequence[str], taken: Sequence[str], unknown: str) -> str:
    """Which of the best methods to take first, and how sure that is; or that none is worth it, and what it kept.

    `unknown`: that nothing is known of so little data, "" if something is.
    """
    if taken:
        used = near.loc[:, (near != math.inf).all()]  # as in the rates: what covers here and there is no yardstick
        close = (ratios_of(used)[taken[0]] <= CLOSE).sum()
        return f"Take {taken[0]}: it was {WITHIN} on {close} of the {len(near)} nearest places."
    instead = f"{known.instead}, or collect more rows" if known.trivial else "collect more rows"
    lost = f"None of the methods with the least errors {known.won} on most of the {len(near)} nearest places"
    verdict = f"{unknown or lost}: {instead}."
    if not best or not known.trivial:
        return verdict
    kept = (f"{name} {_range(known.evidence.expected.loc[near.index, name])}" for name in best)
    return f"{verdict}\nWhat came nearest, with the {_gain(known)}, median (range): {'; '.join(kept)}."


def _gain(known: Known) -> str:
    return f"gain kept (1: as without privacy, 0: {known.trivial})"


def _amount(known: Known, own: Size, epsilon: float, names: Sequence[str], *, lost: bool) -> Iterator[str]:
    """From how many rows on the first of these methods of which the arena can say it beats the trivial answer.

    Nothing where the arena does not say what is missing: all `lost` near by with as many rows, or it has no place with
    as few.
    """
    of_each = ((name, pays_from(known.evidence.wins[name], known.amounts)) for name in names)
    name, found = next(((name, found) for name, found in of_each if found is not None), ("", None))
    if found is None:
        return
    rows, one = found.least * own.rows / known.amount(own, epsilon), known.divisor.removesuffix("s")
    if rows < 1 or (lost and rows <= own.rows) or (not lost and rows > own.rows and not found.below):
        return
    head = "Enough rows" if rows <= own.rows else "Collect more rows" if lost else "Perhaps too few rows"
    less = f"with less on {found.won_below} of {found.below}" if found.below else "and no place has less"
    fewer = "" if found.below else ", or fewer"
    d = f"{getattr(own, known.divisor)} {known.divisor}"
    yield (
        f"{head}: {name} pays from about {float(f'{rows:.2g}'):,.0f} rows on{fewer}, at this ε and {d}. With as much "
        f"n ε for each {one} ({float(f'{found.least:.2g}'):g}) or more it {known.won} on {found.won} of {found.places} "
        f"places of the arena, {less}."
    )


def _expected(known: Known, cells: pd.DataFrame, near: pd.Index, names: Sequence[str]) -> Iterator[Sequence[str]]:
    """The columns of a table of what some methods did on the nearest places: medians, and ranges in brackets."""
    share = _gain(known) if known.trivial else f"{known.error} / non-private"
    of_method = [cells[cells["series"] == name] for name in names]
    yield ["median (range)", *names]
    yield [share, *(_range(known.evidence.expected.loc[near, name]) for name in names)]
    if known.level is not None:
        yield [f"coverage of {number(known.level)}", *(_range(rows["coverage"]) for rows in of_method)]
    yield ["seconds", *(f"{rows['seconds'].median():.2g}" for rows in of_method)]
    yield ["MB of the worker", *(f"{rows['mb'].median():.0f}" for rows in of_method)]


def _range(values: pd.Series[float]) -> str:
    """The median, and the least and the largest."""
    found = values.dropna()
    return f"{found.median():.2g} ({span(found, 2)})"


def _without(known: Known, cells: pd.DataFrame, name: str) -> str:
    """In how many runs a method had no value, "" if in none."""
    rows = cells[cells["series"] == name]
    value, without = "value" if known.level is None else "interval", rows["without"].sum()
    return f"no {value} in {without} of {rows['runs'].sum()} runs" if without else ""


def _not_worth(known: Known, cells: pd.DataFrame, near: pd.DataFrame) -> Iterator[str]:
    """What is not worth doing, by the nearest places."""
    low = cells[cells["below"]].groupby("series")["coverage"].min()
    if len(low):
        named = "; ".join(f"{name} {coverage:.2f}" for name, coverage in low.items())
        yield f"Not to be used, for undercoverage on at least one of these places (minimum shown): {named}."
    if mostly := [str(name) for name in near if name not in low and near[name].notna().mean() <= 0.5]:
        named = "; ".join(f"{name} ({_without(known, cells, name) or 'not run'})" for name in mostly)
        yield f"Left out, as they were not run or have no value on most of these places: {named}."


# --- the commands ----------------------------------------------------------------------------------------------------


def _command(asked: Asked, method: Series, epsilon: float, config_dir: Path | None) -> str:
    """The line that releases what the method makes of the table, with the settings that the arena's file gives it; or
    where an arena is named, a run of it. Raises `UserError` if it would be refused.
    """
    arena = next(
        one
        for one in asked.arenas
        if method.mechanism in {part.name for part in one.mechanisms}
        and method.model in {part.name for part in one.models}
    )
    part = next(one for one in arena.mechanisms if one.name == method.mechanism)
    own, folder = asked.own, [] if config_dir is None else ["--config-dir", str(config_dir)]
    table = list(own.settings)
    if not own.name:  # a table of the arena stands for one of which the size alone is known
        table = [f"dataset={arena.grids[0].dataset.name}", *(item for item in table if item.startswith("delta="))]
    if not asked.need:
        parts = [f"mechanism=[{method.mechanism}]", f"model=[{method.model}]", f"epsilon={number(epsilon)}"]
        compose([f"experiment={arena.name}", *table, *parts], config_dir)
        return shlex.join(["dpbench", "run", f"experiment={arena.name}", *own.settings, *parts, *folder])
    relation = own.relation or arena.relation
    if relation not in part.relations:
        raise UserError(f"private under {' and '.join(part.relations)} alone, and not under relation={relation}")
    parts = [f"mechanism={method.mechanism}"]
    if asked.need != "rows":
        parts.append(f"model={method.model}")
    parts += _set_by(arena, method, config_dir)
    if asked.need == "queries" and part.parameters.get("workload", QUERIES) != QUERIES:
        parts.append(f"mechanism.{part.name}.workload={QUERIES}")
    parts.append(f"epsilon={number(epsilon)}")
    if not own.relation and relation != RELATIONS[0]:
        parts.append(f"relation={relation}")
    if any(part.takes("expected_rows") for part in (*arena.mechanisms, *arena.models) if part.name in method.identity):
        parts.append(f"sample.train_rows={float(f'{own.size.rows:.2g}'):.0f}")  # declared, so not their exact number
    checked(single([*table, *parts], config_dir), config_dir)
    return shlex.join(["dpbench", "release", *own.settings, *parts, *folder, "--out", "FOLDER"])


def _set_by(arena: Experiment, method: Series, config_dir: Path | None) -> Iterator[str]:
    """What the file of the arena sets for the mechanism and the model, but for what it takes from elsewhere."""
    given = read_yaml(choices("experiment", config_dir)[arena.name])
    for group, name in (("mechanism", method.mechanism), ("model", method.model)):
        own = read_yaml(choices(group, config_dir)[name])
        for key, value in given.get(group, {}).get(name, {}).items():
            if not key.startswith("_") and "${" not in str(value):
                sign = "" if key in own else "++"  # a file may leave a parameter at its default
                yield f"{sign}{group}.{name}.{key}={hydra_text(value)}"
