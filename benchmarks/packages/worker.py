"""What the workers share: a tape of what noise was added to, and how a case is run and written.

A worker is a script that runs in the environment of a package, which has no dpbench:
`python -s of_PACKAGE.py CASE RUNS SEED DELTA SOURCES OUT.json`. A case is a function of these that returns either
`runs`, scores of many runs on each of two neighbours, or `steps`: of each draw of noise how far the value under it
moves between the neighbours, in the norm of its kind, and its scale; of each selection its largest privacy loss.
"""

import json
import math
import sys
from contextlib import redirect_stdout, suppress
from importlib.metadata import version
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import numpy as np


class Tape:
    """Noisy answers of a run, which are given again to the run on the neighbour; `steps` is what that one adds."""

    def __init__(self, delta):
        self.answers, self.steps, self.place, self.delta = [], [], None, delta

    def rewind(self):
        """From now on the answers that were recorded are given."""
        self.place = count()

    def noisy(self, kind, value, scale, noise):
        """The value plus noise, or what was recorded in its place."""
        value = np.asarray(value, dtype=float)
        if self.place is None:
            self.answers.append((value, value + noise))
            return value + noise
        before, answer = self.answers[next(self.place)]
        change = np.ravel(value - before)
        moved = np.linalg.norm(change, 2) if kind == "gaussian" else np.abs(change).sum()
        self.steps.append({"kind": kind, "moved": float(moved), "scale": float(scale)})
        return answer

    def choice(self, probabilities, chosen):
        """The index that was chosen, or the recorded one; the loss at delta of the outcome that tells most."""
        if self.place is None:
            self.answers.append((probabilities, chosen))
            return chosen
        before, answer = self.answers[next(self.place)]
        with np.errstate(divide="ignore", invalid="ignore"):
            both = [np.log((a - self.delta) / b) for a, b in ((before, probabilities), (probabilities, before))]
        self.steps.append({"kind": "choice", "moved": float(np.nanmax(both)), "scale": 1.0})
        return answer


class Noise:
    """Noise that goes on the tape when it is added to a value."""

    __array_ufunc__ = None  # so that array + noise comes here

    def __init__(self, tape, kind, scale, noise):
        self.of = tape, kind, scale, noise

    def __radd__(self, value):
        tape, kind, scale, noise = self.of
        return tape.noisy(kind, value, scale, noise)

    __add__ = __radd__


class Done(Exception):
    """All noise has been drawn: what follows works on its answers alone."""


def replayed(tape, run, zero, one):
    """The steps of `run` on these two neighbours."""
    for table in (zero, one):
        with suppress(Done):
            run(table)
        if table is zero:
            tape.rewind()
    if next(tape.place) != len(tape.answers):
        raise RuntimeError("the run on the neighbour asks less than the first one")
    return {"steps": tape.steps}


def scored(score, zero, one, runs):
    """Scores of as many runs on each neighbour, in turn."""
    both = [(float(score(zero)), float(score(one))) for _ in range(runs)]
    return {"zero": [a for a, _ in both], "one": [b for _, b in both]}


def main(cases, *packages):
    """Run a case and write what it returns, with the versions of the packages."""
    name, runs, seed, delta, sources, out = sys.argv[1:]
    np.random.seed(int(seed))  # noqa: NPY002 - that packages draw from
    with redirect_stdout(sys.stderr):
        given = SimpleNamespace(runs=int(runs), seed=int(seed), delta=float(delta), sources=Path(sources))
        found = cases[name](given)
    if any(math.isnan(step["moved"]) for step in found.get("steps", [])):
        raise RuntimeError("a value is not a number")
    found["versions"] = {package: version(package) for package in packages}
    Path(out).write_text(json.dumps(found), encoding="utf-8")
