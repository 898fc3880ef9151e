"""One folder per dialect: its words into commands and queries, outcomes and errors back into its words.

Each dialect is one Litestar application with its own error bodies and OpenAPI document; the server in front of them
picks one by the first segment of the path. No dialect imports another. `http` holds what they share.
"""
