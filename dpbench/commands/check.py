"""`dpbench check`: tests a plug-in of any kind against its contract (`dpbench.contracts`), on tiny data.

A check is a pair: what is checked, and what is wrong with it.
"""

from __future__ import annotations

import argparse
import io
import json
import math
import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dpbench.audit.neighbours import random_table
from dpbench.config import Part, choices, composed
from dpbench.config.parts import parts_of
from dpbench.config.reports import kinds
from dpbench.data.dataset import Dataset
from dpbench.data.domain import Floats
from dpbench.data.encode import Design
from dpbench.data.table import Split, Table
from dpbench.errors import ContractError, NoEstimateError, UserError, bounded, check_known, text_of
from dpbench.grid import mechanism_check
from dpbench.grid.mechanism_check import UNSEEN, Check, wrong_with
from dpbench.grid.tiny_tables import ROWS, SEED, bytes_of, design_of, made, small, tiny_settings, tiny_table
from dpbench.metrics.evaluation import Evaluation, Reference, check_score
from dpbench.models.fit import Fit, check_fit
from dpbench.privacy.budget import Budget
from dpbench.releases import KINDS, Release

MAKERS: dict[str, tuple[str, ...]] = {  # for each kind of release a shipped mechanism that makes it, and its settings
    "statistics": ("ssp_intervals",),
    "marginals": ("mst", "mechanism.mst.workload=4"),
    "rows": ("mst",),
    "coefficients": ("dpsgd", "mechanism.dpsgd.batch_size=null"),
    "bins": ("binagg",),
    "distribution": ("mst",),
}
LABELS = {"exact/linear_statistics": "public", "ssp/linear_statistics": "SSP"}
EXAMPLES = {"metric": "mse", "method": "SSP", "less": "SSP", "values": [ROWS, ROWS]}
EXAMPLES |= dict.fromkeys(("x", "panel", "setting"), "release.split.train_rows")
BY_TYPE: dict[str, object] = {"str": "text", "float": 1.0, "int": 1, "bool": True, "list": [], "dict": {}}


@dataclass(frozen=True)
class Source:
    """Where a plug-in comes from: its group, further settings of the line, and the user's own folder.

    `table`: the settings of the line's data set, if it names a single one.
    """

    group: str
    settings: Sequence[str]
    config_dir: Path | None
    table: Sequence[str] = ()

    def dataset(self) -> Dataset:
        """The data set of the line."""
        return Dataset.of(composed(self.table, self.config_dir)["dataset"])

    def part(self, group: str, name: str, *settings: str) -> Part:
        """A part of the registry, composed for tiny data; the settings of the line are for the plug-in alone."""
        given = self.settings if group == self.group else settings
        (part,) = parts_of(
            group, composed([f"{group}=[{name}]", *tiny_settings(), *given], self.config_dir), self.config_dir
        )
        return part


# --- mechanisms ----------------------------------------------------------------------------------------------------


def check_mechanism(name: str, source: Source) -> Iterator[Check]:
    """Its declaration, what `grid.mechanism_check` asks of it, and a release of made-up rows with the declaration of
    the line's data set, whose own rows are not read.
    """
    part = source.part("mechanism", name)
    yield "its config and its signature", []
    yield "its config says what it offers", [] if part.offers else [f"_offers_ is missing: one of {', '.join(KINDS)}"]
    given = tuple(item.partition("=")[0] for item in source.settings)
    yield from mechanism_check.check_mechanism(part, given)
    if source.table:
        yield from _with_declaration(small(part, given), source.dataset())


def _with_declaration(part: Part, dataset: Dataset) -> Iterator[Check]:
    """A release of made-up rows under each relation."""
    if part.takes("design") and dataset.target is None:
        raise UserError(f"{part.name} needs a target: name one of {dataset.name}'s attributes, dataset.target=...")
    rows = random_table(dataset.domain, ROWS, SEED)
    design = Design(dataset.domain, target=dataset.target) if dataset.target else None
    for relation in part.relations:
        where = f"made-up rows with the declaration of {dataset.name}, {relation}"
        try:
            made(part, rows, budget=Budget(1.0, 1e-5, relation), design=design)
        except NoEstimateError as error:
            yield f"it says where there is no estimate ({where}: {error})", []
        else:
            yield f"a release ({where})", []


# --- models and metrics --------------------------------------------------------------------------------------------


