"""The kinds of tables, and their shared code."""
