"""The schema languages, and the registry that finds them by name."""
