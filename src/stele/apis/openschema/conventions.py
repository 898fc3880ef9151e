"""The media type of the API."""

from __future__ import annotations

from stele.apis.http.media_types import negotiate_media_types

MEDIA_TYPE = "application/vnd.openschema.v1+json"
"""Of bodies in this dialect; who names it at the root means this dialect."""

conventions = negotiate_media_types({MEDIA_TYPE: 1.0, "application/json": 0.5})
