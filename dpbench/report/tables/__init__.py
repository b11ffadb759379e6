"""The kinds of tables, and what they share."""
