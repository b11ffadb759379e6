"""Sizes and budgets of an experiment: the groups `sample` and `limits`, delta, epsilons, and where it runs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dpbench.config.registry import choices
from dpbench.config.schema import Limits, Sample, Slurm
from dpbench.config.values import checked_type, integer, listed, number
from dpbench.data.dataset import Dataset
from dpbench.errors import UserError, check_known, shown, unknown
from dpbench.files import Node

MOST_ROWS, MOST_REPETITIONS = 10**9, 100_000
MOST_SECONDS, MOST_MB = 1e7, 1e8  # 115 days, 100 TB
SPLITS = ("fresh", "fixed")  # each repetition has a split of its own, or all share one
SIZES = {  # the keys of the two groups of sizes
    "sample": ("name", "train_rows", "test_rows", "public_rows", "protocol", "split"),
    "limits": ("name", "model_mb", "iterations", "seconds", "memory_mb"),
}


def repetitions_of(value: int | Node, config_dir: Path | None = None) -> tuple[int, dict[str, int]]:
    """The number of repetitions, and those of the mechanisms that have a number of their own.

    >>> repetitions_of({"others": 5, "aim": 20})
    (5, {'aim': 20})
    """
    if not isinstance(value, Mapping):
        return integer("repetitions", value, 1, MOST_REPETITIONS), {}
    numbers = {str(key): integer(f"repetitions.{key}", one, 1, MOST_REPETITIONS) for key, one in value.items()}
    if "others" not in numbers:
        raise UserError(
            "repetitions must be a number, or a number for each of some mechanisms and for the others: "
            f"repetitions={{aim: 20, others: 5}}, not {shown(value)}"
        )
    others = numbers.pop("others")
    for name in numbers:
        check_known("mechanism in repetitions", name, choices("mechanism", config_dir))
    return others, numbers


def sample_of(sample: Node) -> Sample:
    """The numbers of rows, checked."""
    from dpbench.data.table import PROTOCOLS

    _check_keys("sample", sample)
    check_known("sample.protocol", sample["protocol"], PROTOCOLS)
    check_known("sample.split", sample["split"], SPLITS)
    return Sample(
        name=str(sample["name"]),
        train_rows=integer("sample.train_rows", sample["train_rows"], 1, MOST_ROWS),
        test_rows=_test_rows(sample["test_rows"]),
        public_rows=integer("sample.public_rows", sample["public_rows"], 0, MOST_ROWS),
        protocol=str(sample["protocol"]),
        split=str(sample["split"]),
    )


def limits_of(limits: Node) -> Limits:
    """The limits, checked; those that parts interpolate (`model_mb`, `iterations`) are checked with the parts."""
    _check_keys("limits", limits)
    return Limits(
        name=str(limits["name"]),
        seconds=number("limits.seconds", limits["seconds"], above=0, most=MOST_SECONDS),
        memory_mb=number("limits.memory_mb", limits["memory_mb"], above=0, most=MOST_MB),
    )


def _check_keys(group: str, given: Node) -> None:
    """The group has all of its keys, and no others."""
    for key in given:
        if key not in SIZES[group]:
            raise unknown(f"setting of {group}", str(key), SIZES[group])
    for key in SIZES[group]:
        if key not in given:
            raise UserError(f"{group}.{key} is missing: see conf/{group}/full.yaml")


def _test_rows(given: Any) -> float | list[float]:
    match given:
        case bool() | [_, bool()]:
            pass
        case int() if 0 <= given <= MOST_ROWS:
            return given
        case float() if 0 < given < 1:
            return given
        case [float(part), int(most)] if 0 < part < 1 <= most <= MOST_ROWS:
            return [part, most]
    raise UserError(
        "sample.test_rows must be a whole number of at least 0, a fraction such as 0.2, or [fraction, maximum], such "
        f"as [0.2, 1000], not {shown(given)}"
    )


def delta_of(given: Any, dataset: Dataset, sample: Sample) -> float:
    """The number given, or the power of n that "n**-1.1" names, n the declared number of rows that a mechanism sees."""
    power = re.fullmatch(r"n\*\*-(\d{1,3}(?:\.\d{1,9})?)", str(given))
    if not power:
        if isinstance(given, str):
            raise UserError(
                f"delta must be a number between 0 and 1, both excluded, or such as n**-1.1, not {shown(given)}"
            )
        return number("delta", given, above=0, below=1)
    n, rows, left = sample.train_rows, declared_rows(dataset), left_for_training(dataset, sample)
    if rows is not None and left is not None:
        n = min(n, left) + (rows - left if sample.protocol == "authors" else 0)
    return number("delta", _rounded(number("n", n, above=1) ** -float(power[1])), above=0, below=1)


def declared_rows(dataset: Dataset) -> int | None:
    """How many rows a data set's card says it has."""
    rows = dataset.card.get("rows")
    return None if rows is None else integer("dataset.card.rows", rows, 1, MOST_ROWS)


