"""The kinds of figures, and their shared code."""
