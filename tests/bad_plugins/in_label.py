"""A row is in the label of its noise."""

from honest import honest


def in_label(train, budget, rng, *, design):
    return honest(train, budget, rng, design=design, label=f"X'X {train.codes[:1].tolist()}")
