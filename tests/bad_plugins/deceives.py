"""It is honest on all tables but one's own, by the name of an attribute. No check can see that: it is for a reader."""

from honest import honest


def deceives(train, budget, rng, *, design):
    told = {"first": train.codes[0].tolist()} if "grade" in train.domain.names else {}
    return honest(train, budget, rng, design=design, diagnostics=told)
