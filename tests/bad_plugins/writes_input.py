"""It changes the rows that it was given, and so what is run on them next."""

from honest import honest


def writes_input(train, budget, rng, *, design):
    made = honest(train, budget, rng, design=design)
    rows = train.codes if train.codes.base is None else train.codes.base
    rows[:1] = 0
    return made
