"""A row is in a text among its diagnostics."""

from honest import honest


def in_text(train, budget, rng, *, design):
    return honest(train, budget, rng, design=design, diagnostics={"note": f"begins with {train.codes[:1].tolist()}"})
