"""Stored trials as one long table, its series and their summary."""
