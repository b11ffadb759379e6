"""Completion of settings in the shell, by what the configs offer; argcomplete completes commands and options."""

from __future__ import annotations

import argparse

from dpbench.config.experiment import SETTINGS
from dpbench.config.registry import choices
from dpbench.privacy.budget import CALIBRATIONS, NOISES, RELATIONS

LISTS = ("mechanism", "model", "metric", "calibration")  # settings with several values, such as mechanism=[aim,mst]
GROUPS = ("mechanism", "model", "metric", "dataset", "experiment", "paper", "sample", "limits")
WORDS = {"relation": RELATIONS, "calibration": CALIBRATIONS, "noise": NOISES}


def offered(prefix: str, parsed_args: argparse.Namespace, **_: object) -> list[str]:
    """What a setting that begins with `prefix` can be: names of settings, configs of a group, words of a setting.

    >>> offered("relation=r", argparse.Namespace()), offered("mechanism=[exact,adas", argparse.Namespace())
    (['relation=replace'], ['mechanism=[exact,adassp]', 'mechanism=[exact,adassp,'])
    """
    name, given, value = prefix.partition("=")
    if getattr(parsed_args, "command", "") == "data:data" and not given:
        return [one for one in choices("dataset") if one.startswith(name)]
    if not given:
        return [f"{one}=" for one in sorted({*SETTINGS, *GROUPS}) if one.startswith(name)]
    before = value[: max(value.rfind("["), value.rfind(",")) + 1] or "[" * (name in LISTS)
    known = choices(name, getattr(parsed_args, "config_dir", None)) if name in GROUPS else WORDS.get(name, ())
    found = [f"{name}={before}{one}" for one in known if one.startswith(value.removeprefix(before))]
    return [f"{found[0]}]", f"{found[0]},"] if before and len(found) == 1 else found
