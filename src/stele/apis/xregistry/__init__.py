"""The xRegistry 1.0 dialect, with its schema extension: the successor of the CNCF Schema Registry.

It has groups, schemas, meta entities and versions, documents with their attributes in headers, nested imports and
exports.

Source: docs/protocols/xregistry.md.
"""

from __future__ import annotations

from stele.apis.xregistry.app import NAME, SEGMENTS, application
from stele.apis.xregistry.options import XregistryOptions

__all__ = ["NAME", "SEGMENTS", "XregistryOptions", "application"]
