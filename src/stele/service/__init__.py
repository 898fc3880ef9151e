"""The one shell with effects: clock, chance, threads and the log around the pure core."""
