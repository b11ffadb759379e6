"""Cases of the mechanisms in mbi's repository, from a folder with its checkout (see worker.py).

The values under their noise are taken as they add it, selections as they draw them; what follows the last draw is not
run.
"""

import importlib
import sys
import warnings

import numpy as np
from worker import Done, Noise, Tape, main, replayed

warnings.simplefilter("ignore")

ITERATIONS = 20  # of the optimisation after the noise


def datasets(replace):
    """Three attributes of two levels, and one record more or in the place of another."""
    import mbi

    domain = mbi.Domain(["a", "b", "c"], [2, 2, 2])
    codes = np.array([[i % 2, i // 2 % 2, 0] for i in range(20)])
    other = np.vstack([codes[:-1] if replace else codes, [0, 0, 1]])
    return [mbi.Dataset({name: table[:, j] for j, name in enumerate("abc")}, domain) for table in (codes, other)]


def case(given, name, run, *, replace=False):
    """The steps of a mechanism of the folder."""
    for folder in ("mechanisms", "src"):
        sys.path.insert(0, str(given.sources / "mbi" / folder))
    import mbi

    module, tape = importlib.import_module(name), Tape(given.delta)
    draws = np.random.RandomState(given.seed)

    def normal(loc=0.0, scale=1.0, size=None):
        return Noise(tape, "gaussian", scale, draws.normal(loc, scale, size))

    def choice(a, size=None, replace=True, p=None):
        return tape.choice(np.asarray(p), int(draws.choice(a, p=np.asarray(p))))

    def done(*args, **named):
        raise Done

    estimate = mbi.estimation.MirrorDescent.estimate

    def quick(*args, **named):
        return estimate(*args, **{**named, "iters": ITERATIONS, "callback_fn": lambda *_: None})

    np.random.normal, np.random.choice = normal, choice
    mbi.estimation.MirrorDescent.estimate = quick
    mbi.MarkovRandomField.synthetic_data = done
    return replayed(tape, lambda data: run(module, data), *datasets(replace))


PAIRS = [("a", "b"), ("a", "c"), ("b", "c")]
WEIGHTED = [(pair, 1.0) for pair in PAIRS]

main(
    {
        "aim": lambda given: case(given, "aim", lambda m, data: m.AIM(1.0, given.delta).run(data, WEIGHTED)),
        "mst": lambda given: case(given, "mst", lambda m, data: m.MST(data, 1.0, given.delta)),
        "mwem_pgm": lambda given: case(given, "mwem+pgm", lambda m, data: m.mwem_pgm(data, 1.0, given.delta)),
        "mwem_pgm_bounded": lambda given: case(
            given, "mwem+pgm", lambda m, data: m.mwem_pgm(data, 1.0, given.delta, bounded=True), replace=True
        ),
        "jam": lambda given: case(
            given,
            "jam",
            lambda m, data: m.JAM(1.0, given.delta).run(data, datasets(True)[0], PAIRS),
            replace=True,
        ),
    },
    "numpy",
    "jax",
)
