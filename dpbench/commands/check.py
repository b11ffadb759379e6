"""`dpbench check`: a plug-in of any kind is checked against its contract (`dpbench.contracts`), on tiny data."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator

from dpbench.commands import kinds, plugins
from dpbench.config import choices
from dpbench.errors import UserError, bounded, check_known, text_of
from dpbench.grid.mechanism_check import UNSEEN, Check

GROUPS: dict[str, Callable[[str, plugins.Source], Iterator[Check]]] = {
    "mechanism": plugins.check_mechanism,
    "model": plugins.check_model,
    "metric": plugins.check_metric,
    "dataset": plugins.check_dataset,
    "figure": kinds.check_kind,
    "table": kinds.check_kind,
}


def check(arguments: argparse.Namespace) -> int:
    """Check each plug-in that the settings name, a line a check; 1 if something is wrong with any."""
    pairs = [item.partition("=")[::2] for item in arguments.overrides]
    named = [(group, name) for group, name in pairs if group in GROUPS]
    if not named:
        raise UserError(f"say what to check, such as dpbench check mechanism=mine (or {', '.join(list(GROUPS)[1:])})")
    settings = tuple(item for item in arguments.overrides if item.partition("=")[0] not in GROUPS)
    good = True
    for group, listed in named:
        for name in listed.strip("[]").split(","):
            check_known(group, name, choices(group, arguments.config_dir))
            source = plugins.Source(group, settings, arguments.config_dir)
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