def check_model(name: str, source: Source) -> Iterator[Check]:
    """On a release of each kind that it needs it gives a fit, the same each time, that predicts."""
    part = source.part("model", name)
    yield "its config and its signature", []
    table = tiny_table(labels=part.labels)
    design = design_of(table)
    for kind in part.needs or KINDS:
        release = made(source.part("mechanism", *MAKERS[kind]), table, budget=Budget(10.0, 1e-5))
        before = bytes_of(release)
        try:
            fit, again = (_fit(part, release, design) for _ in range(2))
        except NoEstimateError as error:
            yield f"it says where there is no estimate ({kind}: {error})", []
            continue
        yield f"a fit of {kind}", wrong_with(check_fit, fit, len(design.columns))
        yield from _predictions(fit, again, design.encode(table)[0], kind)
        yield f"the fit can be handed to the metrics' process ({kind})", wrong_with(_pickled, fit)
        yield f"it leaves the release as it was ({kind})", [] if bytes_of(release) == before else ["it wrote into it"]


def _predictions(fit: Fit, again: Fit, X: Floats, kind: str) -> Iterator[Check]:
    """Two fits with the same generator predict the same, unless they say that they predict nothing."""
    try:
        one, two = fit.predict(X), again.predict(X)
    except NoEstimateError as error:
        yield f"it says that it predicts nothing ({kind}: {error})", []
        return
    shape = np.shape(one)
    yield f"it predicts one number per row ({kind})", [] if shape == (ROWS,) else [f"its shape is {shape}"]
    same = one.tobytes() == two.tobytes()
    yield f"the same generator gives the same fit ({kind})", [] if same else ["it gives another one"]


def _fit(part: Part, release: Release, design: Design) -> Fit:
    rng = {"rng": np.random.default_rng(SEED)} if part.takes("rng") else {}
    fit: Fit = part.function(release, design=design, **rng, **part.parameters)
    return fit


def _pickled(fit: Fit) -> None:
    try:
        pickle.dumps(fit)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise ContractError(f"{error}: a predictor must be a function or an instance of a class of a module") from error


def check_metric(name: str, source: Source) -> Iterator[Check]:
    """It scores a fit of a tiny table, under its own name, and the same each time."""
    part = source.part("metric", name)
    yield "its config and its signature", []
    evaluation = _evaluation(source, labels=part.labels)
    score, again = (part.function(evaluation, **part.parameters) for _ in range(2))
    yield "a score of its name", wrong_with(check_score, score, name)
    yield "the same fit has the same score", [] if repr(score) == repr(again) else [f"it has {score} and {again}"]


def _evaluation(source: Source, *, labels: bool) -> Evaluation:
    """A fit with intervals of a release with rows and marginals, and rows that were drawn with known coefficients."""
    table = tiny_table(labels=labels)
    design = design_of(table, plain=not labels)
    split = Split(table, tiny_table(labels=labels, seed=SEED + 1), dict.fromkeys(design.columns, 1.0))
    release = made(source.part("mechanism", *MAKERS["rows"]), table, budget=Budget(10.0, 1e-5))
    reference = Reference(split, design)
    theta, half = reference.coefficients + 0.01, np.full(len(design.columns), 0.1)
    fit = Fit(theta, reference.train_moments, intervals=np.stack([theta - half, theta + half], axis=1))
    return Evaluation(fit, release, reference)


# --- data sets ------------------------------------------------------------------------------------------------------


def check_dataset(name: str, source: Source) -> Iterator[Check]:
    """Its declaration holds, its rows fit it, and they are the same each time."""
    from dpbench.contracts import check_signature
    from dpbench.data.load import fingerprint, load_dataset

    dataset = source.dataset()
    check_signature("dataset", dataset.load, f"dataset={name}")
    yield "its loader and its signature", []
    dataset.domain  # noqa: B018
    public = [] if "public" in dataset.config else ["public must be true or false: are its rows public?"]
    yield "its declaration", public
    json.dumps(fingerprint(dataset), allow_nan=False)
    yield "its checksums", []
    first, again = load_dataset(dataset), load_dataset(dataset)
    yield "its rows fit the declaration", []
    if isinstance(first, Table) and isinstance(again, Table):
        yield (
            "the same rows each time",
            [] if bytes_of(first) == bytes_of(again) else ["they differ, or their order does"],
        )


