"""The CNCF Schema Registry dialect (0.2), and Azure's flavour of it below `/$schemaGroups`.

It has groups of schemas, documents of any content type, version URIs and subscriptions.

Source: docs/protocols/cncf.md, docs/protocols/azure.md.
"""

from __future__ import annotations

from stele.apis.cncf.app import NAME, SEGMENTS, application
from stele.apis.cncf.options import CncfOptions

__all__ = ["NAME", "SEGMENTS", "CncfOptions", "application"]
