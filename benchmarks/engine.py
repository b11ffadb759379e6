"""Time of the estimation engine on a growing sequence of noisy marginals, compared with mbi's defaults.

Synthetic data over the sizes of Adult (14 attributes; a random tree of dependencies, seed fixed): the 14 singles,
then one pair more per step, each step an estimate warm-started from the last and the answers to all 91 pairs. One
row per checkpoint, sums since the start. Each engine runs in a separate process, to measure its own peak memory.

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/engine.py --pairs 12 --mbi
"""

import argparse
import itertools
import multiprocessing
import resource
import time

import numpy as np

SIZES = {
    "age": 32, "workclass": 9, "fnlwgt": 32, "education-num": 16, "marital": 7, "occupation": 15, "relationship": 6,
    "race": 5, "sex": 2, "capital-gain": 32, "capital-loss": 32, "hours": 32, "native-country": 42, "income": 2,
}  # fmt: skip
ROWS = 48_842
HEADER = f"{'engine':8}{'pairs':>6}{'model MB':>10}{'seconds':>9}{'CPU s':>9}{'peak MB':>9}{'steps':>8}{'loss':>12}"


def synthetic(rng):
    """Codes (ROWS, 14): each attribute follows an earlier one with probability 0.6, else its own skewed
    distribution.
    """
    columns = []
    for i, size in enumerate(SIZES.values()):
        own = rng.choice(size, ROWS, p=rng.dirichlet(np.full(size, 0.5)))
        if i:
            table = rng.integers(0, size, max(SIZES.values()))
            own = np.where(rng.random(ROWS) < 0.6, table[columns[rng.integers(i)]], own)
        columns.append(own)
    return np.stack(columns, axis=1)


def measurements(pairs, sigma, seed):
    """Noisy tables of the 14 singles and of `pairs` random pairs among the smaller attributes and income."""
    from dpbench.inference import Measurement

    rng = np.random.default_rng(seed)
    data, names = synthetic(rng), list(SIZES)
    every = [p for p in itertools.combinations(names, 2) if SIZES[p[0]] * SIZES[p[1]] <= 320]
    chosen = [every[k] for k in rng.permutation(len(every))[:pairs]]
    found = []
    for clique in [*((n,) for n in names), *chosen]:
        shape = tuple(SIZES[n] for n in clique)
        codes = np.ravel_multi_index([data[:, names.index(n)] for n in clique], shape)
        table = np.bincount(codes, minlength=int(np.prod(shape))).reshape(shape)
        found.append(Measurement(clique, table + rng.normal(0, sigma, shape), sigma))
    return found


def run(engine, given, every, warm):
    """Rows of the table for one engine; `warm` off: a fresh estimate each step, mbi's default."""
    from dpbench.mechanisms.fitting import engine_of

    chosen = engine_of(engine, iterations=1000)
    began, cpu = time.perf_counter(), time.process_time()
    pairs = list(itertools.combinations(SIZES, 2))
    model, steps = None, 0
    for count in range(len(SIZES), len(given) + 1):
        model = chosen.estimate(SIZES, given[:count], warm_start=model if warm else None)
        model.answer(pairs)
        steps += model.iterations
        done = count - len(SIZES)
        if done % every == 0 or count == len(given):
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            print(
                f"{engine:8}{done:6}{model.size_mb:10.3f}{time.perf_counter() - began:9.2f}"
                f"{time.process_time() - cpu:9.2f}{peak:9.0f}{steps:8}{model.loss:12.2f}",
                flush=True,
            )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=24, help="pairs measured one after the other (default 24)")
    parser.add_argument("--sigma", type=float, default=50.0, help="noise of every cell (default 50)")
    parser.add_argument("--every", type=int, default=4, help="pairs between two rows of the table (default 4)")
    parser.add_argument("--seed", type=int, default=0, help="of data, pairs and noise (default 0)")
    parser.add_argument("--mbi", action="store_true", help="also mbi, fresh each step (about half a minute per pair)")
    options = parser.parse_args()
    given = measurements(options.pairs, options.sigma, options.seed)
    print(HEADER)
    for engine in ["native", "mbi"] if options.mbi else ["native"]:
        job = multiprocessing.get_context("spawn").Process(
            target=run, args=(engine, given, options.every, engine == "native")
        )
        job.start()
        job.join()
        if job.exitcode:
            raise SystemExit(f"{engine} stopped with exit code {job.exitcode}")


if __name__ == "__main__":
    main()
