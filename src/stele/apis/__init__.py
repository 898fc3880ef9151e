"""HTTP APIs of the server, one folder per dialect.

A dialect translates requests into commands and queries of the core, and outcomes and errors back into responses. Each
dialect is one Litestar application with its own error bodies and OpenAPI document; the server in front of them picks
one by the first segment of the path. No dialect imports another. `http` holds what they share.
"""
