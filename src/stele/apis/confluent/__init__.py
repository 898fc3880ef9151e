"""The Confluent and Redpanda dialect: the schema registry API most clients speak, at the root of the server."""

from stele.apis.confluent.app import CONTENT_TYPE, IMMUTABLE, REPEATABLE, SEGMENTS, application
from stele.apis.confluent.errors import MEDIA_TYPE
from stele.apis.confluent.options import ConfluentOptions

__all__ = [
    "CONTENT_TYPE",
    "IMMUTABLE",
    "MEDIA_TYPE",
    "REPEATABLE",
    "SEGMENTS",
    "ConfluentOptions",
    "application",
]
