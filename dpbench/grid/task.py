"""What a task of a cluster needs to run a part of a plan as it would run here, besides that part."""

from __future__ import annotations

import os
import re
from pathlib import Path

from dpbench.config.composition import quoted
from dpbench.grid.store import Store

FROZEN = re.compile(r"DPBENCH_\w+|PYTHONPATH|XDG_(CACHE|STATE)_HOME|\w+_NUM_THREADS")  # what data and results hang on


def variables() -> dict[str, str]:
    """The environment's variables on which data and results hang."""
    return {name: value for name, value in sorted(os.environ.items()) if FROZEN.fullmatch(name)}


def arguments(store: Store, config_dir: Path | None) -> list[str]:
    """The arguments of Python for `dpbench run` on the same folders; --plan and jobs are to come."""
    line = ["-m", "dpbench", "run", f"results={quoted(str(store.root.resolve()))}"]
    return line if config_dir is None else [*line, "--config-dir", str(config_dir.resolve())]
