"""A figure as data, and what draws it."""
