"""Conversion between schema languages over one neutral model, with a report of what is lost."""
