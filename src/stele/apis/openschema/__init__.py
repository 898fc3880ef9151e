"""The OpenSchema dialect: subjects of tenants and namespaces, their schemas and compatibility.

Its paths are those of the Confluent dialect with other bodies. So it is served below `/openschema`, on a port of its
own, and at the root for clients that name its media type.

Source: docs/protocols/openschema.md.
"""

from __future__ import annotations

from stele.apis.openschema.app import NAME, SEGMENTS, application
from stele.apis.openschema.models import MEDIA_TYPE
from stele.apis.openschema.options import OpenSchemaOptions

__all__ = ["MEDIA_TYPE", "NAME", "SEGMENTS", "OpenSchemaOptions", "application"]
