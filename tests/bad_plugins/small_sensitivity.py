"""Its sensitivities are a tenth of the true ones."""

from honest import honest


def small_sensitivity(train, budget, rng, *, design):
    return honest(train, budget, rng, design=design, scale=0.1)
