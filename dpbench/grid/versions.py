"""Which version of a mechanism, model or metric an identity names.

The version of a part of the project counts how often what it computes has changed (`golden`): an edit that leaves its
golden outputs as they are leaves all results that are stored. Where code differs from what was compared last, it is
compared when a plan is made, once; where its outputs then differ, the version holds the digest of the code. For a
function of the user's own it is a digest of the function and of the names that it uses, or what `_version_` declares.
"""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from collections.abc import Iterable, Mapping

from dpbench.config import Part
from dpbench.data.fetch import cache_dir
from dpbench.errors import UserError
from dpbench.grid import golden
from dpbench.grid.code import Memo, code_of, codes_of, function_digest, is_ours
from dpbench.grid.records import TrialKey
from dpbench.grid.seeds import digest
from dpbench.resources import with_threads

log = logging.getLogger(__name__)
Versions = Mapping[tuple[str, str, str], str]  # by group, name and target


def versions_of(parts: Iterable[Part]) -> Versions:
    """The version of each of these parts."""
    every = list(parts)
    ours = {part.target for part in every if is_ours(part.target)}
    used = {part.target: function_digest(part.target) for part in every if not is_ours(part.target)}
    called = {name for _, names in used.values() for name in names}  # parts of the project that own functions call
    goldens = golden.stored()
    named = [name for name, one in goldens.items() if one.target in ours | called]
    differing = _differing(named)

    def of_target(target: str) -> str:
        """Of a part of the project by another name than those that are stored: all changes to its function count."""
        count = 1 + sum(len(one.versions) - 1 for one in goldens.values() if one.target == target)
        edited = any(goldens[name].target == target for name in differing)
        return f"{count}+{code_of(target)}" if edited else str(count)

    def of(part: Part) -> str:
        if part.version is not None:
            return part.version
        if part.target in used:
            own, names = used[part.target]
            within = {name: of_target(name) for name in names if any(one.target == name for one in goldens.values())}
            return digest([own, within]) if within else own
        name = f"{part.group}/{part.name}"
        if name not in goldens or goldens[name].target != part.target:
            return of_target(part.target)
        count = len(goldens[name].versions)
        return f"{count}+{code_of(part.target)}" if name in differing else str(count)

    return {(part.group, part.name, part.target): of(part) for part in every}


def of_today(key: TrialKey) -> bool:
    """Whether no part of the project in a key is of another version than its last golden outputs."""
    parts = [("mechanism", key.release.mechanism), ("model", key.fit.model), *(("metric", one) for one in key.metrics)]
    for group, part in parts:
        known = golden.stored().get(f"{group}/{part.name}")
        if known is not None and known.target == part.target and part.version != str(len(known.versions)):
            return False
    return True


def _differing(names: Iterable[str]) -> set[str]:
    """Those whose outputs differ from the golden ones. Code that was compared before is not compared again."""
    goldens, compared, memo = golden.stored(), golden.compared_code(), Memo(cache_dir() / "compared.json")
    codes = codes_of(goldens[name].target for name in names)
    edited = [name for name in names if compared.get(goldens[name].target) != codes[goldens[name].target]]
    keys = {name: f"{name} {codes[goldens[name].target]} {len(goldens[name].versions)}" for name in edited}
    if new := [name for name in edited if not isinstance(memo.get(keys[name]), str)]:
        log.warning("the code of %s was edited: comparing what it computes with what is stored", _listed(new))
        found = _compare(new)
        for name, differs in found.items():
            if differs is not None:  # else it is compared when the packages that it needs are installed
                memo.add(keys[name], differs)
            if differs:
                log.warning("%s computes something else than its stored results: %s", name, differs)
        try:
            memo.keep()
        except UserError as error:
            log.warning("%s; it will be compared again", error)
    return {name for name in edited if memo.get(keys[name]) != ""}


def _compare(names: list[str]) -> dict[str, str | None]:
    """`golden.compare` by a process of its own, which reads the code as it is now."""
    line = [sys.executable, "-m", "dpbench.grid.golden", *names]
    done = subprocess.run(line, env=with_threads(), capture_output=True, text=True, check=False)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise UserError(f"what {_listed(names)} computes cannot be compared with its golden outputs: {last}")
    found: dict[str, str | None] = json.loads(done.stdout.splitlines()[-1])
    return found


def _listed(names: list[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
