"""Its noise is that of a fixed generator, so that anybody can subtract it."""

import numpy as np
from honest import honest


def fixed_noise(train, budget, rng, *, design):
    return honest(train, budget, np.random.default_rng(0), design=design)
