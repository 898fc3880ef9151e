"""The breaking-change rules of `buf breaking`: `breaking` runs them, the other modules hold a kind of rule each."""
