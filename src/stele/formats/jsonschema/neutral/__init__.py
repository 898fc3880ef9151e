"""JSON Schema in neutral words and back: `to_model` and `from_model`."""

from stele.formats.jsonschema.neutral.reading import to_model
from stele.formats.jsonschema.neutral.writing import from_model

__all__ = ["from_model", "to_model"]
