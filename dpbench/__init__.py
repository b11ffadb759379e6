"""A benchmark of differentially private regression and synthetic data."""

__version__ = "0.1.0"
