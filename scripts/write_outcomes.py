"""Write conf/outcomes, what `dpbench recommend` reads of the arenas, from the exports in results/arena."""

from pathlib import Path

from dpbench.commands.recommend import outcomes_of_trials
from dpbench.commands.recommend_question import NEEDS
from dpbench.config import compose
from dpbench.report.export_file import FOLDER, SUFFIX
from dpbench.report.outcomes import write_shipped

ROOT = Path(__file__).parents[1]

if __name__ == "__main__":
    for name in sorted({arena for arenas in NEEDS.values() for arena in arenas}):
        arena = compose([f"experiment={name}", f"results={ROOT / 'results'}"])
        export = ROOT / "results" / "arena" / FOLDER / f"{name}{SUFFIX}"
        if not export.exists():
            print(f"{name}: not run")
            continue
        print(write_shipped(outcomes_of_trials(arena, None), export, ROOT / "conf" / "outcomes"))
