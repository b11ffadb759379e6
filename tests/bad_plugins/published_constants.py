"""It spends twice its budget, by constants that it says are published."""

from honest import honest


def published_constants(train, budget, rng, *, design, calibration="paper"):
    return honest(train, budget, rng, design=design, dear=2.0)
