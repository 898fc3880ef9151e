"""HTTP parts that every dialect shares: paths, media types, bodies, OpenAPI documents, error responses."""
