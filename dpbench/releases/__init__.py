"""Releases: the outputs of mechanisms, one module a kind. `KINDS` lists them."""

from .bins import BinSums
from .coefficients import Coefficients
from .distribution import Distribution, Merge
from .glm import GlmStatistics
from .marginals import Marginals
from .part import Part
from .release import KINDS, Release, check_release
from .rows import SyntheticRows
from .statistics import SufficientStatistics

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
    "check_release",
]
