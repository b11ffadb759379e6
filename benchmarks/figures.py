"""The time to draw the committed results: that of `dpbench figures --other-code` by paper, and of all; of `data list`.

    python -m benchmarks.figures [PAPER ...] [--all]

Prints one line per command: seconds on the clock, CPU seconds, those of its processes included, and its largest
resident memory.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

RESULTS = Path(__file__).parents[1] / "results"
PAPERS = sorted(path.parent.name for path in RESULTS.glob("*/manifest.json"))


def measure(*line: str) -> str:
    """Run `dpbench` with these arguments; its seconds, CPU seconds of all its processes and MB of the largest."""
    start = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-m", "dpbench", *line], stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"dpbench {' '.join(line)} failed")
    seconds = time.perf_counter() - start
    return f"{seconds:7.1f} s, {used.ru_utime + used.ru_stime:7.1f} CPU s, {used.ru_maxrss / 1e3:6.0f} MB"


def main() -> None:
    """Measure the papers named on the command line, or all; with --all everything in one command too."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("papers", nargs="*", metavar="PAPER", help=f"of {', '.join(PAPERS)}")
    parser.add_argument("--all", action="store_true", help="experiments and papers, as `make figures` draws them")
    arguments = parser.parse_args()
    print(f"data list: {measure('data', 'list')}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        copy = shutil.copytree(RESULTS, Path(folder) / "results")
        draw = partial(measure, "figures", "--other-code", f"results={copy}")
        for paper in arguments.papers or PAPERS:
            print(f"figures paper={paper}: {draw(f'paper={paper}')}", flush=True)
        if arguments.all:
            print(f"figures: {draw()}", flush=True)


if __name__ == "__main__":
    main()
