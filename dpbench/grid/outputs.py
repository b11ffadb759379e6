"""What a mechanism, model or metric computes from tiny inputs with fixed noise, as plain data that can be compared.

Models and metrics are given stored releases (conf/golden/inputs), not what a mechanism makes today.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from dpbench.config import Part, composed
from dpbench.config.parts import parts_of
from dpbench.config.registry import PARTS
from dpbench.data.table import Split, Table
from dpbench.errors import NoEstimateError, missing_extra
from dpbench.files import Json, write_file
from dpbench.grid.tiny_tables import SEED, SMALL, design_of, made, small, tiny_settings, tiny_table
from dpbench.metrics.evaluation import Evaluation, Reference
from dpbench.models.fit import Fit
from dpbench.privacy.budget import Budget
from dpbench.releases import KINDS, GlmStatistics, Release
from dpbench.resources import conf_dir

FEW = {"rounds": 5, "least_rows": 100, "chains": 2, "draws": 400, "warmup": 200}  # of a part that has more
SHORT = {"rounds": [2, 3]}  # of a grid of settings
NETWORK = ("hidden", "latent", "components", "most")
SHOWN = 8  # entries of an array that are stored; the others count in a weighted sum
SKIPPED = {  # inputs, texts for people, and how near an optimiser came, which is rounding error
    *("domain", "budget", "nonprivate_inputs", "label", "unit"),
    *("gradient_norm", "promised_distance"),
}
INPUTS = {  # for each kind of release a model needs: the mechanism of a stored release, and its settings
    "statistics": ("ssp_intervals",),
    "marginals": ("aim", "mechanism.aim.workload=4", "mechanism.aim.rounds=30"),
    "rows": ("mst",),
    "distribution": ("mst",),
    "coefficients": ("dpsgd",),
    "bins": ("binagg",),
    "glm_statistics": ("pass_glm_logistic",),
    "tables": ("napsu_mq",),
}
METRICS = {  # the data that a metric is given
    "scaled": {"labels": False, "plain": False},
    "unscaled": {"labels": False, "plain": True},
    "labels": {"labels": True, "plain": False},
}
Outputs = Json  # case -> path -> number, text, or the summary of an array


def outputs(part: Part) -> Outputs:
    """What the part computes from tiny inputs, in each of the ways that its config and signature name."""
    cases = {"mechanism": _of_mechanism, "model": _of_model, "metric": _of_metric}[part.group]
    found: Outputs = {}
    for case, compute in cases(part):
        try:
            found[case] = dict(_flat("", compute()))
        except Exception as error:  # what a part refuses is part of what it does, unless it cannot run here
            if missing_extra(error):
                raise
            found[case] = {"raises": type(error).__name__}
    return found


def tiny_parts(names: Iterable[str]) -> list[Part]:
    """The parts of these names, such as "mechanism/aim", with settings for tiny tables."""
    found = []
    for group in PARTS:
        own = [name.partition("/")[2] for name in names if name.startswith(f"{group}/")]
        if own:
            steps = "limits.iterations=50" if group == "mechanism" else "limits.iterations=1000"
            config = composed([f"{group}=[{','.join(own)}]", *tiny_settings(), steps])
            every = parts_of(group, config)
            found += [_short(small(part) if group == "mechanism" else part) for part in every]
    return found


def _short(part: Part) -> Part:
    """The part with few rounds, draws and runs of a search in place of many."""
    own = part.parameters
    few: Json = {name: min(own[name], most) for name, most in FEW.items() if isinstance(own.get(name), int)}
    if own.get("method") == "gem":
        few["shared"] = {**own["shared"], **{name: value for name, value in SMALL.items() if name in NETWORK}}
    if isinstance(own.get("grid"), Mapping):
        few["grid"] = {name: SHORT.get(name, values[:1]) for name, values in own["grid"].items()}
    few |= {"gamma": 0.5} if own.get("gamma") else {}
    return replace(part, parameters={**own, **few})


def _of_mechanism(part: Part) -> Iterator[tuple[str, Any]]:
    """A release under each relation and calibration, and with discrete noise."""
    table, epsilon = tiny_table(labels=part.labels), 1.0 if part.private else math.inf
    calibrations: list[dict[str, str]] = [{}]
    if part.takes("calibration") and "calibration" not in part.parameters:
        calibrations = [{"calibration": name} for name in part.calibrations]
    noises: list[dict[str, str]] = [{}, {"noise": "discrete"}] if part.private and part.takes("noise") else [{}]
    for relation, own, noise in product(part.relations, calibrations, noises):
        chosen = replace(part, parameters={**part.parameters, **own, **noise})
        budget = Budget(epsilon, 1e-5, relation)
        yield (
            ", ".join([relation, *own.values(), *noise.values()]),
            lambda chosen=chosen, budget=budget: _parts_of(made(chosen, table, budget=budget)),
        )


def _parts_of(release: Release) -> Json:
    data, arrays = release.to_parts()
    return {**data, **arrays}


def _of_model(part: Part) -> Iterator[tuple[str, Any]]:
    """A fit of a release of each kind that it needs."""
    for kind in part.needs or KINDS:
        labels = part.labels or kind == "glm_statistics" or part.parameters.get("family") == "logistic"
        yield kind, lambda kind=kind, labels=labels: _fit(part, _input(kind, labels=labels), labels=labels)


def _fit(part: Part, release: Release, *, labels: bool) -> Any:
    table = _table(labels=labels)
    design = replace(design_of(table), intercept=GlmStatistics.kind not in release.offers)
    rng = {"rng": np.random.default_rng(SEED)} if part.takes("rng") else {}
    fit: Fit = part.function(release, design=design, **rng, **part.parameters)
    found = {name: value for name, value in vars(fit).items() if name != "predictor" and value is not None}
    try:
        return {**found, "predicted": fit.predict(design.encode(table)[0])}
    except NoEstimateError:
        return {**found, "predicted": "nothing"}


def _of_metric(part: Part) -> Iterator[tuple[str, Any]]:
    """The score of a fit with intervals, a covariance and draws, on a release of marginals, rows and coefficients."""
    for case, settings in METRICS.items():
        if settings["labels"] or not part.labels:
            yield (
                case,
                lambda settings=settings: vars(part.function(_evaluation(**settings), **part.parameters)),
            )


def _table(*, labels: bool, seed: int = SEED) -> Table:
    """A tiny table, half of whose labels are drawn anew: with all of them a logistic regression has no optimum."""
    table = tiny_table(labels=labels, seed=seed)
    codes = table.codes.copy()
    if labels:
        codes[::2, -1] = np.random.default_rng(seed).integers(0, 2, len(codes[::2]))
    return Table(table.domain, codes, table.numbers)


def _evaluation(*, labels: bool, plain: bool) -> Evaluation:
    table = _table(labels=labels)
    design = design_of(table, plain=plain)
    split = Split(table, _table(labels=labels, seed=SEED + 1), dict.fromkeys(design.columns, 1.0))
    reference = Reference(split, design)
    marginals, coefficients = (_input(kind, labels=labels) for kind in ("rows", "coefficients"))
    release = replace(marginals, parts=(*marginals.parts, *coefficients.parts))
    p = len(design.columns)
    theta = reference.coefficients + 0.01 * np.arange(1, p + 1)
    ends = np.stack([theta - 0.1, theta + 0.1], axis=1)
    draws = theta + 0.1 * np.random.default_rng(SEED).normal(size=(50, p))
    notes = {"level": 0.95, "family": "logistic", "largest_norm": 3.0, "r_hat": 1.01}
    fit = Fit(theta, reference.train_moments, notes, ends, covariance=0.01 * np.eye(p), draws=draws)
    return Evaluation(fit, release, reference, lambda other: replace(fit, coefficients=theta * 0.9))


# --- stored releases ------------------------------------------------------------------------------------------------


def _input_file(kind: str, labels: bool) -> Path:
    return conf_dir() / "golden" / "inputs" / f"{kind}{'-labels' if labels else ''}.json"


@cache
def _input(kind: str, *, labels: bool) -> Release:
    data = json.loads(_input_file(kind, labels).read_text())
    arrays = {name: np.array(one["values"], one["dtype"]) for name, one in data["arrays"].items()}
    return Release.from_parts(data["release"], arrays)


def write_inputs() -> None:
    """Make the releases that are not stored yet."""
    for (kind, (name, *settings)), labels in product(INPUTS.items(), (False, True)):
        path = _input_file(kind, labels)
        if path.exists() or (kind == "glm_statistics" and not labels):
            continue
        (part,) = parts_of("mechanism", composed([f"mechanism=[{name}]", *tiny_settings(), *settings]))
        design = replace(design_of(table := _table(labels=labels)), intercept=kind != GlmStatistics.kind)
        budget = Budget(10.0, 1e-5, part.relations[0])
        release = made(small(part), table, budget=budget, design=design)
        data, arrays = release.to_parts()
        plain = {key: {"dtype": str(a.dtype), "values": a.tolist()} for key, a in arrays.items()}
        path.parent.mkdir(parents=True, exist_ok=True)
        write_file(path, json.dumps({"release": data, "arrays": plain}).encode())


# --- as plain data ---------------------------------------------------------------------------------------------------


def _flat(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    """The leaves of nested data by their paths: numbers, texts, and summaries of arrays."""
    if isinstance(value, (list, tuple)) and value and all(isinstance(one, Mapping) for one in value):
        value = {name: [one.get(name) for one in value] for name in {name for one in value for name in one}}
    if isinstance(value, Mapping):
        for name in sorted(value):
            if name not in SKIPPED:
                yield from _flat(f"{path}.{name}" if path else str(name), value[name])
    elif isinstance(value, Table):
        yield path, _summary(value.codes)
    elif isinstance(value, np.ndarray) and value.ndim:
        yield path, _summary(value)
    elif isinstance(value, (list, tuple)) and (array := _array(value)) is not None:
        yield path, _summary(array)
    elif isinstance(value, (list, tuple)):
        for place, one in enumerate(value):
            yield from _flat(f"{path}.{place}", one)
    elif isinstance(value, (bool, str)) or value is None or not math.isfinite(value):
        yield path, str(value)
    else:
        yield path, _rounded(value)


def _rounded(value: float) -> float:
    """To twelve digits, more than are compared (`golden.TOLERANCE`).

    >>> _rounded(1 / 3)
    0.333333333333
    """
    return float(f"{value:.12g}")


def _array(values: Sequence[Any]) -> np.ndarray[Any, Any] | None:
    """The values as an array, if all are numbers, or all texts or missing; None if they are not, or there is none."""
    if values and all(isinstance(one, (int, float)) for one in values):
        return np.array(values, dtype=float)
    if values and all(isinstance(one, (str, type(None))) for one in values):
        return np.array([str(one) for one in values])
    return None


def _summary(array: np.ndarray[Any, Any]) -> Any:
    """The shape of an array and its entries; of a large one some, and the sum of all, each with a weight of its own."""
    if array.dtype.kind not in "biuf":
        text = json.dumps(array.tolist()).encode()
        return {"shape": list(array.shape), "sha256": hashlib.sha256(text).hexdigest()[:16]}
    flat = np.ravel(array).astype(float)
    places = np.unique(np.linspace(0, max(flat.size - 1, 0), min(SHOWN, flat.size)).astype(int))
    shown = [_rounded(flat[k]) if math.isfinite(flat[k]) else str(flat[k]) for k in places]
    some = {"shape": list(array.shape), "values": shown}
    if len(places) == flat.size:
        return some
    finite = np.where(np.isfinite(flat), flat, 0.0)
    weights = np.cos(np.arange(1.0, flat.size + 1))
    return {**some, "sum": _rounded(weights @ finite), "size": _rounded(np.abs(finite).sum())}
