"""The schema languages, and the catalogue that finds them by name."""
