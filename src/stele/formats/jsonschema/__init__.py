"""JSON Schema, draft-04 to 2020-12: the format `json`.

A schema without `$schema` is read as draft-07. Nothing is ever fetched: a `$ref` leads into the document or into the
texts handed in as references. `format` is an annotation in every draft. User patterns run in a bounded engine only.

Source: docs/protocols/json-schema.md.
"""

from stele.formats.jsonschema.confluent import Change, list_changes
from stele.formats.jsonschema.format import JSON_SCHEMA, JsonSchemaFormat
from stele.formats.jsonschema.parsed import ParsedJsonSchema

__all__ = ["JSON_SCHEMA", "Change", "JsonSchemaFormat", "ParsedJsonSchema", "list_changes"]
