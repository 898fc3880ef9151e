"""Wire formats: how a schema id travels with the bytes of one record. Pure functions, no I/O, no schemas.

Every reader raises `stele.errors.FrameError` on bytes that are not what it expects; none looks into the payload.
"""
