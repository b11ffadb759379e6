"""Made-up stored trials: nothing is run, but every field is there."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from dpbench.grid.records import Failure, FitKey, PartKey, ReleaseKey, Runtime, Trial, TrialKey
from dpbench.metrics.evaluation import Score
from dpbench.privacy.accounting import Spent
from dpbench.privacy.budget import Budget
from dpbench.report.frames.frame import trial_frame
from dpbench.report.frames.settings import placed, settings_of
from dpbench.report.kinds import draw_figure
from dpbench.report.picture.picture import Picture
from dpbench.report.picture.render_matplotlib import rendered

LABELS = {
    "exact/linear_statistics": "public",
    "ssp/linear_statistics": "SSP",
    "adassp/linear_statistics": "AdaSSP",
    "aim/linear_marginals": "DD-SSP",
    "aim/linear_rows": "AIM-Synth",
}
SPEC = {"name": "mse", "metric": "mse", "title": "Linear regression on Adult", "yscale": "log"}
REPORT = {"labels": LABELS, "metrics": ["mse", "r2"], "figures": [SPEC]}


def make_trial(
    mechanism: str = "ssp",
    model: str = "linear_statistics",
    epsilon: float | str = 0.1,
    repetition: int = 0,
    mse: float | None = 0.08,
    status: str = "done",
    calibration: str | None = None,
    dataset: str = "adult",
    delta: float = 1e-5,
    spent: float | None = None,
    parameters: dict[str, Any] | None = None,
    metrics: Sequence[str] = ("mse", "r2"),
    scores: Sequence[Score] | None = None,
    rows: int = 50000,
    data: dict[str, Any] | None = None,
    notes: dict[str, Any] | None = None,
    release_seconds: float = 1.2,
    model_seconds: float = 0.01,
    protocol: str = "split",
    fixed: bool = False,
) -> Trial:
    """One trial; its id is that of its key. `data` are parameters of its data set. An `mse` of None is not finite."""
    parameters = dict(parameters or {}) | ({"calibration": calibration} if calibration else {})
    about = {"name": dataset, "sources": {"adult.data": "0" * 64}} | ({"parameters": data} if data else {})
    budget = Budget(float(epsilon), delta)
    made = PartKey(mechanism, f"m.{mechanism}", parameters)
    split = {"train_rows": rows, "test_rows": 1000} | ({"protocol": protocol} if protocol != "split" else {})
    split |= {"fixed": True} if fixed else {}
    release = ReleaseKey(about, split, 0, repetition, made, budget)
    fit = FitKey(release, PartKey(model, f"m.{model}", {}), {"target": "education-num", "intercept": True})
    key = TrialKey(fit, tuple(PartKey(name, f"m.{name}", {}) for name in sorted(metrics)))
    done, error = status == "done", math.nan if mse is None else mse
    if scores is None:
        scores = [Score("mse", error, "scaled target^2", "lower"), Score("r2", 1 - error, "", "higher")]
    return Trial(
        id=key.id,
        release_id=release.id,
        key=key,
        experiment="linreg_adult",
        status=status,
        phase=None if done else "model",
        scores=tuple(scores) if done else (),
        notes=(notes or {"rank": 101, "fallback": ""}) if done else {},
        spent=Spent(budget.epsilon if spent is None else spent, delta, 0.1, None) if done else None,
        error=None if done else Failure("MemoryError", "too big", "..."),
        provenance={"commit": "abc", "dirty": False, "versions": {}, "threads": 1, "cpu": "x"},
        runtime=Runtime(release_seconds, 200.0, model_seconds, 0.02, 210.0),
    )


def make_score(name: str, value: float, direction: str = "higher", **detail: Any) -> Score:
    """One score, with its detail if it has one."""
    return Score(name, value, "", direction, detail or None)


def make_grid(dataset: str = "adult", repetitions: int = 5, seed: int = 0) -> list[Trial]:
    """A grid shaped like DD-SSP's Figure 3a: SSP far above the rest, DD-SSP on AIM-Synth, some failures."""
    rng = np.random.default_rng(seed)
    levels = {
        ("ssp", "linear_statistics", "tight"): lambda eps: 0.2 + 4.0 / eps**2,
        ("ssp", "linear_statistics", "paper"): lambda eps: 0.2 + 2.0 / eps**2,
        ("adassp", "linear_statistics", "tight"): lambda eps: 0.062 + 0.008 / eps,
        ("adassp", "linear_statistics", "paper"): lambda eps: 0.062 + 0.016 / eps,
        ("aim", "linear_marginals", None): lambda eps: 0.059 + 0.0008 / eps,
        ("aim", "linear_rows", None): lambda eps: 0.0592 + 0.0009 / eps,
    }
    trials = []
    for repetition in range(repetitions):
        trials.append(
            make_trial("exact", epsilon=math.inf, dataset=dataset, repetition=repetition, mse=_noisy(rng, 0.058, 0.02))
        )
        for (mechanism, model, calibration), level in levels.items():
            for epsilon in (0.05, 0.1, 0.5, 1.0, 2.0):
                failed = mechanism == "aim" and epsilon == 2.0 and repetition >= 3
                trials.append(
                    make_trial(
                        mechanism,
                        model,
                        epsilon,
                        repetition,
                        _noisy(rng, level(epsilon), 0.5 if mechanism == "ssp" else 0.04),
                        status="oom" if failed else "done",
                        calibration=calibration,
                        dataset=dataset,
                        spent=1.6 * epsilon if (mechanism, calibration) == ("ssp", "paper") else None,
                    )
                )
    return trials


def _noisy(rng: np.random.Generator, level: float, spread: float) -> float:
    return float(level * np.exp(spread * rng.standard_normal()))


# --- figures ----------------------------------------------------------------------------------------------------------


def picture(trials: Sequence[Trial], notes: str = "", **changes: Any) -> Picture:
    """The picture of `SPEC` with these changes: a metric against epsilon, if they do not say otherwise."""
    spec = SPEC | changes
    return draw_figure(placed(trial_frame(trials, settings_of(spec)), spec), LABELS, spec, notes)


def draw(trials: Sequence[Trial], notes: str = "", **changes: Any) -> tuple[Figure, pd.DataFrame]:
    """The same, drawn with matplotlib, and the data drawn."""
    return drawing(picture(trials, notes, **changes))


def drawing(made: Picture) -> tuple[Figure, pd.DataFrame]:
    """The picture drawn with matplotlib, and the data drawn."""
    figure = rendered(made)
    figure.set_label(made.footnote)
    return figure, made.drawn


def footnote(figure: Figure) -> str:
    """What is to stand below the panels."""
    return str(figure.get_label())


def lines_of(figure: Figure) -> dict[str, Line2D]:
    """The main line of each series of the first panel, by label."""
    handles, labels = figure.axes[0].get_legend_handles_labels()
    return {label: getattr(handle, "lines", [handle])[0] for handle, label in zip(handles, labels, strict=True)}
