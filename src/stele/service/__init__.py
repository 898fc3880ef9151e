"""The layer with side effects (clock, random numbers, threads, the log) around the pure core."""
