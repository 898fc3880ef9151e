"""Stele: a schema registry that keeps every version, answers in every dialect, and feeds Spark tables."""

__version__ = "0.1.0"
