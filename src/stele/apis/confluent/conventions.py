"""The media types of the API."""

from __future__ import annotations

from stele.apis.confluent.faults import MEDIA_TYPE
from stele.apis.http.media_types import negotiate_media_types

conventions = negotiate_media_types(
    {MEDIA_TYPE: 1.0, "application/vnd.schemaregistry+json": 0.9, "application/json": 0.5}
)
