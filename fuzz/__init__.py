"""Fuzzing of everything that reads what strangers send: see README.md."""
