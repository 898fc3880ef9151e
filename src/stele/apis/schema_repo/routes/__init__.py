"""Endpoints of the two dialects: `avro1124`; `subjects` and `browser` of schema-repo."""
