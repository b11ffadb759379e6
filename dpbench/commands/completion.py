"""Completion of settings in the shell, by what the configs offer; argcomplete completes commands and options."""

from __future__ import annotations

import argparse
from pathlib import Path

from dpbench.config.experiment import SETTINGS
from dpbench.config.registry import choices, read_yaml
from dpbench.privacy.budget import CALIBRATIONS, NOISES, RELATIONS
from dpbench.resources import conf_dir

LISTS = ("mechanism", "model", "metric", "calibration")  # settings with several values, such as mechanism=[aim,mst]
GROUPS = ("mechanism", "model", "metric", "dataset", "experiment", "paper", "sample", "limits", "as")
WORDS = {"relation": RELATIONS, "calibration": CALIBRATIONS, "noise": NOISES}


def offered(prefix: str, parsed_args: argparse.Namespace, **_: object) -> list[str]:
    """What a setting that begins with `prefix` can be: names of settings, configs of a group, words of a setting.

    >>> offered("relation=r", argparse.Namespace()), offered("mechanism=[exact,adas", argparse.Namespace())
    (['relation=replace'], ['mechanism=[exact,adassp]', 'mechanism=[exact,adassp,'])
    >>> offered("slurm.t", argparse.Namespace()), offered("mechanism.adassp.f", argparse.Namespace())
    (['slurm.throttle=', 'slurm.time='], ['mechanism.adassp.failure='])
    """
    name, given, value = prefix.partition("=")
    config_dir = getattr(parsed_args, "config_dir", None)
    if getattr(parsed_args, "command", "") == "data:data" and not given:
        return [one for one in choices("dataset") if one.startswith(name)]
    if not given:
        parent, dot = name.rpartition(".")[:2]
        settings = [f"{parent}.{one}" for one in _below(parent, config_dir)] if dot else {*SETTINGS, *GROUPS}
        return [f"{one}=" for one in sorted(settings) if one.startswith(name)]
    before = value[: max(value.rfind("["), value.rfind(",")) + 1] or "[" * (name in LISTS)
    known = choices(name, config_dir) if name in GROUPS else WORDS.get(name, ())
    found = [f"{name}={before}{one}" for one in known if one.startswith(value.removeprefix(before))]
    return [f"{found[0]}]", f"{found[0]},"] if before and len(found) == 1 else found


def _below(parent: str, config_dir: Path | None) -> list[str]:
    """The settings below another: of sample and limits, of a part such as mechanism.aim, else those of config.yaml."""
    group, _, part = parent.partition(".")
    if group in GROUPS:
        path = choices(group, config_dir).get(part or "full")
        config = read_yaml(path) if path else {}
        settings = config.get(part) if part else config
    else:
        settings = read_yaml(conf_dir() / "config.yaml").get(parent)
    names = settings if isinstance(settings, dict) else {}
    return [name for name in names if name != "name" and not name.startswith("_")]
