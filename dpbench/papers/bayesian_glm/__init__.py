"""Figures that the paper on Bayesian GLMs alone has."""
