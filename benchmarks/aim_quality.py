"""Whether the speed of AIM's estimates costs quality.

    python -m benchmarks.aim_quality --equal [--epsilons 0.05 0.5]
    python -m benchmarks.aim_quality --compare [--datasets adult churn] [--epsilons 0.05 1] [--seeds 10] [--out FOLDER]
        [--tolerance 0.05]

--equal: on the measurements of real runs of AIM, our engine at a tight tolerance against mbi's own MirrorDescent. If
they agree far below the noise, ours at a tight tolerance may replace mbi.

--compare: AIM at its default tolerance against AIM whose estimates are all driven to one tolerance, paired over seeds
(same split, same stream of noise). Errors of the workload, all pairs, are l1 distances divided by n; the downstream
model is least squares from the released marginals, evaluated on the 20% of rows that AIM did not use: the MSE of the
regression's target, and the AUC of the score for the binary label.

The files excess_risk/*.csv are read from the folders of DPBENCH_DATA_MIRRORS; missing ones are left out.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import io
import json
import math
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from scipy.stats import rankdata

from dpbench import inference
from dpbench.config import composed
from dpbench.data.dataset import Dataset
from dpbench.data.domain import Attribute, Domain
from dpbench.data.encode import Design
from dpbench.data.fetch import mirror_dirs
from dpbench.data.load import load_dataset
from dpbench.data.table import Split, Table, split
from dpbench.errors import UserError
from dpbench.mechanisms import aim as mechanism
from dpbench.mechanisms.fitting import ENGINES
from dpbench.models.linear import solve
from dpbench.privacy.budget import Budget
from dpbench.releases import Marginals

DELTA = 1e-5
TIGHT, STEPS = 1e-3, 20_000  # a measured cell, and iterations a round at most
EXACT = {"tolerance": 1e-5, "iterations": 100_000}
LABELS = {  # of the sets of Zhou et al. (2024)
    "adult": "income>50K",
    "churn": "Churn Value",
    "compas": "two_year_recid",
    "dutch": "occupation",
    "heart": "output",
    "law": "pass_bar",
}
MOST_LEVELS = 12  # an attribute of the coded sets with more levels is treated as a number
METRICS = {"mean error": 1, "max error": 1, "MSE": 1, "AUC": -1}  # 1: lower is better
recorded: list[list[inference.Measurement]] = []


class Recording(inference.JunctionTree):
    """Our engine, which keeps what it was given: an engine for `--equal`."""

    def estimate(self, sizes: Any, measurements: Any, warm_start: Any = None) -> inference.MarkovModel:
        """The model of the measurements, which are kept."""
        recorded.append(list(measurements))
        return super().estimate(sizes, measurements, warm_start)

    def update(self, sizes: Any, measurements: Any, model: Any) -> inference.MarkovModel:
        """The estimate."""
        return self.estimate(sizes, measurements, model)


# --- data ------------------------------------------------------------------------------------------------------


def adult() -> tuple[Table, str, str]:
    """The table of linreg_adult, its regression target, and a binary label."""
    table = load_dataset(Dataset.of({**composed(["experiment=linreg_adult"])["dataset"], "offline": True}))
    label = LABELS["adult"]
    declared = (a if a.name != label else Attribute.discrete(label, [0, 1]) for a in table.domain.attributes)
    return Table(Domain(tuple(declared)), table.codes), "education-num", label


def coded(name: str) -> tuple[Table, str, str]:
    """One of the coded sets of Zhou et al. (2024); its label is also the regression's target."""
    for folder in mirror_dirs():
        declaration = folder / "excess_risk" / f"{name}_domain.json"
        for path in (declaration.with_name(f"{name}.csv"), declaration.with_name(f"{name}.csv.gz")):
            if declaration.is_file() and path.is_file():
                content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
                return (*_read(content.decode(), json.loads(declaration.read_text()), LABELS[name]), LABELS[name])
    raise UserError(f"excess_risk/{name}.csv and its domain are in no folder of DPBENCH_DATA_MIRRORS")


def _read(text: str, sizes: dict[str, int], label: str) -> tuple[Table, str]:
    names = next(csv.reader(io.StringIO(text)))
    rows = np.loadtxt(io.StringIO(text), dtype=np.int64, delimiter=",", skiprows=1, ndmin=2)
    attributes = tuple(
        Attribute.discrete(name, range(size))
        if name == label or size > MOST_LEVELS
        else Attribute.categorical(name, range(size))
        for name, size in sizes.items()
    )
    codes = np.ascontiguousarray(rows[:, [names.index(name) for name in sizes]])
    return Table(Domain(attributes), codes), label


def load(name: str) -> tuple[Table, str, str]:
    return adult() if name == "adult" else coded(name)


# --- metrics ---------------------------------------------------------------------------------------------------


