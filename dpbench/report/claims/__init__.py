"""A paper's claims and published numbers, compared with our results."""
