"""Wire formats: how the bytes of one record carry a schema id. Pure functions, no I/O, no schemas.

Every reader raises `stele.errors.FrameError` for unexpected bytes; none reads the payload.
"""
