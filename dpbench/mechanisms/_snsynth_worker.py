"""Fit a synthesizer of smartnoise-synth and sample from it: a script for the environment that `make snsynth` makes.

It runs apart from dpbench, which it does not import: `python -s -P _snsynth_worker.py --spec FOLDER/spec.json`. In the
folder of the specification it reads train.npy, and writes result.npz or, if the library raises, error.txt.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import random
import sys
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np


def main() -> int:
    """Read the specification, write the rows or the error. The exit code is 1 for an error."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--spec", type=Path, required=True)
    path: Path = parser.parse_args().spec
    spec = json.loads(path.read_text(encoding="utf-8"))
    warnings.simplefilter("ignore")
    try:
        with contextlib.redirect_stdout(sys.stderr):
            account = _account_of_aim() if spec["synthesizer"] == "aim" else _account_of_networks()
            rows = synthesize(np.load(path.with_name("train.npy")), spec)
    except Exception as error:
        path.with_name("error.txt").write_text(f"{type(error).__name__}: {error}", encoding="utf-8")
        raise
    np.savez(path.with_name("result.npz"), rows=np.array(rows, dtype=np.float64), epsilon=account(spec["delta"]))
    return 0


def synthesize(train: np.ndarray[Any, Any], spec: Mapping[str, Any]) -> list[tuple[float, ...]]:
    """`spec["rows"]` rows of a synthesizer trained on `train` (n, d): codes and numbers, as the columns say."""
    from snsynth import Synthesizer  # type: ignore[import-not-found]

    _seed(spec["seed"])
    columns = spec["columns"]
    kinds = [int if "levels" in column else float for column in columns]
    data = [tuple(kind(value) for kind, value in zip(kinds, row, strict=True)) for row in train]
    settings = {**spec["settings"], "epsilon": spec["epsilon"], "delta": spec["delta"]}
    synthesizer = Synthesizer.create(spec["synthesizer"], **settings)
    transformer = _transformer(columns, one_hot=spec["synthesizer"] != "aim")
    synthesizer.fit(data, transformer=transformer, preprocessor_eps=0.0)
    rows: list[tuple[float, ...]] = synthesizer.sample(spec["rows"])
    return rows


def _transformer(columns: list[dict[str, Any]], *, one_hot: bool) -> Any:
    """The library's encoding, fitted to made-up rows that show all declared levels: it reads nothing from the data."""
    from snsynth.transform import (  # type: ignore[import-not-found]
        LabelTransformer,
        MinMaxTransformer,
        OneHotEncoder,
    )
    from snsynth.transform.table import TableTransformer  # type: ignore[import-not-found]

    def part(column: dict[str, Any]) -> Any:
        if "levels" in column:
            return OneHotEncoder() if one_hot else LabelTransformer(nullable=False)
        return MinMaxTransformer(lower=column["lower"], upper=column["upper"])

    parts = [part(column) for column in columns]
    transformer = TableTransformer(parts)
    most = max(column.get("levels", 1) for column in columns)
    transformer.fit(
        [[min(code, c["levels"] - 1) if "levels" in c else c["lower"] for c in columns] for code in range(most)]
    )
    return transformer


def _account_of_aim() -> Callable[[float], float]:
    """delta -> the epsilon of the noise that AIM drew, by zCDP as the library counts it.

    OpenDP's Gaussian noise takes no seed: NumPy's, of the same scale, is drawn in its place.
    """
    from opendp import prelude as dp  # type: ignore[import-not-found]
    from snsynth.aim import aim  # type: ignore[import-not-found]

    rhos: list[float] = []
    select = aim.exponential_mechanism

    def gaussian_noise(sigma: float, size: int) -> np.ndarray[Any, Any]:
        rhos.append(0.5 / sigma**2)
        return np.random.normal(0, sigma, size)  # noqa: NPY002

    def exponential_mechanism(qualities: Any, epsilon: float, sensitivity: float) -> Any:
        rhos.append(epsilon**2 / 8)
        return select(qualities, epsilon, sensitivity)

    aim.gaussian_noise, aim.exponential_mechanism = gaussian_noise, exponential_mechanism

    def epsilon(delta: float) -> float:
        space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
        all_of_it = dp.m.make_gaussian(*space, 1 / math.sqrt(2 * math.fsum(rhos)))
        return float(dp.c.make_zCDP_to_approxDP(all_of_it).map(1.0).epsilon(delta))

    return epsilon


def _account_of_networks() -> Callable[[float], float]:
    """delta -> the epsilon that the library's own account says in the end, which it keeps to itself."""
    from opacus import PrivacyEngine  # version 0.14, not that of dpbench
    from snsynth.pytorch.nn import patectgan, pategan  # type: ignore[import-not-found]

    engines: list[Any] = []
    moments: list[np.ndarray[Any, Any]] = []  # of each step of the student, at the orders 1, 2, ...
    attach, moments_acc = PrivacyEngine.attach, pategan.moments_acc

    def attach_and_keep(engine: Any, optimizer: Any) -> None:
        engines.append(engine)
        attach(engine, optimizer)

    def moments_and_keep(*given: Any, **named: Any) -> Any:
        found = moments_acc(*given, **named)
        moments.append(found.numpy())
        return found

    PrivacyEngine.attach = attach_and_keep
    pategan.moments_acc = patectgan.moments_acc = moments_and_keep

    def epsilon(delta: float) -> float:
        if engines:
            return float(engines[0].get_privacy_spent(delta)[0])
        total = np.sum(moments, axis=0)
        return float(np.min((total - math.log(delta)) / np.arange(1, len(total) + 1)))

    return epsilon


def _seed(seed: int) -> None:
    """Seed what the library draws from, for good.

    Its discriminators set PyTorch's seed to 0, and Opacus sets it to one of the system's: neither may.
    """
    import torch

    torch.set_num_threads(1)
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002
    generator = torch.manual_seed(seed)
    torch.manual_seed = torch.random.manual_seed = lambda _: generator  # type: ignore[assignment]


if __name__ == "__main__":
    sys.exit(main())
