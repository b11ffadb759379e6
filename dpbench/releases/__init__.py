"""Releases: the outputs of mechanisms. `KINDS` lists their kinds."""

from .distribution import Distribution, Merge
from .offers import (
    BinSums,
    Coefficients,
    GlmStatistics,
    Marginals,
    Part,
    SufficientStatistics,
    SyntheticRows,
    SyntheticTables,
)
from .release_type import KINDS, Release, check_release

__all__ = [
    "KINDS",
    "BinSums",
    "Coefficients",
    "Distribution",
    "GlmStatistics",
    "Marginals",
    "Merge",
    "Part",
    "Release",
    "SufficientStatistics",
    "SyntheticRows",
    "SyntheticTables",
    "check_release",
]