def check_kind(name: str, source: Source) -> Iterator[Check]:
    """A kind of figure or table draws made-up trials, the same each time, and leaves the frame as it was."""
    from dpbench.report.kinds import draw_figure, make_table
    from dpbench.report.picture.render_matplotlib import rendered

    kind = next(kind for kind in kinds().values() if (kind.group, kind.name) == (source.group, name))
    assert kind.function is not None
    yield "its config and its signature", []
    spec: Any = {"name": "checked", "kind": name, "title": "Checked"}
    spec |= {key: EXAMPLES.get(key, BY_TYPE[type_.split("|")[0].strip()]) for key, type_ in kind.required.items()}
    frame = _frame([str(spec[key]) for key in ("x", "panel", "setting") if key in spec], kind.reads)
    before = frame.copy(deep=True)
    made = [
        make_table(frame, LABELS, spec, {}).tidy
        if kind.group == "table"
        else draw_figure(frame, LABELS, spec, "").drawn
        for _ in range(2)
    ]
    yield f"it draws {spec}", []
    yield "the same trials give the same", [] if made[0].equals(made[1]) else ["they give another one"]
    yield "it leaves the frame as it was", [] if frame.equals(before) else ["it wrote into it"]
    if kind.group == "figure":
        rendered(draw_figure(frame, LABELS, spec, "")).savefig(io.BytesIO(), format="png")
        yield "the figure can be saved", []


def _frame(settings: Sequence[str], reads: Sequence[str]) -> Any:
    """A made-up frame of trials: two mechanisms, two epsilons and three repetitions."""
    import pandas as pd

    from dpbench.report.frames.frame import COLUMNS

    rows = []
    for mechanism, epsilon in (("exact", math.inf), ("ssp", 0.5), ("ssp", 1.0)):
        for repetition in range(3):
            row: dict[str, object] = {column: "" if kind == "str" else 0.0 for column, kind in COLUMNS.items()}
            row |= {"trial": f"{mechanism}{epsilon}{repetition}", "dataset": "adult", "mechanism": mechanism}
            row |= {"model": "linear_statistics", "epsilon": epsilon, "delta": 1e-5, "repetition": repetition}
            row |= {"status": "done", "metric": "mse", "value": 0.1 + 0.01 * repetition, "direction": "lower"}
            row |= {"train_rows": ROWS, "test_rows": "100", "relation": "add_remove", "spent_epsilon": epsilon}
            row |= {"x": epsilon, "panel": "adult", "nonprivate_inputs": (), "detail": None}
            row |= dict.fromkeys([*settings, *reads], float(ROWS))
            rows.append(row)
    return pd.DataFrame(rows).astype(COLUMNS)


GROUPS: dict[str, Callable[[str, Source], Iterator[Check]]] = {
    "mechanism": check_mechanism,
    "model": check_model,
    "metric": check_metric,
    "dataset": check_dataset,
    "figure": check_kind,
    "table": check_kind,
}


def check(arguments: argparse.Namespace) -> int:
    """Check each plug-in that the settings name, one line per check; 1 if something is wrong with any."""
    pairs = [item.partition("=")[::2] for item in arguments.overrides]
    named = [(group, name) for group, listed in pairs if group in GROUPS for name in listed.strip("[]").split(",")]
    if not named:
        raise UserError(f"say what to check, such as dpbench check mechanism=mine (or {', '.join(list(GROUPS)[1:])})")
    others = [item for item in arguments.overrides if item.partition("=")[0] not in GROUPS]
    of_table = [item for item in others if item.lstrip("+~").startswith("dataset.")]
    settings = tuple(item for item in others if item not in of_table)
    tables = [name for group, name in named if group == "dataset"]
    if of_table and not tables:
        raise UserError(f"{of_table[0]} is of a data set: name it, too, such as dataset=csv")
    good = True
    for group, name in named:
        check_known(group, name, choices(group, arguments.config_dir))
        table = name if group == "dataset" else tables[0] if len(tables) == 1 else None
        source = Source(group, settings, arguments.config_dir, [f"dataset={table}", *of_table] if table else ())
        good &= _report(f"{group} {name}", GROUPS[group](name, source))
        if group == "mechanism":
            print(f"  {UNSEEN}")
    return 0 if good else 1


def _report(title: str, checks: Iterable[Check]) -> bool:
    """Print a line for each check; whether all are well. The first that cannot go on is the last."""
    good = True
    print(title)
    what = "its name"
    try:
        for what, problems in checks:
            good &= not problems
            for problem in problems or [""]:
                print(f"  {'wrong' if problem else 'ok':<6} {what}{': ' if problem else ''}{bounded(problem)}")
    except (Exception, SystemExit) as error:  # whatever a plug-in raises is a finding
        text = str(error) if isinstance(error, UserError) else text_of(error)
        print(f"  wrong  stopped after {what!r}: {bounded(text)}")
        return False
    return good
