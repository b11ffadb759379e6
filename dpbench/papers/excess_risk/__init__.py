"""Figures that the paper on excess risk alone has."""
