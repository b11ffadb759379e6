"""The kinds of figures, and what they share."""
