"""Figures that DD-SSP alone has."""
