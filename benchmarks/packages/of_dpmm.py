"""Cases of dpmm (see worker.py)."""

import logging
import warnings

import numpy as np
import pandas as pd
from worker import Done, Noise, Tape, main, replayed, scored

warnings.simplefilter("ignore")
logging.disable(logging.WARNING)

ITERATIONS = 10  # of the optimisation after the noise
ROWS = 50  # that are generated
DOMAIN = {name: {"categories": ["x", "y"]} for name in "abc"}
CODES = [[0, i % 2, i // 2 % 2] for i in range(20)]  # nobody has the second level of the first attribute


def pipeline(given, name):
    """Levels are declared, all attributes are categorical; how many rows have the level that one record has."""
    from dpmm import pipelines
    from dpmm.models.base.mbi import FactoredInference

    start = FactoredInference.__init__

    def quick(engine, *args, **named):
        start(engine, *args, **{**named, "iters": ITERATIONS})

    FactoredInference.__init__ = quick

    def score(codes):
        frame = pd.DataFrame(np.array(["x", "y"])[np.array(codes)], columns=list("abc"))
        model = getattr(pipelines, name)(epsilon=1.0, delta=given.delta, proc_epsilon=None, n_jobs=1)
        model.fit(frame, domain=DOMAIN)
        return (model.generate(n_records=ROWS)["a"] == "y").sum()

    return scored(score, CODES, [*CODES, [1, 0, 0]], given.runs)


def privbayes_selection(given):
    """How the network is selected, of 10,000 records: one more makes two attributes equal that were constant."""
    from dpmm.models.priv_bayes import PrivBayes

    tape, draws = Tape(given.delta), np.random.RandomState(given.seed)

    class Generator:
        def choice(self, a, size=None, replace=True, p=None):
            if p is None:  # the root, which does not depend on the rows
                return "a"
            return [tape.choice(np.asarray(p), int(draws.choice(a, p=p)))]

    def measure(*args, **named):
        raise Done

    PrivBayes.measure = measure

    def run(last):
        codes = np.array([[0, 0, i % 2] for i in range(10_000)] + ([[1, 1, 0]] if last else []))
        frame = pd.DataFrame(codes, columns=list("abc"))
        PrivBayes(epsilon=1.0, delta=given.delta, prng=Generator(), domain=dict.fromkeys("abc", 2), n_jobs=1).fit(frame)

    return replayed(tape, run, 0, 1)


def aim_steps(given):
    """The noise of AIM, of which the levels are declared; without the compression of its pipeline."""
    from dpmm.models import aim
    from dpmm.models.base.mbi import FactoredInference

    tape, draws, start = Tape(given.delta), np.random.RandomState(given.seed), FactoredInference.__init__

    def quick(engine, *args, **named):
        start(engine, *args, **{**named, "iters": ITERATIONS})

    class Generator(np.random.RandomState):
        def choice(self, a, size=None, replace=True, p=None):
            return tape.choice(np.asarray(p), int(draws.choice(a, p=p)))

    def gaussian_noise(sigma, size):
        return Noise(tape, "gaussian", sigma, draws.normal(0, sigma, size))

    FactoredInference.__init__, aim.gaussian_noise = quick, gaussian_noise

    def run(codes):
        frame = pd.DataFrame(np.array(codes), columns=list("abc"))
        settings = {"prng": Generator(0), "domain": dict.fromkeys("abc", 2), "n_jobs": 1}
        aim.AIM(epsilon=1.0, delta=given.delta, **settings).fit(frame, marginals_only=True)

    return replayed(tape, run, CODES, [*CODES, [1, 0, 0]])


main(
    {
        "aim_steps": aim_steps,
        "mst": lambda given: pipeline(given, "MSTPipeline"),
        "privbayes": lambda given: pipeline(given, "PrivBayesPipeline"),
        "privbayes_selection": privbayes_selection,
    },
    "dpmm",
    "numpy",
)
