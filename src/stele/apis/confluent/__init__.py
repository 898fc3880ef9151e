"""The Confluent and Redpanda dialect: the schema registry API most clients speak, at the root of the server."""

from stele.apis.confluent.app import CONTENT_TYPE, IMMUTABLE, SEGMENTS, application
from stele.apis.confluent.errors import MEDIA_TYPE
from stele.apis.confluent.options import ConfluentOptions
from stele.apis.confluent.response_cache import SchemaResponseCache

__all__ = [
    "CONTENT_TYPE",
    "IMMUTABLE",
    "MEDIA_TYPE",
    "SEGMENTS",
    "ConfluentOptions",
    "SchemaResponseCache",
    "application",
]