def auc(score: np.ndarray, positive: np.ndarray) -> float:
    """Area under the ROC curve, by ranks; ties count half."""
    ones = int(positive.sum())
    ranks = rankdata(score)
    return float((ranks[positive].sum() - ones * (ones + 1) / 2) / (ones * (len(score) - ones)))


def score(parts: Split, target: str, label: str, **settings: Any) -> dict[str, float]:
    """One run of AIM on the training part, and its metrics."""
    start = time.process_time()
    seed, epsilon = settings.pop("seed"), settings.pop("epsilon")
    release = mechanism.aim(parts.train, Budget(epsilon, DELTA), np.random.default_rng([seed, 1]), rows=1, **settings)
    cpu = time.process_time() - start
    marginals = release[Marginals].tables
    truth = {r: parts.train.marginal(r) for r in marginals}
    errors = [float(np.abs(truth[r] - marginals[r]).sum()) / len(parts.train) for r in marginals]
    found = {"mean error": float(np.mean(errors)), "max error": max(errors)}
    for column in (target, label):
        design = Design(parts.test.domain, column)
        X, y = design.encode(parts.test)
        prediction = X @ solve(*design.moments(marginals)).coefficients
        if column == target:
            found["MSE"] = float(np.mean((y - prediction) ** 2))
        if column == label:
            found["AUC"] = auc(prediction, y > 0)
    return {**found, "cpu": cpu, "rounds": len(release.diagnostics["rounds"])}


# --- the comparison --------------------------------------------------------------------------------------------

EXPLANATION = f"""\
`default`: AIM as it is; `tight`: that of --tolerance ({TIGHT:g} a measured cell), up to {STEPS} iterations a round
`worse by`: the mean over seeds of how much worse `default` is than `tight` in that metric (negative: better), with
its standard error `se`; `at most`: worse by + 2 se, as a share of `tight`. The verdict is `no worse` where
worse by <= 2 se. If there is no difference at all, a verdict says WORSE by chance with probability 4% at 10 seeds and
3% at 20 (Student's t beyond 2)."""


def compare(name: str, epsilon: float, seeds: int, out: Path | None, tolerance: float) -> None:
    """Runs and prints one dataset at one epsilon."""
    table, target, label = load(name)
    pairs: list[tuple[dict[str, float], dict[str, float]]] = []
    for seed in range(seeds):
        parts = split(table, np.random.default_rng([seed, 0]), train_rows=len(table), test_rows=round(len(table) / 5))
        quick = score(parts, target, label, seed=seed, epsilon=epsilon)
        tight = score(parts, target, label, seed=seed, epsilon=epsilon, tolerance=tolerance, iterations=STEPS)
        pairs.append((quick, tight))
        if out:
            _keep(out, [{"dataset": name, "epsilon": epsilon, "seed": seed, "run": "default", **quick}])
            _keep(out, [{"dataset": name, "epsilon": epsilon, "seed": seed, "run": "tight", **tight}])
    cpu = [np.mean([pair[i]["cpu"] for pair in pairs]) for i in (0, 1)]
    print(
        f"\n{name} ({len(table)} rows, {len(table.domain.names)} attributes), epsilon = {epsilon:g}, {seeds} seeds; "
        f"CPU s a run: {cpu[0]:.1f} default, {cpu[1]:.1f} tight"
    )
    print(f"  {'metric':<12}{'default':>10}{'tight':>10}{'worse by':>12}{'se':>10}{'at most':>9}  verdict")
    for metric, sign in METRICS.items():
        a, b = (np.array([pair[i][metric] for pair in pairs]) for i in (0, 1))
        worse = float(np.mean(sign * (a - b)))
        error = float(np.std(a - b, ddof=1)) / math.sqrt(seeds) if seeds > 1 else math.nan
        most = (worse + 2 * error) / float(np.mean(b))
        verdict = "no worse" if worse <= 2 * error else "WORSE" if seeds > 1 else "one seed"
        print(
            f"  {metric:<12}{np.mean(a):>10.5f}{np.mean(b):>10.5f}{worse:>12.6f}{error:>10.6f}{most:>8.2%}   {verdict}",
            flush=True,
        )


def _keep(folder: Path, rows: Sequence[dict[str, Any]]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "aim_quality.csv"
    new = not path.exists()
    with path.open("a", newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]))
        if new:
            writer.writeheader()
        writer.writerows(rows)


# --- the equality ----------------------------------------------------------------------------------------------


@contextmanager
def recording() -> Iterator[None]:
    """While it lasts, `engine="recording"` is our engine and keeps its measurements in `recorded`."""
    recorded.clear()
    with patch.dict(ENGINES, {"recording": Recording}):
        yield


