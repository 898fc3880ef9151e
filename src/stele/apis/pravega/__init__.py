"""The Pravega dialect: groups, schemas, codecs and encodings, below `/v1`.

Source: docs/protocols/pravega.md.
"""

from __future__ import annotations

from stele.apis.pravega.app import SEGMENTS, application
from stele.apis.pravega.options import PravegaOptions

__all__ = ["SEGMENTS", "PravegaOptions", "application"]
