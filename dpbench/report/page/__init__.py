"""The report as a page: one HTML file with figures, tables, verdicts and trials."""
