"""What `dpbench check` asks of a plug-in of each kind: pairs of what is checked, and what is wrong with it."""

from __future__ import annotations

import json
import math
import pickle
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dpbench.config import Part, composed
from dpbench.config.parts import parts_of
from dpbench.contracts import check_columns
from dpbench.data.domain import Attribute, Domain, Floats
from dpbench.data.encode import Design
from dpbench.data.table import Split, Table
from dpbench.errors import ContractError, NoEstimateError
from dpbench.mechanisms.one_run import Canaries
from dpbench.metrics.evaluation import Evaluation, Reference, check_score
from dpbench.models.fit import Fit, check_fit
from dpbench.privacy.accounting import spent
from dpbench.privacy.budget import Budget
from dpbench.releases import KINDS, Release, check_release

Check = tuple[str, list[str]]  # what is checked, and what is wrong with it: nothing, if the list is empty

ROWS, SEED = 300, 7
BUDGETS = ((1.0, 1e-5), (0.1, 1e-6))
ROUNDING = 1e-9
MAKERS: dict[str, tuple[str, ...]] = {  # for each kind of release a shipped mechanism that makes it, and its settings
    "statistics": ("ssp_intervals",),
    "marginals": ("mst", "mechanism.mst.workload=4"),
    "rows": ("mst",),
    "coefficients": ("dpsgd", "mechanism.dpsgd.batch_size=null"),
    "bins": ("binagg",),
    "distribution": ("mst",),
}


@dataclass(frozen=True)
class Source:
    """Where a plug-in comes from: its group, further settings of the line, and the user's own folder."""

    group: str
    settings: Sequence[str]
    config_dir: Path | None

    def part(self, group: str, name: str, *settings: str) -> Part:
        """A part of the registry, composed for tiny data; the settings of the line are for the plug-in alone."""
        given = self.settings if group == self.group else settings
        (part,) = parts_of(
            group, composed([f"{group}=[{name}]", *tiny_settings(), *given], self.config_dir), self.config_dir
        )
        return part


# --- mechanisms ----------------------------------------------------------------------------------------------------


def check_mechanism(name: str, source: Source) -> Iterator[Check]:
    """Under each budget and relation it runs, keeps the ledger's promise, and reads the rows through its noise only."""
    part = source.part("mechanism", name)
    yield "its config and its signature", []
    yield "its config says what it offers", [] if part.offers else [f"_offers_ is missing: one of {', '.join(KINDS)}"]
    table = tiny_table(labels=part.labels)
    before = _bytes(table)
    budgets = [(*pair, relation) for relation in part.relations[: None if part.private else 1] for pair in BUDGETS]
    for epsilon, delta, relation in budgets if part.private else [(math.inf, 1e-5, part.relations[0])]:
        budget = Budget(epsilon, delta, relation)
        release = made(part, table, budget=budget)
        where = f"epsilon={epsilon:g}, {relation}"
        wrong = _wrong(check_release, release, part.offers, budget, table.domain)
        wrong = wrong or (_wrong(check_columns, release, _design(table)) if part.takes("design") else [])
        yield f"a release of what it offers ({where})", wrong
        if wrong:
            return
        yield f"a ledger within the budget ({where})", list(_overspent(release, budget, part))
        yield f"the release survives being stored ({where})", list(_not_stored(release))
        again = made(part, table, budget=budget)
        same = _bytes(release) == _bytes(again)
        yield f"the same generator gives the same release ({where})", [] if same else ["it gives another one"]
    yield "it leaves its input as it was", [] if _bytes(table) == before else ["it wrote into the training rows"]
    for relation in part.relations if part.private else ():
        yield f"rows are read through its noise only ({relation})", list(_replayed(part, table, relation))


def made(part: Part, table: Table, seed: int = SEED, *, budget: Budget, canaries: Canaries | None = None) -> Release:
    """What the mechanism makes of a tiny table, or of one with canaries."""
    design = canaries.design if canaries else _design(table)
    supplied: dict[str, Any] = {"design": design} if part.takes("design") else {}
    for other in filter(part.takes, ("public", "test")):
        supplied[other] = canaries.rest if canaries else tiny_table(labels=part.labels, seed=SEED + 1)
    release: Release = part.function(table, budget, np.random.default_rng(seed), **supplied, **part.parameters)
    return release


def _overspent(release: Release, budget: Budget, part: Part) -> Iterator[str]:
    events = release.ledger.events
    if not part.private:
        return
    if not events:
        yield "it is empty, as if nothing had been drawn or read"
        return
    exact = [event.label for event in events if getattr(event, "kind", "") == "exact"]
    if exact:
        yield f"{exact[0]!r} is read without noise; a mechanism that is not private says _private_: false"
        return
    cost = spent(release.ledger, budget.delta).epsilon
    if not cost <= budget.epsilon * (1 + ROUNDING):
        yield f"its noise costs epsilon = {cost:.6g} at delta = {budget.delta:g}, and {budget.epsilon:g} was asked for"


def _not_stored(release: Release) -> Iterator[str]:
    """How the release differs from what is read back of it."""
    data, arrays = release.to_parts()
    back = Release.from_parts(json.loads(json.dumps(data, allow_nan=False)), arrays)
    if _bytes(back) != _bytes(release):
        yield "what is read back is another release"


