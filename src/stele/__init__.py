"""Stele: a schema registry that keeps every version, serves the APIs of several registries, and feeds Spark tables."""

__version__ = "0.1.0"
