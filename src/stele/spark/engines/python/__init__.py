"""The plain engine: closures over Python values. Slower than `vm`, needs no compiler, and is the other opinion in tests."""
