"""It writes rows to a file."""

import os
from pathlib import Path

from honest import honest


def writes_rows(train, budget, rng, *, design):
    Path(os.environ["PRIVATE_ROWS"]).with_name("copied.txt").write_text(str(train.codes[:1].tolist()))
    return honest(train, budget, rng, design=design)
