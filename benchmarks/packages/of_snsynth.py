"""Cases of smartnoise-synth, in the environment of its networks (see worker.py)."""

import warnings

import numpy as np
import pandas as pd
from worker import Done, Tape, main, replayed, scored

warnings.simplefilter("ignore")

ITERATIONS = 50  # of the optimisation after the noise
ROWS = 50  # that are generated
CODES = [[0, i % 2, i // 2 % 2] for i in range(20)]  # nobody has the second level of the first attribute


def frame(codes):
    """The rows as a user has them: text."""
    return pd.DataFrame(np.array(["x", "y"])[np.array(codes)], columns=list("abc"))


def declared():
    """A transformer that is fitted to made-up rows with all levels, so that it reads nothing from the data."""
    from snsynth.transform import LabelTransformer
    from snsynth.transform.table import TableTransformer

    found = TableTransformer([LabelTransformer() for _ in range(3)])
    found.fit([("x",) * 3, ("y",) * 3])
    return found


def quick():
    """The optimisation with few iterations: it reads noisy answers alone."""
    from mbi import estimation

    descend = estimation.mirror_descent

    def mirror_descent(*args, **named):
        return descend(*args, **{**named, "iters": ITERATIONS})

    estimation.mirror_descent = mirror_descent


def steps(given, name, module, one):
    """The noise with declared levels."""
    from snsynth import Synthesizer

    quick()
    tape, waiting = Tape(given.delta), []
    draws, measurement = np.random.RandomState(given.seed), module.LinearMeasurement

    def gaussian_noise(sigma, size=None):
        waiting.append((sigma, draws.normal(0, sigma, size)))
        return waiting[-1][1]

    def measured(answer, *args, **named):
        if waiting:
            sigma, noise = waiting.pop()
            answer = tape.noisy("gaussian", np.asarray(answer) - noise, sigma, noise)
        return measurement(answer, *args, **named)

    def choice(a, size=None, replace=True, p=None):
        return tape.choice(np.asarray(p), int(draws.choice(a, p=np.asarray(p))))

    module.gaussian_noise, module.LinearMeasurement, np.random.choice = gaussian_noise, measured, choice

    def run(codes):
        model = Synthesizer.create(name, epsilon=1.0, delta=given.delta)
        model.fit(list(frame(codes).itertuples(index=False, name=None)), transformer=declared())
        raise Done

    return replayed(tape, run, CODES, one)


def mst_steps(given):
    """A record in the place of another: MST reads their number."""
    from snsynth.mst import mst

    return steps(given, "mst", mst, [*CODES[:-1], [1, 0, 0]])


def aim_steps(given):
    """A record more."""
    from snsynth.aim import aim

    return steps(given, "aim", aim, [*CODES, [1, 0, 0]])


def mwem(given):
    """A record more, with a level that nobody else has: how many synthetic rows have that level."""
    from snsynth import Synthesizer

    def score(codes):
        model = Synthesizer.create("mwem", epsilon=1.0)
        model.fit(list(frame(codes).itertuples(index=False, name=None)), transformer=declared())
        return sum(row[0] == "y" for row in model.sample(ROWS))

    return scored(score, CODES, [*CODES, [1, 0, 0]], given.runs)


main(
    {"mwem": mwem, "mst_steps": mst_steps, "aim_steps": aim_steps},
    "smartnoise-synth",
    "mbi",
    "opendp",
)
