"""Made-up stored trials: nothing is run, but every field is there."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

import numpy as np

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
    scores: list[dict[str, Any]] | None = None,
    rows: int = 50000,
    data: dict[str, Any] | None = None,
    fit: dict[str, Any] | None = None,
    release_seconds: float = 1.2,
    model_seconds: float = 0.01,
) -> dict[str, Any]:
    """One trial as it is stored; its id is the digest of its key. `data` are parameters of its data set."""
    parameters = dict(parameters or {}) | ({"calibration": calibration} if calibration else {})
    release = {
        "dataset": {"name": dataset, "sha256": {"adult.data": "0" * 64}, "attributes": ["age", "sex"]},
        "split": {"train_rows": rows, "test_rows": 1000},
        "mechanism": {"name": mechanism, "target": f"m.{mechanism}", "version": 1, "parameters": parameters},
        "budget": {"epsilon": epsilon, "delta": delta, "relation": "add_remove"},
        "seed": 0,
        "repetition": repetition,
    }
    if data:
        release["dataset"]["parameters"] = data
    key = {
        "release": release,
        "design": {"target": "education-num", "intercept": True},
        "model": {"name": model, "target": f"m.{model}", "version": 1, "parameters": {}},
        "metrics": list(metrics),
    }
    done = status == "done"
    if scores is None:
        scores = [
            {"name": "mse", "value": mse, "unit": "scaled target^2", "direction": "lower"},
            {"name": "r2", "value": None if mse is None else 1 - mse, "unit": "", "direction": "higher"},
        ]
    asked = {"epsilon": epsilon, "delta": delta}
    return {
        "id": _digest(key),
        "release_id": _digest(release),
        "experiment": "linreg_adult",
        "key": key,
        "status": status,
        "phase": None if done else "model",
        "scores": scores if done else [],
        "fit": (fit or {"rank": 101, "fallback": ""}) if done else None,
        "asked": asked,
        "spent": {**asked, "epsilon": epsilon if spent is None else spent, "rho": 0.1, "mu": None} if done else None,
        "nonprivate_inputs": [],
        "error": None if done else {"type": "MemoryError", "message": "too big", "traceback": "..."},
        "provenance": {"commit": "abc", "dirty": False, "versions": {}, "threads": 1, "cpu": "x"},
        "runtime": {
            "release_seconds": release_seconds,
            "model_seconds": model_seconds,
            "metrics_seconds": 0.02,
            "peak_mb": 210.0,
        },
    }


def make_score(name: str, value: float, direction: str = "higher", **detail: Any) -> dict[str, Any]:
    """One score as it is stored, with its detail if it has one."""
    score = {"name": name, "value": value, "unit": "", "direction": direction}
    return score | ({"detail": detail} if detail else {})


def make_grid(dataset: str = "adult", repetitions: int = 5, seed: int = 0) -> list[dict[str, Any]]:
    """A grid shaped like paper 0's Figure 3a: SSP far above the rest, DD-SSP on AIM-Synth, some failures."""
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
            make_trial("exact", epsilon="inf", dataset=dataset, repetition=repetition, mse=_noisy(rng, 0.058, 0.02))
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


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]
