"""What made a result: commit, versions and processor. No host, user, path or time."""

from __future__ import annotations

import platform
import subprocess
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from typing import TypedDict

from dpbench import __version__
from dpbench.resources import PACKAGE

LIBRARIES = (
    "numpy",
    "scipy",
    "scikit-learn",
    "mbi",
    "jax",
    "torch",
    "opacus",
    "folktables",
    "dp-accounting",
    "hydra-core",
    "joblib",
)
GIT_TRIES = 3  # where it is killed
SOURCES = ("dpbench", "conf", "data", "pyproject.toml", "requirements.lock")


class Provenance(TypedDict, total=False):
    """What made a release or a trial; `threads` are added by the process that made it."""

    commit: str | None
    dirty: bool | None
    versions: dict[str, str]
    cpu: str
    threads: int


@lru_cache(maxsize=1)
def provenance() -> Provenance:
    """Commit and whether the sources differ from it, versions, Python, processor model."""
    versions = {"dpbench": __version__, "python": platform.python_version()}
    for library in LIBRARIES:
        try:
            versions[library] = version(library)
        except PackageNotFoundError:
            continue
    commit, dirty = _commit()
    return {"commit": commit, "dirty": dirty, "versions": versions, "cpu": _cpu()}


def _commit() -> tuple[str | None, bool | None]:
    """The checkout's commit and whether its sources were changed since; (None, None) outside a checkout."""
    root = PACKAGE.parent
    if not (root / ".git").exists():
        return None, None
    try:
        commit = _git("rev-parse", "HEAD")
        return commit, bool(_git("status", "--porcelain", "--", *SOURCES))
    except (OSError, subprocess.CalledProcessError):
        return None, None


def _git(*arguments: str) -> str:
    """What git prints. One that is killed has said nothing of the checkout, and is asked again."""
    command = ["git", "-C", str(PACKAGE.parent), *arguments]
    for _ in range(GIT_TRIES):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode >= 0:
            break
    done.check_returncode()
    return done.stdout.strip()


def _cpu() -> str:
    try:
        with open("/proc/cpuinfo") as file:
            return next(line.split(":", 1)[1].strip() for line in file if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()
