"""Cases of smartnoise-synth, in the environment of its networks (see worker.py)."""

import warnings

import numpy as np
import pandas as pd
from worker import Done, Tape, main, replayed

warnings.simplefilter("ignore")

ITERATIONS = 50  # of the optimisation after the noise
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


def mst_steps(given):
    """The noise with declared levels, a record in the place of another: MST reads their number."""
    from snsynth import Synthesizer
    from snsynth.mst import mst as module

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
        model = Synthesizer.create("mst", epsilon=1.0, delta=given.delta)
        model.fit(list(frame(codes).itertuples(index=False, name=None)), transformer=declared())
        raise Done

    return replayed(tape, run, CODES, [*CODES[:-1], [1, 0, 0]])


main(
    {"mst_steps": mst_steps},
    "smartnoise-synth",
    "mbi",
    "opendp",
)
