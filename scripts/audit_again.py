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

KEPT = Path(__file__).parents[1] / "results" / "audit"


def main(patterns: list[str]) -> int:
    """Run the commands of the records whose mechanism matches one of the patterns."""
    head = subprocess.run(["git", "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()
    wanted = defaultdict(list)  # the records that each command is for; it may make others, too
    for path in sorted(KEPT.glob("*.json")):
        record = json.loads(path.read_text())
        if record["commit"] != head and any(fnmatch(record["mechanism"], pattern) for pattern in patterns or ["*"]):
            wanted[record["command"]].append(path.name)
    lost = 0
    for command, names in wanted.items():
        began = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            line = [sys.executable, "-m", *shlex.split(command), "--store", f"results={folder}"]
            done = subprocess.run(line, check=False, capture_output=True, text=True)
            made = [name for name in names if (Path(folder) / "audit" / name).exists()]
            for name in made:
                shutil.copy(Path(folder) / "audit" / name, KEPT / name)
        missing = sorted({*names} - {*made})
        lost += len(missing)
        print(f"{time.monotonic() - began:6.0f} s, {len(made)} of {len(names)} records: {command}", flush=True)
        if missing:
            print(f"not made: {', '.join(missing)}\n{done.stderr[-1000:]}", flush=True)
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
