"""The engine `python`: closures over Python values, without a compiler.

It serves where numba has no wheel and is the second opinion on `vm` and `jvm` in tests: see
docs/adr/0020-the-plain-engine-stays.md.
"""
