"""What functions of public packages really spend, each run in the environment of its package.

A worker, a script that runs there, gives scores of many runs on each of two neighbours, whose test bounds epsilon from
below (`lower_bound.epsilon_bound`); or the steps of one run that is replayed on a neighbour with the same noisy
answers: how far the value under each noise moves, and the noise's scale. The cost of these steps is arithmetic. It is
what an attacker has who sees the noisy answers; what is released in the end may tell less.

**Source** Cebere, Erb, Desfontaines, Bellet and Fitzsimons 2026, "Privacy in Theory, Bugs in Practice", arXiv
2602.17454, who found 13 violations in 12 libraries by record and replay of instrumented code.
"""

from __future__ import annotations

import json
import math
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from dpbench.audit.lower_bound import epsilon_bound
from dpbench.errors import UserError, bounded
from dpbench.files import Json
from dpbench.privacy.accounting import gaussian_epsilon

CONFIDENCE = 0.95
SEED = 1


@dataclass(frozen=True)
class Measured:
    """epsilon is at least this at the case's delta: by `runs` on each neighbour, or exactly, of the noise of `steps`.

    `selection`: the largest privacy loss of a selection among the steps, if there is one.
    """

    epsilon: float
    estimate: str
    selection: float | None
    versions: dict[str, str]


def measured(
    python: Path, worker: Path, case: str, *, runs: int, delta: float, sources: Path, timeout: float
) -> Measured:
    """Run a case of a worker and bound its epsilon.

    Raises `UserError` if the worker fails or does not end within `timeout` seconds.
    """
    with TemporaryDirectory(prefix="dpbench-") as folder:
        out = Path(folder, "found.json")
        command = [str(python), "-s", str(worker), case, str(runs), str(SEED), str(delta), str(sources), str(out)]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, errors="replace", timeout=timeout, check=False
            )
        except subprocess.TimeoutExpired:
            raise UserError(f"{worker.name} {case} did not end within {timeout:g} s; raise --timeout") from None
        if done.returncode or not out.is_file():
            said = done.stderr.strip().splitlines()[-1:] or ["it says nothing"]
            raise UserError(f"{worker.name} {case} failed (exit code {done.returncode}): {bounded(said[0])}")
        found = json.loads(out.read_text(encoding="utf-8"))
    if "steps" in found:
        epsilon, selection = cost_of(found["steps"], delta)
        return Measured(epsilon, f"{len(found['steps'])} steps", selection, found["versions"])
    zero, one = (np.array(found[name], dtype=np.float64) for name in ("zero", "one"))
    return Measured(epsilon_bound(zero, one, delta, CONFIDENCE), f"{len(zero)} runs", None, found["versions"])


def cost_of(steps: Sequence[Json], delta: float) -> tuple[float, float | None]:
    """The epsilon of these steps at delta, and the largest loss of a selection among them.

    Gaussian noise costs what mu-Gaussian DP does, mu^2 being the sum of the squared moves over scales; Laplace noise
    the sum of the moves over scales, which the privacy loss attains. Of steps of several kinds, the kind that costs
    most is counted alone: a test that looks at these steps only is one that an attacker has.

    >>> cost_of([{"kind": "laplace", "moved": 1.0, "scale": 2.0}, {"kind": "laplace", "moved": 1.0, "scale": 1.0}], 0.0)
    (1.5, None)
    >>> cost_of([{"kind": "laplace", "moved": 1.0, "scale": 0.0}], 0.0)
    (inf, None)
    """

    def parts(kind: str) -> list[float]:
        moves = [(float(s["moved"]), float(s["scale"])) for s in steps if s["kind"] == kind]
        return [moved / scale if scale else math.inf if moved else 0.0 for moved, scale in moves]

    gaussian, laplace, losses = parts("gaussian"), parts("laplace"), parts("choice")
    costs = [math.fsum(laplace), max(losses, default=0.0)]
    if gaussian:
        costs.append(gaussian_epsilon(math.sqrt(math.fsum(part**2 for part in gaussian)), delta))
    return max(costs), max(losses) if losses else None
