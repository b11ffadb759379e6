"""What `dpbench check` asks of a plug-in of each kind: pairs of what is checked, and what is wrong with it."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dpbench.config import Part, composed
from dpbench.config.parts import parts_of
from dpbench.data.dataset import Dataset
from dpbench.data.domain import Floats
from dpbench.data.encode import Design
from dpbench.data.table import Split, Table
from dpbench.errors import ContractError, NoEstimateError
from dpbench.grid import mechanism_check
from dpbench.grid.mechanism_check import Check, wrong_with
from dpbench.grid.tiny import ROWS, SEED, bytes_of, design_of, made, tiny_settings, tiny_table
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
    """Its declaration, and what `grid.mechanism_check` asks of it."""
    part = source.part("mechanism", name)
    yield "its config and its signature", []
    yield "its config says what it offers", [] if part.offers else [f"_offers_ is missing: one of {', '.join(KINDS)}"]
    yield from mechanism_check.check_mechanism(part, tuple(item.partition("=")[0] for item in source.settings))


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

    dataset = Dataset.of(composed([f"dataset={name}", *source.settings], source.config_dir)["dataset"])
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