def left_for_training(dataset: Dataset, sample: Sample) -> int | None:
    """How many of the declared rows are not for testing, None if none are declared."""
    from dpbench.data.table import count_test_rows

    rows = declared_rows(dataset)
    return None if rows is None else rows - count_test_rows(sample.test_rows, rows)


def epsilons_of(config: Node, delta: float) -> tuple[float, ...]:
    """Those given, or those at `delta` of the Gaussian-DP parameters `mu` (BinAgg, Proposition 2.1(i))."""
    if config["mu"] is None:
        return tuple(number("epsilon", value, above=0) for value in listed(config["epsilon"]))
    from dpbench.privacy.accounting import gaussian_epsilon

    mus = [number("mu", value, above=0, most=1e4) for value in listed(config["mu"])]
    return tuple(number("epsilon of mu", _rounded(gaussian_epsilon(mu, delta)), above=0) for mu in mus)


def _rounded(value: float) -> float:
    """To ten digits, so that an identity does not hang on the last bits of a power or a root.

    >>> _rounded(1 / 3)
    0.3333333333
    """
    return float(f"{value:.10g}")


def executor_of(given: str) -> str:
    """What runs a plan: `local` processes, `dask` workers on this machine, or those of the scheduler at an address."""
    if given not in ("local", "dask") and not re.fullmatch(r"[a-z]+://[^\s/]+(:\d+)?", given):
        raise UserError(
            "executor must be local, dask or the address of a Dask scheduler, such as tcp://10.0.0.1:8786, not "
            f"{shown(given)}"
        )
    return given


def slurm_of(options: Node) -> Slurm:
    """Options of sbatch, each one word and its value one line; null leaves one out."""
    plain = {name: value for name, value in options.items() if name not in ("throttle", "lines")}
    for name, value in plain.items():
        if not re.fullmatch(r"[a-z][a-z0-9-]{0,40}", str(name)):
            raise UserError(f"slurm: {shown(name)} is no option of sbatch, such as mem or cpus-per-task")
        if name in ("array", "job-name", "output"):
            raise UserError(f"slurm.{name} is set by dpbench; shards and slurm.throttle give the tasks of the array")
        checked_type(f"slurm.{name}", value, "str | int | None")
        if not re.fullmatch(r"[\w.,:;@%+=/()\[\]*&|!<> -]{0,200}", str(value), re.ASCII):
            raise UserError(f"slurm.{name} must be one line without quotes, at most 200 characters, not {shown(value)}")
    if (throttle := options.get("throttle")) is not None:
        integer("slurm.throttle", throttle, 1, 10_000)
    lines = options.get("lines") or []
    checked_type("slurm.lines", lines, "list")
    for line in lines:
        if not isinstance(line, str) or not line.isprintable() or len(line) > 1000:
            raise UserError(f"slurm.lines: each is one line, such as 'module load python', not {shown(line)}")
    return Slurm({name: value for name, value in plain.items() if value is not None}, throttle, tuple(lines))
