"""CPU hours that an experiment still needs, from the seconds of the trials in results/*/trials.jsonl.xz.

    python scripts/hours.py experiment=linreg_adult repetitions=20

A release or fit that is not stored is taken to need the mean seconds of its stored repetitions. Those that have none
are counted, and no seconds are guessed for them.
"""

import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import mean

from dpbench.config import compose
from dpbench.grid.plan import make_plan
from dpbench.report.export import Cell, load_export


def hours(settings: Sequence[str], stored: Iterable[Cell]) -> tuple[float, int, int]:
    """CPU hours, releases to be made, and how many releases and fits have no stored counterpart."""
    seconds: dict[tuple[str, ...], dict[str, float]] = {}
    done = set()
    for cell in stored:
        here = (cell.key.release.uncoded().id,)
        for trial in cell.trials:
            runtime = trial.runtime
            done.add((cell.question, trial.key.release.repetition))
            if runtime.release_seconds is not None:
                seconds.setdefault(here, {})[trial.release_id] = runtime.release_seconds
            fit = (runtime.model_seconds or 0.0) + (runtime.metrics_seconds or 0.0)
            seconds.setdefault((*here, cell.key.fit.model.name), {})[trial.id] = fit
    means = {one: mean(times.values()) for one, times in seconds.items()}
    experiment = compose(settings)
    points = tuple(replace(point, repetitions=1) for point in experiment.points)
    needed, releases = list[tuple[str, ...]](), 0
    for item in make_plan(replace(experiment, repetitions=1, points=points)).releases:
        here, questions = (
            (item.key.uncoded().id,),
            [(trial.uncoded().id, trial.fit.model.name) for trial in item.trials],
        )
        for repetition in range(experiment.repetitions):
            missing = [model for question, model in questions if (question, repetition) not in done]
            releases += bool(missing)
            needed += [here, *((*here, model) for model in missing)] if missing else []
    return sum(means.get(one, 0.0) for one in needed) / 3600, releases, sum(one not in means for one in needed)


if __name__ == "__main__":
    exports = (Path(__file__).parents[1] / "results").glob("*/trials.jsonl.xz")
    cells = [cell for path in sorted(exports) for cell in load_export(path)]
    time, releases, unknown = hours(sys.argv[1:], cells)
    print(f"{time:.2f} CPU hours, {releases} releases; {unknown} releases and fits of which no seconds are stored")
