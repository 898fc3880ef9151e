"""Requests of several steps."""
