"""The rows that a model is trained on: those of a release, or rows drawn from its bins."""

from __future__ import annotations

import numpy as np

from dpbench.data.domain import Floats
from dpbench.data.encode import Design
from dpbench.errors import NoEstimateError
from dpbench.mechanisms.release import Release
from dpbench.models.bin_rows import bin_rows


def training_rows(release: Release, design: Design, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """X (m, p) and y (m,) as `design` encodes them: the released rows, or one draw of `bin_rows`.

    Raises `NoEstimateError` if there are none.
    """
    X, y = design.encode(release.rows) if release.rows is not None else _drawn(release, rng)
    if not len(y):
        raise NoEstimateError("the release has no rows to train on")
    return X, y


def _drawn(release: Release, rng: np.random.Generator) -> tuple[Floats, Floats]:
    assert release.bins is not None
    return bin_rows(release.bins, rng)
