"""Golden outputs: what each mechanism, model and metric of the project computed from tiny inputs (`outputs`), stored.

conf/golden has one file per part and one entry per version: a part whose outputs are those of the last entry computes
what it did, however its code was edited. `make golden` adds a version for a part whose outputs changed, and notes the
digests of the code that was compared last. Numbers agree within `TOLERANCE`, which leaves room for the rounding of
another processor. Where rounding grows, as in Markov chains and networks, outputs of another processor agree within a
`LOOSE` tolerance of the largest number of their array alone, but for the ledger; the draws of chains are not compared.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpbench.config import Part, choices
from dpbench.config.registry import PARTS
from dpbench.config.schema import Parameters
from dpbench.errors import missing_extra
from dpbench.files import write_file
from dpbench.grid.code import codes_of
from dpbench.grid.seeds import digest
from dpbench.resources import THREADS, XLA_THREADS, conf_dir

if TYPE_CHECKING:  # what computes them is imported where they are compared
    from dpbench.grid.outputs import Outputs

TOLERANCE = 1e-9  # relative, of one number
LOOSE = {  # by target, where another processor made the stored outputs; measured by turning off its instructions
    **dict.fromkeys(("dpbench.mechanisms.rap.rap", "dpbench.mechanisms.rap_softmax.rap_softmax"), 1e-4),
    **dict.fromkeys(("dpbench.mechanisms.gem.gem", "dpbench.mechanisms.gem_pub.gem_pub"), 1e-2),
    "dpbench.mechanisms.margnet.margnet": 1e-2,
    "dpbench.mechanisms.rap_pp.rap_pp": 5e-2,
    "dpbench.mechanisms.pace_ggm.pace_ggm": 1e-4,
    "dpbench.mechanisms.query_search.query_search": 1e-2,
    "dpbench.models.bootstrap.linear_marginals_bootstrap": 1e-2,
    "dpbench.models.bayesian_statistics.bayesian_statistics": 0.5,
    "dpbench.models.bayesian_rows.bayesian_rows": 0.5,
    "dpbench.models.bayesian_linear.bayesian_linear": 0.5,
    "dpbench.mechanisms.pate.pate": 0.5,
}
MIXTURE = 0.1  # of what a mixture fits, likewise: its steps are in float32, and another processor may take one more
OF_CHANCE = ("draws", "ess_bulk", "ess_tail")  # outputs of a Markov chain that another processor does not repeat at all
ARITHMETIC = ("OPENBLAS_CORETYPE", "ATEN_CPU", "XLA_FLAGS", "NPY_DISABLE", "MKL_")  # settings that rounding hangs on
LIBRARIES = ("numpy", "scipy", "jax", "torch", "scikit-learn", "xgboost-cpu", "numpyro", "mbi")
EXTERNAL = ("dpbench.mechanisms.snsynth.snsynth",)  # they need an environment of their own: nothing is stored of them

# --- what is stored -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Golden:
    """The golden outputs of a part with these parameters, one entry per version, the last of which is today's.

    `arithmetic`: of the machine that computed the last entry.
    """

    target: str
    parameters: Parameters
    arithmetic: str
    versions: tuple[Outputs, ...]

    @property
    def tolerance(self) -> float:
        """Within which outputs of this machine agree with the stored ones."""
        if self.arithmetic == arithmetic():
            return TOLERANCE
        return LOOSE.get(self.target, MIXTURE if "mixture" in self.parameters.values() else TOLERANCE)

    def changed(self, found: Outputs) -> str:
        """Where outputs differ from the last stored ones; empty if they agree."""
        return difference(self.versions[-1], found, self.tolerance) if self.versions else "it is new"

    @property
    def text(self) -> str:
        """The file, one line per case."""
        listed = []
        for entry in self.versions:
            cases = (f"{json.dumps(case)}: {json.dumps(found)}" for case, found in entry.items())
            listed.append("{" + ",\n ".join(cases) + "}")
        data = {"target": self.target, "arithmetic": self.arithmetic, "parameters": dict(self.parameters)}
        return json.dumps(data)[:-1] + ', "versions": [\n' + ",\n".join(listed) + "]}\n"


@cache
def arithmetic() -> str:
    """A digest of what rounding depends on: the processor's instructions, libraries and their settings."""
    cpu = Path("/proc/cpuinfo")
    lines = cpu.read_text().splitlines() if cpu.exists() else []
    flags = sorted({line for line in lines if line.startswith(("flags", "model name"))})
    settings = {name: value for name, value in os.environ.items() if name.startswith(ARITHMETIC)}
    return digest([flags, settings, {name: _version(name) for name in LIBRARIES}])


def _version(library: str) -> str:
    """The installed version of a library; empty in an installation without the extra that has it."""
    try:
        return version(library)
    except PackageNotFoundError:
        return ""


def golden_dir() -> Path:
    """The folder of golden outputs."""
    return conf_dir() / "golden"


