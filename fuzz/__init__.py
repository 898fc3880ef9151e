"""Fuzzing of all parsers of untrusted input: see README.md."""
