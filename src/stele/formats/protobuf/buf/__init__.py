"""The breaking-change rules of `buf breaking`. `breaking` runs them; each other module holds one group of rules."""
