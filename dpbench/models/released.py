"""Coefficients that the mechanism itself released (objective perturbation, DP-SGD)."""

from __future__ import annotations

from dpbench.data.encode import Design
from dpbench.mechanisms.release import Release
from dpbench.models.fit import Fit


def released_coefficients(release: Release, *, design: Design) -> Fit:
    """The identity: the released coefficients (p,), of the design that the release was made for."""
    assert release.coefficients is not None
    return Fit(release.coefficients)
