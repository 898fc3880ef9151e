"""Conversion between JSON Schema and the neutral model: `to_model` reads a schema, `from_model` writes one."""