def equal(table: Table, epsilon: float, rounds: Sequence[int | None], iterations: Sequence[int]) -> None:
    """Fits the measurements that one run of AIM had after the given rounds (None: the last) by both engines."""
    from dpbench.inference.mbi_engine import Mbi

    with recording():
        mechanism.aim(table, Budget(epsilon, DELTA), np.random.default_rng(0), rows=1, engine="recording")
    sizes, sets = table.domain.sizes, list(recorded)
    for done in rounds:
        number = len(sets) - 1 if done is None else min(done, len(sets) - 1)
        ms = sets[number]
        start = time.process_time()
        ours = inference.JunctionTree(**EXACT).estimate(sizes, ms)
        mine = time.process_time() - start
        usual = inference.JunctionTree().estimate(sizes, ms)
        print(
            f"\nepsilon = {epsilon:g}, after round {number} of {len(sets) - 1}: {len(ms)} measurements of "
            f"{sum(m.values.size for m in ms)} cells, model of {ours.size_mb:.3g} MB, total {ours.total:.0f}"
        )
        print(f"  {'engine':<22}{'loss':>12}{'CPU s':>9}{'largest/sigma':>15}{'rms/sigma':>11}{'l1/total':>10}")
        print(f"  {'ours, tight':<22}{ours.loss:>12.3f}{mine:>9.1f}   (the reference for the others)", flush=True)
        _line("ours, default", ours, usual, ms, math.nan)
        for count in iterations:
            start = time.process_time()
            theirs = Mbi(iterations=count).estimate(sizes, ms)
            _line(f"mbi, {count} iterations", ours, theirs, ms, time.process_time() - start)


def _line(name: str, ours: Any, other: Any, ms: Sequence[inference.Measurement], cpu: float) -> None:
    """Differences of the answers on measured cliques: the largest and the root mean square in sigmas, and l1 shares."""
    cliques = list(dict.fromkeys(m.clique for m in ms))
    a, b = ours.answer(cliques), other.answer(cliques)
    apart = np.concatenate([((a[m.clique] - b[m.clique]) / m.sigma).ravel() for m in ms])
    share = max(float(np.abs(a[c] - b[c]).sum()) / ours.total for c in cliques)
    rms = float(np.sqrt(np.mean(apart**2)))
    print(
        f"  {name:<22}{other.loss:>12.3f}{cpu:>9.1f}{np.abs(apart).max():>15.4f}{rms:>11.5f}{share:>10.5f}", flush=True
    )


def small() -> Table:
    """2,000 rows of four dependent attributes."""
    rng = np.random.default_rng(5)
    sizes = {"a": 6, "b": 3, "c": 5, "d": 2}
    codes = rng.integers(0, list(sizes.values()), size=(2000, 4))
    codes[:, 2] = (codes[:, 0] + codes[:, 2] // 3) % 5
    codes[:, 3] = (codes[:, 1] + codes[:, 2] > 3).astype(int)
    return Table(Domain(tuple(Attribute.categorical(name, range(size)) for name, size in sizes.items())), codes)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--equal", action="store_true", help="our estimates against mbi's (half a minute each of mbi's)"
    )
    parser.add_argument("--compare", action="store_true", help="AIM at its default tolerance against a tight one")
    parser.add_argument("--datasets", nargs="+", default=["adult", "churn", "compas", "law"], choices=[*LABELS])
    parser.add_argument(
        "--epsilons", type=float, nargs="+", help="default: 0.05 0.5 for equal, 0.05 0.1 0.5 1 for compare"
    )
    parser.add_argument("--seeds", type=int, default=10, help="of each data set and epsilon")
    parser.add_argument("--tolerance", type=float, default=TIGHT, help="a measured cell, of the other run of compare")
    parser.add_argument(
        "--rounds", type=int, nargs="*", default=[8], help="for equal: also after these rounds of Adult"
    )
    parser.add_argument("--iterations", type=int, nargs="+", default=[1000, 5000], help="of mbi, for equal")
    parser.add_argument("--out", type=Path, help="folder for aim_quality.csv, one line per run")
    given = parser.parse_args()
    if not (given.equal or given.compare):
        parser.error("ask for --equal, --compare or both")
    if given.equal:
        print("A table of four attributes:")
        equal(small(), 1.0, [None], given.iterations)
        print("\nAdult:")
        table, _, _ = load("adult")
        for epsilon in given.epsilons or [0.05, 0.5]:
            equal(table, epsilon, [*given.rounds, None], given.iterations)
    if given.compare:
        print(EXPLANATION)
        for name in given.datasets:
            for epsilon in given.epsilons or [0.05, 0.1, 0.5, 1.0]:
                try:
                    compare(name, epsilon, given.seeds, given.out, given.tolerance)
                except UserError as error:
                    print(f"\n{name}: left out ({error})")
                    break


if __name__ == "__main__":
    main()
