"""The media type of the API."""

from __future__ import annotations

from stele.apis.negotiation import negotiating

MEDIA_TYPE = "application/vnd.openschema.v1+json"
"""Of bodies in this dialect; who names it at the root means this dialect."""

conventions = negotiating({MEDIA_TYPE: 1.0, "application/json": 0.5})