@cache
def stored() -> Mapping[str, Golden]:
    """All golden outputs, by group and name: "mechanism/aim"."""
    found = {}
    for path in sorted(golden_dir().glob("*/*.json")):
        if path.parent.name in PARTS:
            data = json.loads(path.read_text())
            found[f"{path.parent.name}/{path.stem}"] = Golden(**{**data, "versions": tuple(data["versions"])})
    return found


@cache
def compared_code() -> Mapping[str, str]:
    """The digests of the code, by target, that golden outputs were compared with last."""
    path = golden_dir() / "code.json"
    found: dict[str, str] = json.loads(path.read_text()) if path.exists() else {}
    return found


# --- comparing ------------------------------------------------------------------------------------------------------


def difference(one: Any, two: Any, tolerance: float, path: str = "") -> str:
    """Where two outputs differ first, by more than the tolerance between numbers; empty if they agree."""
    tolerance = TOLERANCE if "/ledger" in path else tolerance
    if tolerance > TOLERANCE and path.endswith(OF_CHANCE):
        return ""
    if isinstance(one, dict) and isinstance(two, dict):
        if one.keys() != two.keys():
            return f"{path}: {min(one.keys() ^ two.keys())} stands in one alone"
        size = max(one.get("size", 0.0), two.get("size", 0.0)) if {"sum", "size"} <= one.keys() else 0.0
        if size and abs(one["sum"] - two["sum"]) > tolerance * size:
            return f"{path}: the weighted sum is {two['sum']!r}, it was {one['sum']!r}"
        names = [name for name in one if not (size and name in ("sum", "size"))]
        found = (difference(one[name], two[name], tolerance, f"{path}/{name}" if path else name) for name in names)
        return next(filter(None, found), "")
    if isinstance(one, list) and isinstance(two, list) and len(one) == len(two):
        scale = max((abs(x) for x in one if isinstance(x, (int, float))), default=0.0)
        least = scale if tolerance > TOLERANCE else scale * 1e-3
        pairs = ((x, y) for x, y in zip(one, two, strict=True) if not _close(x, y, tolerance, least))
        return next((f"{path}: {y!r}, it was {x!r}" for x, y in pairs), "")
    return "" if _close(one, two, tolerance) else f"{path}: {two!r}, it was {one!r}"


def _close(one: Any, two: Any, tolerance: float, least: float = 0.0) -> bool:
    """Whether two leaves agree; a number far below the largest of its array, `least`, by the size of that."""
    if isinstance(one, (int, float)) and isinstance(two, (int, float)):
        return abs(one - two) <= tolerance * max(abs(one), abs(two), least)
    return bool(one == two)


# --- commands -------------------------------------------------------------------------------------------------------


def compare(names: Iterable[str]) -> dict[str, str | None]:
    """Where what each of these parts computes differs from its golden outputs; empty where it does not, None where a
    package of an extra is missing.
    """
    from dpbench.grid.outputs import tiny_parts

    parts = {f"{part.group}/{part.name}": part for part in tiny_parts(list(names))}
    return {name: _compared(part, stored()[name]) for name, part in parts.items()}


def _compared(part: Part, golden: Golden) -> str | None:
    try:
        return golden.changed(of_today(part, golden))
    except ModuleNotFoundError as error:
        if missing_extra(error):
            return None
        raise


def of_today(part: Part, golden: Golden) -> Outputs:
    """What the part computes today with the parameters of the stored outputs."""
    from dpbench.grid.outputs import outputs

    return outputs(replace(part, parameters=golden.parameters))


def update() -> None:
    """Store the outputs of new parts, add a version to those that changed, and note the code that was compared."""
    from dpbench.grid.outputs import tiny_parts, write_inputs

    write_inputs()
    for part in tiny_parts([f"{group}/{name}" for group in PARTS for name in choices(group)]):
        name = f"{part.group}/{part.name}"
        if part.target in EXTERNAL:
            continue
        known = stored().get(name)
        if known is None or known.target != part.target:
            known = Golden(part.target, part.parameters, arithmetic(), ())
        found = of_today(part, known)
        if where := known.changed(found):
            new = replace(known, arithmetic=arithmetic(), versions=(*known.versions, found))
            print(f"{name}: version {len(new.versions)}, as {where}", flush=True)
            write_file(golden_dir() / f"{name}.json", new.text)
    stored.cache_clear()
    codes = codes_of(sorted({golden.target for golden in stored().values()}))
    write_file(golden_dir() / "code.json", json.dumps(codes, indent=1) + "\n")


if __name__ == "__main__":
    if sys.argv[1:]:
        print(json.dumps(compare(sys.argv[1:])))
    else:
        alone = {**os.environ, **dict.fromkeys((*THREADS, XLA_THREADS), "1")}  # else sums have another order
        if os.environ != alone:
            os.execve(sys.executable, [sys.executable, "-m", "dpbench.grid.golden"], alone)
        update()
