"""It reads a file that an environment variable names, which is not recorded in the ledger."""

import os

from honest import honest


def private_file(train, budget, rng, *, design):
    with open(os.environ["PRIVATE_ROWS"]) as file:
        return honest(train, budget, rng, design=design, diagnostics={"line": file.readlines()[1]})
