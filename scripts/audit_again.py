"""Run the audits in results/audit again by their own commands, each with the seconds it takes.

    python scripts/audit_again.py                     # all of them, by the code of this commit
    python scripts/audit_again.py ssp 'dpsgd*'        # those of some mechanisms

A record is replaced once its command has made it anew. Records of this commit are left as they are, so that a run that
was stopped goes on. Ends with 1 if a record was not made.
"""

import json
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

Kind = tuple[Any, ...]
ROOT = Path(__file__).parents[1]
KEPT = ROOT / "results" / "audit"


def main(patterns: list[str]) -> int:
    """Run the commands of the records whose mechanism matches one of the patterns."""
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, check=True, capture_output=True, text=True)
    wanted: dict[str, dict[Kind, Path]] = defaultdict(dict)  # the records that each command is for
    for path, record in read(KEPT):
        if record["commit"] != head.stdout.strip() and any(
            fnmatch(record["mechanism"], pattern) for pattern in patterns or ["*"]
        ):
            wanted[record["command"]][kind_of(record)] = path
    lost = 0
    for command, old in wanted.items():
        began = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            line = [sys.executable, "-m", *shlex.split(command), "--store", f"results={folder}"]
            done = subprocess.run(line, check=False, capture_output=True, text=True)
            made = {kind_of(record): path for path, record in read(Path(folder) / "audit")}
            for kind in old.keys() & made.keys():  # a command may make others, too; the estimate may be another one
                old[kind].unlink()
                shutil.copy(made[kind], KEPT / made[kind].name)
        missing = [path.name for kind, path in old.items() if kind not in made]
        lost += len(missing)
        print(
            f"{time.monotonic() - began:6.0f} s, {len(old) - len(missing)} of {len(old)} records: {command}", flush=True
        )
        if missing:
            print(f"not made: {', '.join(missing)}\n{done.stderr[-1000:]}", flush=True)
    return 1 if lost else 0


def read(folder: Path) -> list[tuple[Path, dict[str, Any]]]:
    """The records in a folder."""
    return [(path, json.loads(path.read_text())) for path in sorted(folder.glob("*.json"))]


def kind_of(record: dict[str, Any]) -> Kind:
    """What was audited, and with which canaries."""
    return tuple(
        record.get(name, "") for name in ("mechanism", "calibration", "relation", "epsilon", "delta", "canaries")
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
