"""The plain engine: closures over Python values. Slower than `vm`, no compiler, the second opinion in tests."""
