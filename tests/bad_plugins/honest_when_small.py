"""It is honest on few rows alone."""

from honest import honest


def honest_when_small(train, budget, rng, *, design):
    told = {"first": train.codes[0].tolist()} if len(train) > 250 and len(train) != 300 else {}
    return honest(train, budget, rng, design=design, diagnostics=told)
