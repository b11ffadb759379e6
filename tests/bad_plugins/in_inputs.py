"""A row is among the texts that name what was not paid for."""

from honest import honest


def in_inputs(train, budget, rng, *, design):
    return honest(train, budget, rng, design=design, unpaid=[str(train.codes[:1].tolist())])