def _replayed(part: Part, table: Table, relation: str) -> Iterator[str]:
    """What recording its noise and replaying it on other tables finds."""
    from dpbench.mechanisms.replay import check_replay, exemption

    budget = Budget(*BUDGETS[0], relation)
    if exemption(made(part, table, budget=budget)) is None:
        yield from check_replay(lambda rows: made(part, rows, budget=budget), table, relation=relation)


# --- models and metrics --------------------------------------------------------------------------------------------


def check_model(name: str, source: Source) -> Iterator[Check]:
    """On a release of each kind that it needs it gives a fit, the same each time, that predicts."""
    part = source.part("model", name)
    yield "its config and its signature", []
    table = tiny_table(labels=part.labels)
    design = _design(table)
    for kind in part.needs or KINDS:
        release = made(source.part("mechanism", *MAKERS[kind]), table, budget=Budget(10.0, 1e-5))
        before = _bytes(release)
        try:
            fit, again = (_fit(part, release, design) for _ in range(2))
        except NoEstimateError as error:
            yield f"it says where there is no estimate ({kind}: {error})", []
            continue
        yield f"a fit of {kind}", _wrong(check_fit, fit, len(design.columns))
        yield from _predictions(fit, again, design.encode(table)[0], kind)
        yield f"the fit can be handed to the metrics' process ({kind})", _wrong(_pickled, fit)
        yield f"it leaves the release as it was ({kind})", [] if _bytes(release) == before else ["it wrote into it"]


def _predictions(fit: Fit, again: Fit, X: Floats, kind: str) -> Iterator[Check]:
    """Two fits with the same generator predict the same, unless they say that they predict nothing."""
    try:
        one, two = fit.predict(X), again.predict(X)
    except NoEstimateError as error:
        yield f"it says that it predicts nothing ({kind}: {error})", []
        return
    shape = np.shape(one)
    yield f"it predicts a number a row ({kind})", [] if shape == (ROWS,) else [f"its shape is {shape}"]
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
    yield "a score of its name", _wrong(check_score, score, name)
    yield "the same fit has the same score", [] if repr(score) == repr(again) else [f"it has {score} and {again}"]


def _evaluation(source: Source, *, labels: bool) -> Evaluation:
    """A fit with intervals of a release with rows and marginals, and rows that were drawn with known coefficients."""
    table = tiny_table(labels=labels)
    design = _design(table, plain=not labels)
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
    from dpbench.data.load import declared_domain, fingerprint, load_dataset
    from dpbench.targets import resolve

    config = composed([f"dataset={name}", *source.settings], source.config_dir)["dataset"]
    loader = resolve("dataset", config.get("_target_"), f"dataset={name}: _target_")
    check_signature("dataset", loader, f"dataset={name}")
    yield "its loader and its signature", []
    declared_domain(config)
    public = [] if isinstance(config.get("public"), bool) else ["public must be true or false: are its rows public?"]
    yield "its declaration", public
    json.dumps(fingerprint(config), allow_nan=False)
    yield "its checksums", []
    first, again = load_dataset(config), load_dataset(config)
    yield "its rows fit the declaration", []
    if isinstance(first, Table) and isinstance(again, Table):
        yield "the same rows each time", [] if _bytes(first) == _bytes(again) else ["they differ, or their order does"]


# --- tiny data -----------------------------------------------------------------------------------------------------


def tiny_settings() -> list[str]:
    """The settings of a line for tables of this size."""
    return ["sample=smoke", "limits=smoke", f"sample.train_rows={ROWS}", "limits.iterations=50"]


def tiny_table(*, labels: bool = False, seed: int = SEED) -> Table:
    """300 rows of four attributes, whose target "y" depends on the others; of two levels for `labels`."""
    rng = np.random.default_rng(seed)
    target = Attribute.categorical("y", ["no", "yes"]) if labels else Attribute.discrete("y", range(6))
    others = (
        Attribute.binned("age", 10, 90, 8, unit="years"),
        Attribute.categorical("work", ["a", "b", "c"]),
        Attribute.categorical("sex", ["f", "m"]),
    )
    age, work, sex = rng.uniform(10, 90, ROWS), rng.integers(0, 3, ROWS), rng.integers(0, 2, ROWS)
    value = np.clip(np.round(age / 30 + work - 0.5 * sex + rng.normal(0, 0.3, ROWS)), 0, 5)
    y = (value > 2).astype(np.int64) if labels else target.code(value)
    numbers = {"age": age} if labels else {"age": age, "y": value}
    return Table(Domain((*others, target)), np.stack([others[0].code(age), work, sex, y], axis=1), numbers)


def _design(table: Table, *, plain: bool = False) -> Design:
    """The design of a tiny table, in units of its own if `plain`."""
    return Design(table.domain, target="y", scaled=not plain)


def _bytes(value: Table | Release) -> tuple[object, ...]:
    if isinstance(value, Table):
        return value.codes.tobytes(), *(column.tobytes() for column in value.numbers.values())
    data, arrays = value.to_parts()
    return json.dumps(data, sort_keys=True), *((name, arrays[name].tobytes()) for name in sorted(arrays))


def _wrong(check: Callable[..., Any], *arguments: Any) -> list[str]:
    """What a check of `dpbench.contracts` says."""
    try:
        check(*arguments)
    except ContractError as error:
        return [str(error)]
    return []
